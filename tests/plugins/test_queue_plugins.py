"""PrioritySort, SchedulingGates, DefaultBinder and the registry."""

import pytest

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import EXTENSION_POINTS, Plugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.default_binder import DefaultBinder
from berth_plugins.priority_sort import PrioritySort
from berth_plugins.registry import IN_TREE
from berth_plugins.scheduling_gates import SchedulingGates, after_gates_eliminated
from tests.builders import pod
from tests.harness import PluginCluster


def queued(name: str, *, priority: int | None, since: float) -> QueuedPodInfo:
    return QueuedPodInfo(PodInfo(pod(name, priority=priority)), timestamp=since)


def test_higher_priority_goes_first_then_who_waits_longest() -> None:
    waiting = [
        queued("late", priority=None, since=9.0),
        queued("urgent", priority=2_000_000_000, since=10.0),
        queued("early", priority=0, since=1.0),
        queued("negative", priority=-1, since=0.0),
    ]
    in_order = sorted(waiting, key=PrioritySort().sort_key)
    assert [q.pod_info.name for q in in_order] == ["urgent", "early", "late", "negative"]


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), None, id="without gates a pod may be tried"),
        pytest.param(
            pod(gates=["a"]),
            Status.unresolvable("waiting for scheduling gates: [a]"),
            id="one gate holds it back",
        ),
        pytest.param(
            pod(gates=["b.io/x", "a"]),
            Status.unresolvable("waiting for scheduling gates: [b.io/x a]"),
            id="all gates are named, in their order",
        ),
    ],
)
def test_gates(a_pod: Pod, want: Status | None) -> None:
    assert SchedulingGates().pre_enqueue(PodInfo(a_pod)) == want


@pytest.mark.parametrize(
    ("changed", "want"),
    [
        pytest.param(pod("p"), QueueingHint.QUEUE, id="this pod lost its gates"),
        pytest.param(pod("other"), QueueingHint.SKIP, id="another pod lost its gates"),
    ],
)
def test_gates_hint(changed: Pod, want: QueueingHint) -> None:
    assert after_gates_eliminated(pod("p", gates=["a"]), pod(gates=["a"]), changed) is want


class Binds(PluginCluster):
    """Accepts or refuses bindings."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__(FakeClock())
        self.failure = failure
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.bound.append((pod.key, node_name))


async def bind(handle: Handle) -> Status | None:
    return await DefaultBinder(None, handle).bind(CycleState(), PodInfo(pod("p")), "n1")


async def test_a_binding_is_written() -> None:
    cluster = Binds()
    assert (await bind(cluster.handle), cluster.bound) == (None, [("default/p", "n1")])


async def test_a_refused_binding_is_an_error() -> None:
    cluster = Binds(ConnectionError('pods "p" not found'))
    assert await bind(cluster.handle) == Status.error('pods "p" not found')
    assert cluster.bound == []


async def test_without_an_api_server_nothing_is_bound() -> None:
    assert await bind(Handle(NodeTable())) == Status.error("there is no API server to write to")


def test_a_binder_needs_somebody_to_bind_with() -> None:
    with pytest.raises(TypeError, match="DefaultBinder: needs a handle"):
        DefaultBinder()


def test_the_registry_knows_each_plugin_by_its_name() -> None:
    assert {name: plugin.NAME for name, plugin in IN_TREE.items()} == {n: n for n in IN_TREE}


@pytest.mark.parametrize("plugin", IN_TREE.values(), ids=list(IN_TREE))
def test_plugins_can_be_made_and_take_part_somewhere(plugin: type[Plugin]) -> None:
    args = None if plugin.ARGS is None else plugin.ARGS.model_validate_json("{}")
    made = plugin(args, Handle(NodeTable()))
    assert [point for point, kind in EXTENSION_POINTS.items() if isinstance(made, kind)]
