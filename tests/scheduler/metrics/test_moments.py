"""When which numbers move: whole scenarios, on a clock that stands still unless told to move."""

import pytest

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin, PermitPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import WAIT, Status
from berth.scheduler.framework.verdict import PASS, Verdict
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from tests.builders import node, pod, taint
from tests.harness import Harness, with_plugins
from tests.scheduler.metrics.reading import attempts, counted, exported, summed
from tests.scheduler.metrics.world import export_everything

ATTEMPT_DURATION = "scheduler_scheduling_attempt_duration_seconds"
PROFILE = "default-scheduler"


@pytest.fixture
def harness() -> Harness:
    made = Harness()
    export_everything(made)
    return made


async def test_a_pod_that_is_bound_at_once(harness: Harness) -> None:
    harness.put(node("n1"), node("n2"), pod("p"))
    await harness.until_idle()

    registry = harness.registry
    assert attempts(harness) == {"scheduled": 1}
    assert counted(registry, ATTEMPT_DURATION) == {(PROFILE, "scheduled"): 1}
    assert counted(registry, "scheduler_scheduling_algorithm_duration_seconds") == {(): 1}
    assert counted(registry, "scheduler_pod_scheduling_sli_duration_seconds") == {("1",): 1}
    assert summed(registry, "scheduler_pod_scheduling_attempts") == {(): 1}
    assert counted(registry, "scheduler_pod_scheduled_after_flush_total") == {(): 0}
    assert counted(registry, "scheduler_preemption_attempts_total") == {(): 0}
    assert counted(registry, "scheduler_batch_attempts_total") == {(PROFILE, "no_hint"): 1}
    assert counted(registry, "scheduler_batch_cache_flushed_total") == {
        (PROFILE, "pod_not_batchable"): 1
    }
    assert counted(registry, "scheduler_framework_extension_point_duration_seconds") == {
        (point, PROFILE, "Skip" if point == "PreBindPreFlight" else "Success"): 1
        for point in (
            "PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit",
            "PreBindPreFlight", "PreBind", "Bind", "PostBind",
        )
    }  # fmt: skip


async def test_a_pod_that_has_to_wait_for_room(harness: Harness) -> None:
    registry = harness.registry
    harness.put(node("n1", cpu=1), pod("old", cpu=1, node="n1"), pod("new", cpu=1))
    await harness.until_idle()

    assert attempts(harness) == {"unschedulable": 1}
    assert counted(registry, "scheduler_pending_pods") == {
        ("active",): 0, ("backoff",): 0, ("unschedulable",): 1, ("gated",): 0,
    }  # fmt: skip
    assert counted(registry, "scheduler_unschedulable_pods") == {("NodeResourcesFit", PROFILE): 1}
    assert counted(registry, "berth_rejected_attempts_total") == {("NodeResourcesFit", PROFILE): 1}
    assert counted(registry, "berth_rejected_nodes_total") == {("NodeResourcesFit", PROFILE): 1}

    harness.clock.advance(30)
    assert counted(registry, "berth_oldest_pending_seconds")["unschedulable",] == 30
    harness.delete(pod("old", cpu=1, node="n1"))
    await harness.until_idle()

    assert attempts(harness) == {"unschedulable": 1, "scheduled": 1}
    assert summed(registry, "scheduler_pod_scheduling_sli_duration_seconds") == {("2",): 30}
    assert summed(registry, "scheduler_pod_scheduling_attempts") == {(): 2}
    assert counted(registry, "scheduler_unschedulable_pods") == {}
    assert counted(registry, "scheduler_queueing_hint_execution_duration_seconds") == {
        ("AssignedPodDelete", "Queue", "NodeResourcesFit"): 1
    }
    assert counted(registry, "scheduler_queue_incoming_pods_total") == {
        ("UnscheduledPodAdd", "active"): 1,
        ("ScheduleAttemptFailure", "unschedulable"): 1,
        ("AssignedPodDelete", "active"): 1,
    }
    assert counted(registry, "scheduler_batch_cache_flushed_total") == {(PROFILE, "empty_list"): 1}


async def test_a_pod_that_is_tried_again_only_because_it_waited_for_long(harness: Harness) -> None:
    harness.put(node("full", cpu=1), pod("p", cpu=2))
    await harness.until_idle()
    harness.cache.add_node(node("n1"))  # behind the queue's back
    harness.clock.advance(301)
    harness.queue.flush_unschedulable_pods_leftover()
    await harness.until_idle()

    assert attempts(harness) == {"unschedulable": 1, "scheduled": 1}
    assert counted(harness.registry, "scheduler_pod_scheduled_after_flush_total") == {(): 1}


