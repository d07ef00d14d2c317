"""Workloads of manifests, whose pods come one after the other."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from berth.insight.whatif import manifests
from berth.insight.whatif.daemons import DAEMON_SET
from berth.insight.whatif.question import Replicas
from berth.insight.whatif.renders import Render, sort_out
from berth.kube import manifests as files
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.lab.chance import Chance
from berth.tools.lab.errors import LabError
from berth.tools.lab.types import ManifestSource, NodeGroup
from berth.tools.lab.workload import WHOLE, Arrival, Change, Part

MOST_PODS: Final = 1_000_000


class ManifestWorkload:
    """All pods of some files."""

    is_timed = False
    interval = 0
    length = 0.0
    changes: Sequence[Change] = ()
    warnings: Sequence[str] = ()

    def __init__(self, source: ManifestSource, beside: Path, part: Part = WHOLE) -> None:
        """Read the files; LabError, ManifestError or QuestionError names what is wrong."""
        self.resource, self._shuffle = source.resource, source.shuffle
        objects = list(read(beside, source.files))
        self.nodes: Sequence[Node] = [
            manifests.node(document, at=f"Node[{i}]")
            for i, document in enumerate(
                object_ for object_ in objects if object_["kind"] == "Node"
            )
        ]
        if not self.nodes:
            raise LabError(f"{', '.join(source.files)}: no nodes")
        render = rendered(object_ for object_ in objects if object_["kind"] != "Node")
        self.objects: Sequence[Any] = render.objects
        self.pods: Sequence[Pod] = pods_of(render)[part.number :: part.of]

    def arrivals(self, chance: Chance) -> Sequence[Arrival]:
        pods = list(self.pods)
        if self._shuffle:
            chance.shuffle(pods)
        return [Arrival(pod) for pod in pods]


def read(beside: Path, names: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Yield the objects of files in the folder *beside*. Raises ManifestError."""
    for name in names:
        for document in files.read(beside / name):
            yield json.loads(json.dumps(document))


def nodes_of(groups: Iterable[NodeGroup]) -> Iterator[Node]:
    """Yield the nodes of all groups. Raises QuestionError."""
    taken: set[str] = set()
    for i, group in enumerate(groups):
        model = manifests.node(group.manifest, at=f"nodes[{i}].manifest")
        for node in islice(manifests.nodes_called(model, taken=taken), group.count):
            taken.add(node.metadata.name)
            yield node


def rendered(objects: Iterable[dict[str, Any]]) -> Render:
    """Sort objects by what they are; LabError for DaemonSets, whose pods nobody schedules here."""
    render = sort_out([Replicas(manifest=object_) for object_ in objects])
    for workload in render.workloads:
        if workload.manifest["kind"] == DAEMON_SET:
            raise LabError(f"kind: {DAEMON_SET!r}: a lab has no DaemonSets")
    return render


def pods_of(render: Render) -> Sequence[Pod]:
    """Return the pods of all workloads, and add what comes to be with them to the objects."""
    pods: dict[str, Pod] = {}
    admission = render.admission()
    for workload in render.workloads:
        made = manifests.replicas(
            workload.manifest,
            None,
            at=workload.at,
            admission=admission,
            taken=pods,
            most=MOST_PODS - len(pods),
        )
        render.objects += made.objects
        pods |= {pod.key: pod for pod in made.pods}
    return list(pods.values())
