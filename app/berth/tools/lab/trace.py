"""Clusters and workloads in the CSV format of the 2023 GPU cluster trace (cluster-trace-gpu-v2023).

A GPU is a thousand units of one extended resource. A pod requests as many as it needs in all: less
than a thousand of one GPU, or whole ones.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.insight.offline.files import lines_of, opened
from berth.insight.whatif import manifests
from berth.insight.whatif.admission import Admission
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.lab.errors import LabError

MILLI_PER_GPU: Final = 1000
PODS_PER_NODE: Final = 1001
"""What the published simulator allows."""

Row = Mapping[str, str]

_replace = msgspec.structs.replace


class Trace:
    """Nodes and pods of a trace, sorted by name."""

    def __init__(self, nodes: Path, pods: Path, *, resource: str, model_label: str) -> None:
        """Read both files; LabError names the line and the column that is wrong."""
        self.resource = resource
        self._model_label = model_label
        self._shapes: dict[tuple[Any, ...], Pod] = {}
        self.nodes: Sequence[Node] = sorted(
            (self._node(row, where) for where, row in _rows(nodes, "sn")), key=lambda n: n.name
        )
        self.pods: Sequence[Pod] = sorted(
            (self._pod(row, where) for where, row in _rows(pods, "name")),
            key=lambda pod: pod.metadata.name,
        )

    def _node(self, row: Row, where: str) -> Node:
        amounts = {
            "cpu": f"{_number(row, 'cpu_milli', where)}m",
            "memory": f"{_number(row, 'memory_mib', where)}Mi",
            "pods": str(PODS_PER_NODE),
            self.resource: str(_number(row, "gpu", where) * MILLI_PER_GPU),
        }
        name = row["sn"]
        labels = {"kubernetes.io/hostname": name}
        if row.get("model"):
            labels[self._model_label] = row["model"]
        manifest = {
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": amounts},
        }
        return manifests.node(manifest, at=where)

    def _pod(self, row: Row, where: str) -> Pod:
        gpus, milli = _number(row, "num_gpu", where), _number(row, "gpu_milli", where)
        if gpus > 1 and milli != MILLI_PER_GPU:
            raise LabError(f"{where}: gpu_milli: {milli}: pods with several GPUs take whole ones")
        models = row.get("gpu_spec", "") if gpus else ""
        cpu, memory = _number(row, "cpu_milli", where), _number(row, "memory_mib", where)
        shape = (cpu, memory, gpus * milli, models)
        if shape not in self._shapes:
            self._shapes[shape] = self._pod_like(*shape, where)
        return called(self._shapes[shape], row["name"])

    def _pod_like(self, cpu: int, memory: int, gpu_milli: int, models: str, where: str) -> Pod:
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        if gpu_milli:
            requests[self.resource] = str(gpu_milli)
        container = {"name": "main", "image": "trace", "resources": {"requests": requests}}
        spec: dict[str, Any] = {"containers": [container]}
        if models:
            wanted = {"key": self._model_label, "operator": "In", "values": models.split("|")}
            term = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": term}
            spec["affinity"] = {"nodeAffinity": required}
        manifest = {"metadata": {"name": "pod"}, "spec": spec}
        return manifests.pod(manifest, at=where, admission=Admission()).pods[0]


def called(pod: Pod, name: str) -> Pod:
    """Return *pod* under another name."""
    return _replace(pod, metadata=_replace(pod.metadata, name=name, uid=name))


def _rows(path: Path, key: str) -> Iterator[tuple[str, Row]]:
    with opened(path, "rt") as file:
        for number, row in enumerate(csv.DictReader(lines_of(path, file)), start=2):
            where = f"{path}, line {number}"
            if not row.get(key):
                raise LabError(f"{where}: {key}: required")
            yield where, row


def _number(row: Row, column: str, where: str) -> int:
    text = row.get(column) or ""
    if not text.isdecimal():
        raise LabError(f"{where}: {column}: {text!r}: must be a whole number")
    return int(text)
