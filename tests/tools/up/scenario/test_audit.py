"""The audit finds what must not be, and nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest

from berth.cluster.resources import Object
from berth.kube.informer.store import ResourceEventHandler
from berth.runtime.clock import FakeClock
from berth.tools.up.scenario.audit import (
    ORPHAN_SECONDS,
    STUCK_SECONDS,
    UNEXPLAINED_SECONDS,
    Auditor,
)

READY = [{"type": "Ready", "status": "True"}]
WHY = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def node(name: str, **fields: Any) -> Object:
    status = {"allocatable": {"cpu": "2", "pods": "3"}, "conditions": READY, **fields}
    return {"metadata": {"name": name}, "status": status}


def pod(name: str, on: str = "", *, cpu: str = "1", **fields: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {**metadata, **fields.pop("metadata", {})},
        "spec": {"containers": [container], "nodeName": on},
        "status": {"phase": "Running" if on else "Pending", "conditions": READY, **fields},
    }


class World:
    """Objects, and an auditor of them."""

    def __init__(self, *pods: Object, nodes: tuple[Object, ...] = (), unknown: str = "") -> None:
        self.objects: dict[str, dict[str, Object]] = {
            "Node": {each["metadata"]["name"]: each for each in nodes},
            "Pod": {},
            "PodDisruptionBudget": {},
            "Job": {},
        }
        self.followers: list[ResourceEventHandler[Object]] = []
        self.clock = FakeClock()
        self._unknown = unknown
        self.auditor = Auditor(
            self, explain=self._explain, is_scheduling=lambda: True, clock=self.clock
        )
        for each in pods:
            self.put(each)

    def of(self, kind: str) -> Mapping[str, Object]:
        return self.objects[kind]

    def follow(self, kind: str, follower: ResourceEventHandler[Object]) -> None:
        self.followers.append(follower)

    def put(self, obj: Object) -> None:
        key = f"default/{obj['metadata']['name']}"
        old = self.objects["Pod"].get(key)
        self.objects["Pod"][key] = obj
        for follower in self.followers:
            if old is None:
                follower.on_add(obj)
            else:
                follower.on_update(old, obj)

    def violations(self, *, after: float = 0.0) -> list[str]:
        self.auditor.look()
        self.clock.advance(after)
        self.auditor.look()
        return self.auditor.violations

    def _explain(self, key: str) -> str:
        if key == self._unknown:
            raise LookupError(f"the scheduler knows no pod {key}")
        return "because"


N1 = node("n1")


@pytest.mark.parametrize(
    ("world", "seconds", "want"),
    [
        pytest.param(World(pod("a", "n1"), pod("b", "n1"), nodes=(N1,)), 0, [], id="a full node"),
        pytest.param(
            World(pod("a", "n1", cpu="1500m"), pod("b", "n1"), nodes=(N1,)),
            0,
            ["node n1 has 2.5 cpu requested of 2"],
            id="more cpu than there is",
        ),
        pytest.param(
            World(*(pod(name, "n1", cpu="1m") for name in "abcd"), nodes=(N1,)),
            0,
            ["node n1 has 4 pods requested of 3"],
            id="more pods than there may be",
        ),
        pytest.param(
            World(pod("a", "n1"), pod("b", "n1"), pod("c", "n1", phase="Succeeded"), nodes=(N1,)),
            0,
            [],
            id="what has ended needs nothing",
        ),
        pytest.param(
            World(pod("a", "gone")), ORPHAN_SECONDS, [], id="a node that is gone for a while"
        ),
        pytest.param(
            World(pod("a", "gone")),
            ORPHAN_SECONDS + 1,
            ["pod default/a has outlived its node, for 601s: gone is gone"],
            id="a node that is gone for too long",
        ),
        pytest.param(
            World(pod("a", conditions=WHY)), 3600, [], id="a pending pod that is explained"
        ),
        pytest.param(
            World(pod("a")),
            UNEXPLAINED_SECONDS + 1,
            ["pod default/a is pending, for 11s: its status does not say why"],
            id="a pending pod without a word",
        ),
        pytest.param(
            World(pod("a", conditions=WHY), unknown="default/a"),
            UNEXPLAINED_SECONDS + 1,
            ["pod default/a is pending, for 11s: the scheduler knows no pod default/a"],
            id="a pending pod that the scheduler has lost",
        ),
        pytest.param(
            World(
                pod(
                    "a", "n1", metadata={"deletionTimestamp": "t", "deletionGracePeriodSeconds": 9}
                ),
                nodes=(N1,),
            ),
            STUCK_SECONDS + 10,
            ["pod default/a is terminating, for 610s: n1 is ready"],
            id="a deletion that never ends",
        ),
        pytest.param(
            World(
                pod("a", "n1", metadata={"deletionTimestamp": "t"}),
                nodes=(node("n1", conditions=[]),),
            ),
            86_400,
            [],
            id="a deletion that a dead node cannot confirm",
        ),
    ],
)
def test_what_is_so(world: World, seconds: float, want: list[str]) -> None:
    assert world.violations(after=seconds) == want


def test_a_pod_that_moves() -> None:
    world = World(pod("a"), nodes=(N1,))
    world.put(pod("a", "n1"))
    world.put(pod("a", "n2"))
    assert world.auditor.violations == ["pod default/a has moved from node n1 to n2"]
    assert world.auditor.counts["bound"] == 2


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param(1, [], id="enough are left"),
        pytest.param(
            2,
            ["eviction of pod default/a left budget b with 1 healthy pods of 2"],
            id="one too few is left",
        ),
    ],
)
def test_evictions_against_budgets(wanted: int, want: list[str]) -> None:
    world = World(pod("a", "n1"), pod("b", "n1"), nodes=(N1,))
    world.objects["PodDisruptionBudget"]["default/b"] = {
        "metadata": {"name": "b", "namespace": "default", "uid": "b"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
        "status": {"desiredHealthy": wanted},
    }
    gone = {"deletionTimestamp": "t"}
    world.put(pod("a", "n1", metadata=gone, conditions=[*READY, EVICTED]))
    assert world.auditor.violations == want
    assert world.auditor.counts["disrupted: EvictionByEvictionAPI"] == 1


def test_what_happened_is_told() -> None:
    world = World(pod("a"), nodes=(N1,))
    world.put(pod("a", "n1"))
    world.put(pod("a", "n1", phase="Failed", reason="Evicted"))
    world.violations()
    assert list(world.auditor.lines()) == [
        "bound: 1",
        "failed: 1",
        "failed: Evicted: 1",
        "nodes at a time: 1",
        "pending at a time: 0",
        "pods: 1",
        "pods at a time: 1",
        "audited 2 times: 0 violations",
    ]
