"""What is planted in the fields of objects, and in which files, answers and log lines it shows."""

import asyncio
import json
import logging
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest

from berth.cluster.schemas import builtin
from berth.insight.recording.files import RecordingFile
from berth.insight.recording.writer import RecordingWriter
from berth.kube.client.connect import Endpoint, client_of
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import SELECTED_NODE
from berth.runtime.clock import FakeClock
from berth.runtime.log import JsonFormatter
from berth.scheduler.framework.exports import DECIDING_ANNOTATIONS, exported
from berth.scheduler.framework.interface import Plugin, PreEnqueuePlugin
from berth.scheduler.framework.kind import NODES, PODS, Kind
from berth.scheduler.framework.listers import KINDS
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.service.applications import scheduler_application
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.insight.recording.world import config
from tests.planted import MARK, Planter
from tests.scheduler.extender.fakes import FakeNetwork

SELECTOR: Final = r"(matchExpressions|matchFields|matchLabelExpressions)\[\]\.\w+(\[\])?"
AMOUNTS: Final = r"(requests|limits|capacity|allocatable|allocatedResources|overhead|resources)\{\}"
SHOWN: Final = tuple(
    re.compile(rf"\w+\.{pattern}")
    for pattern in (
        # Who it is.
        r"metadata\.(name|namespace|uid|resourceVersion|labels\{\})",
        r"metadata\.ownerReferences\[\]\.\w+",
        # Selectors of nodes, pods, namespaces and topologies.
        rf"(.+\.)?{SELECTOR}",
        r".+[sS]elector(\.matchLabels)?\{\}",
        r"nodeTopology\.matchLabels\{\}",
        # Amounts, and which devices a container asks for.
        rf".+\.{AMOUNTS}",
        r".+\.resources\.claims\[\]\.(name|request)",
        # Constraints of pods.
        r"spec\.affinity\..+\.(topologyKey|namespaces\[\])",
        r"spec\.topologySpreadConstraints\[\]\.(topologyKey|matchLabelKeys\[\])",
        r"(spec|.+)\.(tolerations|taints)\[\]\.(key|value)",
        r"spec\.(nodeName|schedulerName|priorityClassName|schedulingGroup\.podGroupName)",
        r"spec\.(initContainers|containers)\[\]\.(name|image|restartPolicy|ports\[\]\.hostIP)",
        r"spec\.(initContainers|containers)\[\]\.restartPolicyRules\[\]\.action",
        r"spec\.(\w+C|c)ontainers\[\]\.volumeMounts\[\]\.bindMountOptions\[\]",
        r"spec\.podPreemptionPolicy\.disableResizePreemption\[\]",
        r"spec\.resourceClaims\[\]\.\w+",
        r"spec\.(parentCompositePodGroupName|schedulingConstraints\.topology\[\]\.key)",
        # Volumes: what identifies them.
        r"spec\.volumes\[\]\.(name|persistentVolumeClaim\.claimName|csi\.driver|image\.reference)",
        r"spec\.volumes\[\]\.(iscsi\.iqn|rbd\.(monitors\[\]|pool|image))",
        r"spec\.(volumes\[\]\.)?(awsElasticBlockStore|cinder|portworxVolume)\.volumeID",
        r"spec\.(volumes\[\]\.)?(gcePersistentDisk\.pdName|azureDisk\.(diskName|diskURI))",
        r"spec\.csi\.(driver|volumeHandle)",
        r"spec\.(claimRef\.\w+|accessModes\[\]|volumeName|drivers\[\]\.name)",
        r"(spec\.)?(storageClassName|volumeAttributesClassName|provisioner)",
        r"spec\.(attacher|source\.persistentVolumeName)",
        # What is said of pods, nodes and devices.
        r"status\.(.+\.)?conditions\[\]\.(type|status|reason|message)",
        r"status\.devices\[\]\.conditions\[\]\.\w+",
        r"status\.(images\[\]\.names\[\]|declaredFeatures\[\]|disruptedPods\{\})",
        r"status\.(initContainerStatuses|containerStatuses)\[\]\.name",
        r"status\.\w+ClaimStatus(es\[\])?\.(name|resourceClaimName|containers\[\])",
        r"status\.nodeAllocatableResourceClaimStatuses\[\]\.(mapping|overhead)\[\]\.name",
        # Devices: what is asked for, published and allocated.
        r"spec\.devices\.requests\[\]\..+",
        r"spec\.devices\.constraints\[\]\.(requests\[\]|matchAttribute|distinctAttribute)",
        r".+\.config\[\]\.(requests\[\]|opaque\.driver)",
        r"status\.allocation\.devices\.results\[\]\..+",
        r"status\.(reservedFor|devices)\[\]\.\w+",
        r"spec\.(driver|pool\.name|sharedCounters\[\]\..+|devices\[\]\..+)",
        r"spec\.skipNodeOperations\[\]",
        r"spec\.(extendedResourceName|selectors\[\]\.cel\.expression)",
    )
)
"""The fields that may be shown, of any kind."""

