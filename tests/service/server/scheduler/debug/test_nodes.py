"""``/debug/cache``: nodes as they are counted."""

import random
from typing import Any

import msgspec
import pytest

from berth.kube.informer.reflector import Reflector, Unreadable
from berth.kube.objects.pod import Pod
from berth.service.server.scheduler.debug.nodes import NodeFilter, cached_nodes
from tests.builders import HOSTNAME, node, pod, taint
from tests.harness import Harness
from tests.kube.informer.scripted import Recorder
from tests.service.server.scheduler.debug.world import START, Lists, all_pages, get, permitted

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
GI = 1 << 30


def room(allocatable: int, requested: int) -> dict[str, int]:
    free = allocatable - requested
    return {"allocatable": allocatable, "requested": requested, "free": free}


async def test_a_node_with_everything() -> None:
    harness = Harness()
    harness.put(
        node(
            "n1",
            cpu=4,
            memory="8Gi",
            labels={ZONE: "a", REGION: "r"},
            taints=[taint("dedicated", "gpu")],
            unschedulable=True,
            images={"web:1": 10},
        ),
        pod("p", cpu=3, memory="9Gi", node="n1"),
        pod("lost", node="gone"),
        pod("wants", nominated="n1"),
    )

    told = await get(harness, "/debug/cache?pods=true")
    (item,) = told["items"]
    generation = item.pop("generation")
    assert generation == harness.cache.table.generation[0]
    assert item == {
        "node": "n1",
        "row": 0,
        "zone": "a",
        "region": "r",
        "unschedulable": True,
        "taints": ["dedicated=gpu:NoSchedule"],
        "resources": {
            "pods": room(110, 1),
            "cpu": room(4000, 3000),
            "memory": room(8 * GI, 9 * GI),
            "ephemeral-storage": room(0, 0),
        },
        "assumed": [],
        "nominated": ["default/wants"],
        "pods": [
            {
                "pod": "default/p",
                "uid": "pod-default-p",
                "assumed": False,
                "assumedSince": None,
                "assumedSeconds": None,
            }
        ],
        "details": {
            "labels": {HOSTNAME: "n1", ZONE: "a", REGION: "r"},
            "conditions": [],
            "images": [{"names": ["web:1"], "sizeBytes": 10}],
        },
    }
    assert told["counts"] == {"nodes": 2, "pods": 2, "assumedPods": 0}
    assert told["unknownNodes"] == {"gone": ["default/lost"]}
    assert told["unreadable"] == []


async def test_what_could_not_be_read_is_shown() -> None:
    harness = Harness()
    reflector: Reflector[Any] = Reflector(
        Lists({}),
        "/api/v1/pods",
        decode=msgspec.json.Decoder(Pod).decode,
        handler=Recorder(),
        clock=harness.clock,
        rng=random.Random(1),
        on_malformed=lambda *_: None,
    )
    reflector.unreadable |= {
        f"ns/p{i}": Unreadable(("spec.volumes: odd",), counts=True) for i in range(101)
    }

    told = await cached_nodes(
        harness.view,
        {"/api/v1/pods": reflector},
        NodeFilter(),
        with_pods=False,
        after=None,
        limit=1,
    )

    assert len(told.unreadable) == 100
    assert told.unreadable[0].model_dump(mode="json") == {
        "path": "/api/v1/pods",
        "object": "ns/p0",
        "counts": True,
        "reasons": ["spec.volumes: odd"],
    }


async def test_an_assumed_pod_has_an_age() -> None:
    harness, _ = permitted("p")
    harness.clock.advance(5)

    (item,) = (await get(harness, "/debug/cache"))["items"]
    assumed = {
        "pod": "default/p",
        "uid": "pod-default-p",
        "assumed": True,
        "assumedSince": START,
        "assumedSeconds": 5.0,
    }
    assert (item["assumed"], item["pods"]) == ([assumed], None)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["n3", "n1", "n2"], id="in the order of the table"),
        pytest.param("node=n2", ["n2"], id="one node"),
        pytest.param("name=2", ["n2"], id="by a part of the name"),
        pytest.param("zone=a", ["n3", "n2"], id="of a zone"),
        pytest.param("zone=c", [], id="of no such zone"),
        pytest.param("labelSelector=pool", ["n1"], id="by the presence of a label"),
        pytest.param("labelSelector=!pool&zone=a", ["n3", "n2"], id="by selector and zone"),
    ],
)
async def test_filters(query: str, names: list[str]) -> None:
    harness = Harness()
    harness.put(
        node("n3", labels={ZONE: "a"}),
        node("n1", labels={ZONE: "b", "pool": "gpu"}),
        node("n2", labels={ZONE: "a"}),
    )

    found = await all_pages(harness, f"/debug/cache?{query}", limit=2)
    assert [each["node"] for each in found] == names


async def test_a_page_with_pods_is_short() -> None:
    harness = Harness()
    harness.put(*(node(f"n{i}") for i in range(60)))

    told = await get(harness, "/debug/cache?pods=true&limit=1000")
    assert len(told["items"]) == 50
    assert told["continue"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("sort=use", ["n10", "n1", "n9", "n2"], id="fullest last"),
        pytest.param("sort=use&descending=true", ["n2", "n9", "n1", "n10"], id="fullest first"),
        pytest.param("sort=cpu&descending=true", ["n9", "n1", "n10", "n2"], id="of a resource"),
        pytest.param("sort=memory&descending=true", ["n2", "n9", "n10", "n1"], id="of another"),
        pytest.param("sort=none.such", ["n9", "n10", "n1", "n2"], id="a resource that nobody has"),
        pytest.param("sort=name", ["n1", "n10", "n2", "n9"], id="by name"),
        pytest.param("sort=name&descending=true", ["n9", "n2", "n10", "n1"], id="by name, last"),
        pytest.param("sort=name&zone=a", ["n1", "n10"], id="only some"),
        pytest.param("sort=use&node=n2", ["n2"], id="one"),
    ],
)
async def test_sorted(query: str, names: list[str]) -> None:
    harness = Harness()
    zones = {"n9": "b", "n10": "a", "n1": "a", "n2": "b"}
    harness.put(*(node(name, cpu=4, labels={ZONE: zone}) for name, zone in zones.items()))
    for name, cpu, memory in (("n9", 2, "4Gi"), ("n1", 1, "0"), ("n2", 0, "30Gi")):
        harness.put(pod(f"on-{name}", node=name, cpu=cpu, memory=memory))
    for limit in (1, 3, 100):
        found = await all_pages(harness, f"/debug/cache?{query}", limit=limit)
        assert [each["node"] for each in found] == names