async def test_a_binding_that_fails(harness: Harness) -> None:
    harness.cluster.bind_error = OSError("no")
    harness.put(node("n1"), pod("p"))
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    harness.clock.advance(2)
    await harness.scheduler.binding_cycle.run(binding)

    assert attempts(harness) == {"error": 1}
    assert summed(harness.registry, ATTEMPT_DURATION) == {(PROFILE, "error"): 2}
    points = counted(harness.registry, "scheduler_framework_extension_point_duration_seconds")
    assert points["Unreserve", PROFILE, "Success"] == 1


async def test_no_nodes_is_no_error(harness: Harness) -> None:
    harness.put(pod("p"))
    await harness.until_idle()

    assert attempts(harness) == {"unschedulable": 1}


async def test_a_gated_pod(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", gates=["quota"]))
    await harness.until_idle()

    registry = harness.registry
    assert attempts(harness) == {}
    assert counted(registry, "scheduler_pending_pods")["gated",] == 1
    assert counted(registry, "scheduler_unschedulable_pods") == {("SchedulingGates", PROFILE): 1}
    assert counted(registry, "scheduler_queue_incoming_pods_total") == {
        ("UnscheduledPodAdd", "unschedulable"): 1
    }
    points = counted(registry, "scheduler_framework_extension_point_duration_seconds")
    assert points == {("PreEnqueue", PROFILE, "Success"): 1}  # as kube-scheduler words it


async def test_preemption(harness: Harness) -> None:
    harness.put(
        node("n1", cpu=2),
        pod("a", cpu=1, node="n1"),
        pod("b", cpu=1, node="n1"),
        pod("high", cpu=2, priority=9),
    )
    await harness.until_idle()

    registry = harness.registry
    assert attempts(harness) == {"unschedulable": 1, "scheduled": 1}
    assert counted(registry, "scheduler_preemption_attempts_total") == {(): 1}
    assert summed(registry, "scheduler_preemption_victims") == {(): 2}
    assert counted(registry, "scheduler_preemption_victims") == {(): 1}
    assert counted(registry, "scheduler_preemption_goroutines_execution_total") == {("success",): 1}
    points = counted(registry, "scheduler_framework_extension_point_duration_seconds")
    assert points["PostFilter", PROFILE, "Success"] == 1


async def test_a_preemption_that_fails(harness: Harness) -> None:
    harness.cluster.evict_error = ValueError("a bug")
    harness.put(node("n1", cpu=1), pod("low", cpu=1, node="n1"), pod("high", cpu=1, priority=9))
    queued = harness.queue.pop()
    assert queued is not None
    harness.scheduler.scheduling_cycle(queued)
    pending = harness.preemptions.take()
    assert pending is not None
    await harness.preemptions.prepare_candidate(pending, harness.queue)

    registry = harness.registry
    assert counted(registry, "scheduler_preemption_goroutines_execution_total") == {("error",): 1}
    assert counted(registry, "scheduler_preemption_goroutines_duration_seconds") == {("error",): 1}


async def test_filter_and_score_count_each_node_that_came_so_far(harness: Harness) -> None:
    harness.put(
        node("tainted", taints=[taint("a")]), node("full", cpu=1), node("n1"), node("n2"),
        pod("p", cpu=2),
    )  # fmt: skip
    await harness.until_idle()

    found = counted(harness.registry, "scheduler_plugin_evaluation_total")
    by_plugin = {(point, plugin): n for (point, plugin, _), n in found.items()}
    assert by_plugin["Filter", "TaintToleration"] == 4
    assert by_plugin["Filter", "NodeResourcesFit"] == 3
    assert by_plugin["Score", "NodeResourcesFit"] == 2
    assert by_plugin["PreFilter", "NodeResourcesFit"] == 1
    assert ("PreFilter", "NodePorts") not in by_plugin, "it said Skip"
    assert counted(harness.registry, "berth_rejected_nodes_total") == {
        ("TaintToleration", PROFILE): 1,
        ("NodeResourcesFit", PROFILE): 1,
    }


async def test_events_that_were_taken_in(harness: Harness) -> None:
    waiting, running = pod("w", cpu=99), pod("r", node="n1")
    harness.put(node("n1"), waiting, running)
    harness.put(node("n1", cpu=5), node("n1", cpu=5, labels={"a": "b"}))
    harness.put(pod("r", node="n1", labels={"a": "b"}, version="2"), pod("w", cpu=99, version="2"))
    harness.put(pod("other", scheduler="somebody-else"))
    harness.delete(running, waiting, node("n1"))

    assert counted(harness.registry, "scheduler_event_handling_duration_seconds") == {
        ("NodeAdd",): 1,
        ("UnscheduledPodAdd",): 1,
        ("AssignedPodAdd",): 1,
        ("NodeUpdateNodeAllocatable",): 1,
        ("NodeUpdateNodeLabel",): 1,
        ("AssignedPodUpdatePodLabel",): 1,
        ("TargetPodUpdate",): 1,
        ("AssignedPodDelete",): 1,
        ("UnscheduledPodDelete",): 1,
        ("NodeDelete",): 1,
    }


@pytest.mark.parametrize(
    ("release", "want"),
    [
        pytest.param("1.36", "AssignedPodUpdate", id="1.36: an update"),
        pytest.param("1.37", "AssignedPodUpdatePodScaleUp", id="1.37: with a name of its own"),
    ],
)
async def test_a_pod_that_requests_more(release: str, want: str) -> None:
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "emulatedVersion": release,
        }
    )
    harness.put(node("n1"), pod("p", cpu=1, node="n1"))
    harness.put(pod("p", cpu=2, node="n1", version="2"))

    counts = counted(harness.registry, "scheduler_event_handling_duration_seconds")
    assert {label for (label,) in counts} == {"NodeAdd", "AssignedPodAdd", want}