GIVEN: Final = {"spec__nodeName": None, "spec__schedulerName": "default-scheduler"}
FREE: Final = {
    **GIVEN,
    **dict.fromkeys(
        (
            "spec__affinity",
            "spec__nodeSelector",
            "spec__topologySpreadConstraints",
            "spec__volumes",
            "spec__resourceClaims",
            "spec__resources",
            "spec__overhead",
            "spec__schedulingGroup",
            "spec__containers[]__resources",
            "spec__containers[]__volumeMounts",
            "spec__initContainers[]__resources",
            "spec__initContainers[]__volumeMounts",
            "status__phase",
            "status__conditions",
        )
    ),
}
"""What lets a pod run anywhere."""
LEFT_OUT: Final = ("/debug/pprof", "/debug/compare", "/debug/overview/stream")
"""Paths that tell of the process, ask an API server, or never end."""
STUCK: Final = {**FREE, "spec__nodeSelector": {"example.com/none": "true"}}
EXTENDER: Final = {
    "urlPrefix": "http://extender",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "weight": 1,
}
ANSWERS: Final = {
    "/filter": lambda asked: {"Nodes": asked["Nodes"]},
    "/prioritize": lambda asked: [
        {"Host": node["metadata"]["name"], "Score": 1} for node in asked["Nodes"]["items"]
    ],
    "/preempt": {},
}


def wrongly_shown(planter: Planter, text: str) -> set[str]:
    fields = set(planter.found_in(text))
    return {field for field in fields if not any(p.fullmatch(field) for p in SHOWN)}


def planted(planter: Planter, kind: Kind[Any], **fields: Any) -> bytes:
    version = kind.api_version.rpartition("/")[2]
    return msgspec.json.encode(planter.plant(kind.group, version, kind.name, **fields))


def known_kinds() -> Iterator[Kind[Any]]:
    for kind in KINDS.values():
        if builtin.schema_of(kind.group, kind.api_version.rpartition("/")[2], kind.name):
            yield kind


class Declaring(PreEnqueuePlugin):
    """Goes by an annotation of its own."""

    NAME = "Declaring"
    ANNOTATIONS = ("example.com/declared",)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return None


@pytest.mark.parametrize(
    "kind", [pytest.param(known_kind, id=known_kind.name) for known_kind in known_kinds()]
)
def test_what_is_exported_of_a_kind_is_declared(kind: Kind[Any]) -> None:
    planter = Planter()
    obj = kind.decode(planted(planter, kind))

    text = msgspec.json.encode(exported(kind, obj)).decode()

    assert MARK in text
    assert wrongly_shown(planter, text) == set()


def test_annotations_that_decide_and_no_others_are_exported() -> None:
    known = dict.fromkeys([*DECIDING_ANNOTATIONS, "example.com/declared", "example.com/other"], "x")
    obj = PODS.decode(msgspec.json.encode({"metadata": {"annotations": known}}))

    plain = exported(PODS, obj).metadata.annotations
    assert plain == dict.fromkeys(DECIDING_ANNOTATIONS, "x")
    also = exported(PODS, obj, annotations={*Declaring.ANNOTATIONS}).metadata.annotations
    assert also == {"example.com/declared": "x"}
    assert obj.metadata.annotations == known, "the object itself stays as it is"


def test_an_object_without_anything_to_leave_out_is_not_copied() -> None:
    obj = PODS.decode(msgspec.json.encode({"metadata": {"annotations": {SELECTED_NODE: "n"}}}))
    assert exported(PODS, obj) is obj


