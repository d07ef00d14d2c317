"""The home of a pod, and what shards refuse."""

from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import ResourceSlice, ResourceSliceSpec
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.shards.slots import (
    AFFINITY,
    ANTI_AFFINITY,
    DEVICES,
    HOSTNAME,
    NO_SLOT,
    RECORD,
    Slots,
    slot_of,
    why_not,
)

ZONE = "topology.kubernetes.io/zone"


def term(key: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}, **more}


def affine(kind: str, *terms: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def pod_with(**spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "team", "uid": "u-1", "labels": {"app": "a"}}
    manifest = {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}
    return msgspec.convert(manifest, Pod)


def on_node(operator: str, *names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": operator, "values": names}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


@pytest.mark.parametrize(
    ("spec", "home"),
    [
        pytest.param({}, "u-1", id="a plain pod: its own"),
        pytest.param(on_node("In", "n1"), "n1", id="a pod of a DaemonSet: its node's"),
        pytest.param(on_node("In", "n1", "n2"), "u-1", id="one of two nodes: its own"),
        pytest.param(affine("podAntiAffinity", term(HOSTNAME)), "u-1", id="apart by host: its own"),
        pytest.param(affine("podAffinity", term(ZONE)), "team", id="affinity: the namespace's"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "team",
            id="required spread: the namespace's",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            "u-1",
            id="preferred spread: its own",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "team",
            id="a claim: the namespace's",
        ),
    ],
)
def test_home(spec: dict[str, Any], home: str) -> None:
    assert Slots(4096).home_of(pod_with(**spec)) == slot_of(home, 4096)


def a_slice(node: str | None) -> ResourceSlice:
    return ResourceSlice(spec=ResourceSliceSpec(node_name=node))


CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}


@pytest.mark.parametrize(
    ("spec", "slices", "why"),
    [
        pytest.param({}, [a_slice(None)], None, id="a plain pod"),
        pytest.param(affine("podAntiAffinity", term(HOSTNAME)), [], None, id="apart by host"),
        pytest.param(affine("podAntiAffinity", term(ZONE)), [], ANTI_AFFINITY, id="apart by zone"),
        pytest.param(affine("podAffinity", term(ZONE)), [], None, id="together"),
        pytest.param(
            affine("podAffinity", term(ZONE, namespaces=["team", "other"])),
            [],
            AFFINITY,
            id="together with pods like itself of another namespace",
        ),
        pytest.param(
            affine("podAffinity", {**term(ZONE, namespaces=["other"]), "labelSelector": {}}),
            [],
            AFFINITY,
            id="an empty selector matches the pod itself",
        ),
        pytest.param(
            affine(
                "podAffinity",
                {"topologyKey": ZONE, "namespaces": ["other"],
                 "labelSelector": {"matchLabels": {"app": "b"}}},
            ),
            [],
            None,
            id="together with others of another namespace",
        ),
        pytest.param(CLAIM, [a_slice("n1")], None, id="devices of a node"),
        pytest.param(CLAIM, [a_slice("n1"), a_slice(None)], DEVICES, id="devices of all nodes"),
    ],
)  # fmt: skip
def test_what_is_refused(
    spec: dict[str, Any], slices: list[ResourceSlice], why: str | None
) -> None:
    answer = why_not(PodInfo(pod_with(**spec)), slices)
    assert (answer and answer[1]) == why


def node_with(record: str | None, **labels: str) -> Node:
    annotations = {} if record is None else {RECORD: record}
    metadata = {"name": "n1", "labels": labels, "annotations": annotations}
    return msgspec.convert({"metadata": metadata}, Node)


BY_POOL = Slots(8, "pool", ("canary", "gpu"))


@pytest.mark.parametrize(
    ("slots", "node", "slot"),
    [
        pytest.param(Slots(8), node_with("pool=a"), slot_of("n1", 8), id="by name"),
        pytest.param(BY_POOL, node_with(None, pool="a"), NO_SLOT, id="nothing is recorded"),
        pytest.param(BY_POOL, node_with("zone=a"), NO_SLOT, id="another label is recorded"),
        pytest.param(BY_POOL, node_with("pool=a", pool="b"), slot_of("a", 8), id="by the record"),
        pytest.param(
            BY_POOL, node_with("pool="), slot_of("n1", 8), id="without the label, by name"
        ),
        pytest.param(BY_POOL, node_with("pool=gpu"), 9, id="a pool of its own"),
    ],
)
def test_the_slot_of_a_node(slots: Slots, node: Node, slot: int) -> None:
    assert slots.of_node(node) == slot


@pytest.mark.parametrize(
    ("spec", "slot"),
    [
        pytest.param({}, slot_of("u-1", 8), id="a plain pod"),
        pytest.param({"nodeSelector": {"pool": "canary"}}, 8, id="a pod of a pool of its own"),
        pytest.param({"nodeSelector": {"pool": "a"}}, slot_of("u-1", 8), id="of another"),
        pytest.param(
            {
                "nodeSelector": {"pool": "canary"},
                "affinity": affine("podAffinity", term(ZONE))["affinity"],
            },
            slot_of("team", 8),
            id="of a pool of its own, but it minds pods on other nodes",
        ),
    ],
)
def test_the_home_of_a_pod_by_pools(spec: dict[str, Any], slot: int) -> None:
    assert BY_POOL.home_of(pod_with(**spec)) == slot


def test_what_is_recorded() -> None:
    assert BY_POOL.record_of(node_with(None, pool="a")) == "pool=a"
    assert BY_POOL.record_of(node_with(None)) == "pool="


@pytest.mark.parametrize(
    "other",
    [Slots(9, "pool", ("canary", "gpu")), Slots(8, "zone", ("canary", "gpu")), Slots(8, "pool")],
)
def test_replicas_that_share_otherwise_are_not_active_together(other: Slots) -> None:
    assert other.mode != BY_POOL.mode