class Thorough(FilterPlugin):
    """Takes half a second."""

    NAME = "Thorough"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        assert self.handle is not None
        self.handle.clock.advance(0.5)  # type: ignore[attr-defined] # the tests' clock
        return PASS


async def test_how_long_it_took() -> None:
    harness = with_plugins(Thorough)
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()

    registry = harness.registry
    assert summed(registry, ATTEMPT_DURATION) == {(PROFILE, "scheduled"): 0.5}
    assert summed(registry, "scheduler_scheduling_algorithm_duration_seconds") == {(): 0.5}
    points = summed(registry, "scheduler_framework_extension_point_duration_seconds")
    assert {point for point, seconds in points.items() if seconds} == {
        ("Filter", PROFILE, "Success")
    }
    samples = exported(registry)[ATTEMPT_DURATION].samples
    buckets = {s.labels["le"]: s.value for s in samples if "le" in s.labels}
    assert next(bound for bound, count in buckets.items() if count) == "0.512"


class Hesitant(PermitPlugin):
    """Lets pods wait for ten seconds and then refuses them."""

    NAME = "Hesitant"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return WAIT, 10.0


async def test_a_pod_that_waits_on_permit() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1"), pod("p"))
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    assert binding.waiting is not None
    harness.clock.advance(4)
    binding.waiting.reject(Hesitant.NAME, "changed its mind")
    await harness.scheduler.binding_cycle.run(binding)

    registry = harness.registry
    assert attempts(harness) == {"unschedulable": 1}
    assert counted(registry, "scheduler_permit_wait_duration_seconds") == {("Unschedulable",): 1}
    points = counted(registry, "scheduler_framework_extension_point_duration_seconds")
    assert points["Permit", PROFILE, "Wait"] == 1


@pytest.mark.parametrize(
    ("attempt", "label"),
    [
        pytest.param(1, "1", id="few attempts are told apart"),
        pytest.param(14, "14", id="the last that is"),
        pytest.param(15, "15+", id="many are not"),
        pytest.param(99, "15+", id="however many"),
    ],
)
def test_attempts_as_a_label(harness: Harness, attempt: int, label: str) -> None:
    metrics: SchedulerMetrics = harness.metrics
    metrics.scheduled(PROFILE, seconds=1, attempts=attempt, waited=7, after_flush=True)

    registry = harness.registry
    assert summed(registry, "scheduler_pod_scheduling_sli_duration_seconds") == {(label,): 7}
    assert counted(registry, "scheduler_pod_scheduled_after_flush_total") == {(): 1}


def test_errors_with_volumes_count_by_stage(harness: Harness) -> None:
    outcomes = harness.core.handle.outcomes
    outcomes.volume_stage_failed("bind")
    outcomes.volume_stage_failed("bind")
    outcomes.volume_stage_failed("predicate")

    found = counted(harness.registry, "scheduler_volume_scheduling_stage_error_total")
    assert found == {("bind",): 2, ("predicate",): 1}