class Planted:
    """A scheduler without an API server, which was told of planted objects and decides."""

    def __init__(self, recording: Path, *, extender: bool) -> None:
        self.planter = Planter()
        self.clock = FakeClock()
        self.writer = RecordingWriter(recording)
        registry: dict[str, type[Plugin]] = {**IN_TREE, Declaring.NAME: Declaring}
        profile = {"plugins": {"preEnqueue": {"enabled": [{"name": Declaring.NAME}]}}}
        api = client_of(
            Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="test", clock=self.clock
        )
        self.service = SchedulerService(
            api,
            config(registry, profiles=[profile], extenders=[EXTENDER] if extender else []),
            clock=self.clock,
            rng=random.Random(0),
            recording=self.writer,
            plugins=KnownPlugins(registry),
        )
        self.network = FakeNetwork(ANSWERS)
        for each in self.service.extenders:
            each.client._http = httpx.AsyncClient(transport=self.network)

    def put(self, kind: Kind[Any], **fields: Any) -> Any:
        extenders = self.service.extenders
        decoders: dict[Kind[Any], Any] = {
            PODS: extenders.decode_pod,
            NODES: extenders.decode_node,
        }
        obj = decoders.get(kind, kind.decode)(planted(self.planter, kind, **fields))
        if isinstance(obj, Pod):
            self.service.core.outside.pods[obj.key] = obj  # type: ignore[index]  # the store's dict
        self.service.core.handlers[kind].on_add(obj)
        return obj

    async def decide(self) -> None:
        """Make all attempts; bindings fail, for nobody answers."""
        for kind in known_kinds():
            if kind not in (PODS, NODES) and kind in self.service.core.handlers:
                self.put(kind)
        self.put(
            NODES,
            metadata__name="n1",
            spec__taints=None,
            spec__unschedulable=None,
            status__allocatable={"cpu": "9", "memory": "9Gi", "pods": "110"},
            status__declaredFeatures=["VolumeBindMountOptions"],
        )
        self.put(PODS, metadata__name="bound", **{**FREE, "spec__nodeName": "n1"})
        self.put(PODS, metadata__name="free", **FREE)
        self.put(PODS, metadata__name="stuck", **STUCK)
        self.put(PODS, metadata__name="gated", **GIVEN, status__phase=None)
        self.service.is_synced = True
        while await self.service.core.schedule_next() is not None:
            pass
        self.writer.close()


async def answers(planted: Planted) -> Mapping[str, str]:
    """Return what all paths answer."""
    app = scheduler_application(planted.service, serves_page=True)
    pods = [pod.metadata for pod in planted.service.core.outside.pods.values()]
    found = {}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for path, operations in app.openapi()["paths"].items():
            if "get" in operations and not path.startswith(LEFT_OUT):
                for each in filled(path, pods):
                    found[each] = (await client.get(each)).text
    return found


def filled(path: str, pods: Sequence[Any]) -> Iterable[str]:
    if "{" not in path:
        return [path]
    if "nodes" in path:
        return [re.sub(r"\{\w+\}", "n1", path)]
    return [path.replace("{namespace}", pod.namespace).replace("{name}", pod.name) for pod in pods]


@pytest.mark.parametrize("extender", [False, True], ids=["no extender", "an extender"])
async def test_no_secret_is_in_anything_that_leaves_the_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, extender: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = Planted(tmp_path / "day.json.gz", extender=extender)

    await planted.decide()
    told = dict(await answers(planted))

    told["recording"] = "\n".join(
        msgspec.json.encode(line).decode() for line in RecordingFile(planted.writer.path).read()
    )
    formatter = JsonFormatter()
    told["log"] = "\n".join(map(formatter.format, caplog.records))
    if extender:
        asked = json.dumps(planted.network.requests)
        assert wrongly_shown(planted.planter, asked), "an extender is shown whole objects"
        assert set(planted.network.paths) >= {"/filter"}
    for part in ("recording", "/snapshot", "/debug/queue", "/debug/decisions"):
        assert "free" in told[part], part
    assert "unschedulable" in told["/debug/decisions"]
    shown = {part: wrongly_shown(planted.planter, text) for part, text in told.items()}
    assert {part: fields for part, fields in shown.items() if fields} == {}
    await asyncio.sleep(0)
