"""Which pods leave a tainted node, and when."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Get, Patch
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.taint_eviction import (
    TaintEvictionController,
    toleration_seconds,
)
from berth.cluster.controllers.views import NodeSpecView, NodeTaint, NodeView
from berth.cluster.events.correlator import Occurrence, Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta
from berth.cluster.pods.controllers import PodView, TimedToleration
from berth.runtime.clock import FakeClock
from tests.cluster.objects import pod_view

KEY = "default/a"
PATH = "/api/v1/namespaces/default/pods/a"
NOT_READY = NodeTaint("node.kubernetes.io/not-ready", "", "NoExecute")
UNREACHABLE = NodeTaint("node.kubernetes.io/unreachable", "", "NoExecute")
GPU = NodeTaint("gpu", "broken", "NoExecute")


def tolerating(key: str, seconds: int | None = None, **more: Any) -> dict[str, Any]:
    toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", **more}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


DEFAULTS = (tolerating(NOT_READY.key, 300), tolerating(UNREACHABLE.key, 300))


def node_view(name: str, *taints: NodeTaint) -> NodeView:
    return NodeView(Meta(name, f"uid-{name}"), NodeSpecView(taints))


class World:
    """The pod ``default/a`` on the node ``n1``, and what the controller has done so far."""

    def __init__(self, *tolerations: dict[str, Any]) -> None:
        self.clock = FakeClock(1_767_225_600.0)
        self.nodes: Table[NodeView] = Table()
        self.pods: Table[PodView] = Table()
        self.occurrences: list[Occurrence] = []
        self.controller = TaintEvictionController(
            self.nodes,
            self.pods,
            clock=self.clock,
            recorder=EventRecorder(self.occurrences.append, "taint-eviction", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.tolerations = list(tolerations)
        self.pod = pod_view("a")
        self.node = node_view("n1")
        self.nodes.on_add(self.node)
        self.pods.on_add(self.pod)

    @property
    def events(self) -> list[str]:
        assert {occurrence.regarding for occurrence in self.occurrences} <= {
            Reference("v1", "Pod", "default", "a", "")
        }
        assert {occurrence.reason for occurrence in self.occurrences} <= {"TaintManagerEviction"}
        return [occurrence.message for occurrence in self.occurrences]

    def taint(self, *taints: NodeTaint) -> None:
        new = node_view("n1", *taints)
        self.nodes.on_update(self.node, new)
        self.node = new

    def tolerate(self, *tolerations: dict[str, Any]) -> None:
        """Give the pod other tolerations, as an update does."""
        self.tolerations = list(tolerations)
        metadata = msgspec.structs.replace(
            self.pod.metadata, generation=self.pod.metadata.generation + 1
        )
        new = msgspec.structs.replace(self.pod, metadata=metadata)
        self.pods.on_update(self.pod, new)
        self.pod = new

    def run(self) -> tuple[list[Action], float | None]:
        """Carry out plans until there is nothing to do now; return writes, and when there is."""
        writes: list[Action] = []
        while True:
            plan = self.controller.plan(KEY)
            for action in plan.actions:
                answer = b""
                if isinstance(action, Get):
                    metadata = msgspec.to_builtins(self.pod.metadata)
                    spec = {"tolerations": self.tolerations}
                    answer = msgspec.json.encode({"metadata": metadata, "spec": spec})
                else:
                    writes.append(action)
                self.controller.finished(KEY, Outcome(action, answer=answer))
            if plan.again != 0.0:
                return writes, plan.again


MARKED = Patch(
    f"{PATH}/status",
    {
        "metadata": {"uid": "uid-a"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByTaintManager",
                    "message": "Taint manager: deleting due to NoExecute taint",
                    "observedGeneration": 0,
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    },
    STRATEGIC_MERGE,
)
GONE = ([MARKED, Delete(PATH, "uid-a")], None)


@pytest.mark.parametrize(
    ("taints", "tolerations", "want"),
    [
        pytest.param([GPU], DEFAULTS, GONE, id="a taint that it does not tolerate"),
        pytest.param([GPU], [tolerating("gpu")], ([], None), id="one that it tolerates for ever"),
        pytest.param([UNREACHABLE], DEFAULTS, ([], 300.0), id="one that it tolerates for a while"),
        pytest.param([GPU], [tolerating("gpu", 0)], GONE, id="one that it tolerates for no time"),
        pytest.param([GPU], [tolerating("gpu", -5)], GONE, id="a time before now is now"),
        pytest.param(
            [UNREACHABLE, GPU], [tolerating("gpu", 20), *DEFAULTS], ([], 20.0),
            id="two taints: the least time",
        ),
        pytest.param(
            [UNREACHABLE, GPU], [tolerating("gpu"), *DEFAULTS], ([], 300.0),
            id="two taints, one tolerated for ever: the time of the other",
        ),
        pytest.param(
            [GPU], [tolerating("gpu", 20), tolerating("gpu", 10)], ([], 20.0),
            id="of one taint the first toleration counts",
        ),
        pytest.param([UNREACHABLE, GPU], DEFAULTS, GONE, id="two taints, one not tolerated"),
        pytest.param(
            [NodeTaint("gpu", "", "NoSchedule")], (), ([], None),
            id="a taint for scheduling drives nobody out",
        ),
        pytest.param(
            [GPU], [{"operator": "Exists"}], ([], None), id="it tolerates everything for ever"
        ),
        pytest.param(
            [GPU], [{**tolerating("gpu"), "effect": "NoSchedule"}], GONE,
            id="a toleration for another effect does not help",
        ),
        pytest.param(
            [GPU], [{"key": "gpu", "operator": "Equal", "value": "old"}], GONE,
            id="a toleration of another value does not help",
        ),
    ],
)  # fmt: skip
def test_when_a_pod_goes(taints: list[NodeTaint], tolerations: Any, want: Any) -> None:
    world = World(*tolerations)
    world.taint(*taints)
    assert world.run() == want
    assert world.events == (["Marking for deletion Pod default/a"] if want == GONE else [])


def test_a_pod_goes_when_its_time_is_over_and_is_deleted_once() -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    assert world.run() == ([], 300.0)
    world.clock.advance(299.0)
    assert world.run() == ([], 1.0)
    world.clock.advance(1.0)
    writes, again = world.run()
    assert [type(write) for write in writes] == [Patch, Delete]
    assert again is None
    assert world.run() == ([], None)


def test_it_stays_when_the_taint_goes() -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    world.run()
    world.clock.advance(200.0)
    world.taint()
    assert world.enqueued == [KEY, KEY]
    assert world.run() == ([], None)
    assert world.events == ["Cancelling deletion of Pod default/a"]

    world.taint(UNREACHABLE)
    assert world.run() == ([], 300.0), "the time starts anew"


@pytest.mark.parametrize(
    ("tolerations", "want", "events"),
    [
        pytest.param(
            [tolerating(UNREACHABLE.key)], ([], None), ["Cancelling deletion of Pod default/a"],
            id="for ever now: it stays",
        ),
        pytest.param(
            [tolerating(UNREACHABLE.key, 900)], ([], 200.0), [], id="longer: the time is as it was"
        ),
    ],
)  # fmt: skip
def test_a_toleration_that_changes(tolerations: Any, want: Any, events: list[str]) -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    world.run()
    world.clock.advance(100.0)
    world.tolerate(*tolerations)
    assert world.enqueued == [KEY, KEY]
    assert world.run() == want
    assert world.events == events


def test_another_taint_that_it_does_not_tolerate_makes_it_go_now() -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    world.run()
    world.clock.advance(1.0)
    world.taint(UNREACHABLE, GPU)
    writes, _ = world.run()
    assert [type(write) for write in writes] == [Patch, Delete]
    assert world.events == [
        "Cancelling deletion of Pod default/a",
        "Marking for deletion Pod default/a",
    ]


def test_a_pod_that_goes_by_itself_is_cancelled_and_its_successor_has_its_own_time() -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    world.run()
    world.clock.advance(100.0)
    world.pods.on_delete(world.pod)
    metadata = msgspec.structs.replace(world.pod.metadata, uid="uid-next")
    world.pod = msgspec.structs.replace(world.pod, metadata=metadata)
    world.pods.on_add(world.pod)
    assert world.run() == ([], 300.0)
    assert world.events == ["Cancelling deletion of Pod default/a"]


def test_the_time_goes_on_when_the_node_is_deleted() -> None:
    world = World(*DEFAULTS)
    world.taint(UNREACHABLE)
    world.run()
    world.clock.advance(100.0)
    world.nodes.on_delete(world.node)
    assert world.run() == ([], 200.0)


def test_changes_of_pods_elsewhere_wake_nobody() -> None:
    world = World()
    world.tolerate(tolerating("gpu"))
    world.pods.on_add(pod_view("b", node=None))
    world.nodes.on_add(node_view("n2", NodeTaint("gpu", "", "NoSchedule")))
    assert world.enqueued == []
    assert world.controller.plan("default/gone") == NOTHING == Plan()


def test_a_pod_that_comes_to_a_tainted_node_is_looked_at() -> None:
    world = World()
    world.nodes.on_add(node_view("n2", GPU))
    old = pod_view("b", node=None)
    world.pods.on_add(old)
    world.pods.on_update(old, pod_view("b", node="n2"))
    assert world.enqueued == ["default/b"]


@pytest.mark.parametrize(("comparisons", "want"), [(True, 5), (False, 0)])
def test_numbers_are_compared_with_the_feature_gate(*, comparisons: bool, want: int) -> None:
    taint = NodeTaint(key="gpus", value="4", effect="NoExecute")
    few = TimedToleration(key="gpus", operator="Lt", value="8", toleration_seconds=5)
    assert toleration_seconds([taint], [few], comparisons=comparisons) == want
