"""Numbers that are read from their owners when Prometheus asks."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from berth.kube.client.writes.lanes import Lane, LaneStats, WriteLanes
from berth.kube.informer.reflector import Unreadable
from berth.runtime.clock import FakeClock
from berth.runtime.release import EffectiveVersion
from berth.scheduler.metrics.collectors import LaneCollector, ReflectorCollector, TaskCollector
from berth.scheduler.metrics.loop_lag import measure_lag
from berth.scheduler.metrics.process import network_traffic, register_process
from berth.scheduler.metrics.recorders import LeaderMetrics
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from tests.builders import node, pod
from tests.harness import Harness
from tests.kube.client.slow_server import submit_event
from tests.scheduler.metrics.reading import counted, exported, summed
from tests.scheduler.metrics.world import FakeReflector, export_everything


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_sizes_of_the_cache() -> None:
    harness = Harness()
    registry = export_everything(harness)
    harness.put(node("n1"), pod("p", node="n1"), pod("lost", node="gone"))
    assert counted(registry, "scheduler_cache_size") == {
        ("nodes",): 2, ("pods",): 2, ("assumed_pods",): 0,
    }  # fmt: skip


def test_pods_and_events_in_flight() -> None:
    harness = Harness()
    registry = export_everything(harness)
    assert counted(registry, "scheduler_inflight_events") == {("PodPopped",): 0}

    harness.put(pod("p"))
    harness.queue.pop()
    harness.put(node("n1"), node("n2"))
    assert counted(registry, "scheduler_inflight_events") == {("PodPopped",): 1, ("NodeAdd",): 2}


def test_how_long_the_oldest_pods_wait() -> None:
    harness = Harness()
    registry = export_everything(harness)
    harness.put(pod("gated", gates=["a"]), pod("old"))
    harness.clock.advance(7)
    harness.put(pod("new"))
    harness.clock.advance(1)
    assert counted(registry, "berth_oldest_pending_seconds") == {
        ("active",): 8, ("backoff",): 0, ("unschedulable",): 0, ("gated",): 8,
    }  # fmt: skip


async def test_write_lanes(registry: CollectorRegistry) -> None:
    lanes = WriteLanes(clock=FakeClock())
    registry.register(LaneCollector(lambda: lanes.stats.items()))

    async def write() -> None: ...

    submit_event(lanes, write)
    lanes.submit_status("p", write)
    lanes.submit_status("p", write)
    assert counted(registry, "berth_write_lane_depth") == {
        ("bind",): 0, ("status",): 1, ("event",): 1,
    }  # fmt: skip
    assert counted(registry, "berth_write_lane_writes_total")["status", "superseded"] == 1


def test_all_that_is_known_of_a_lane(registry: CollectorRegistry) -> None:
    stats = LaneStats(
        depth=1,
        in_flight=2,
        done=3,
        failed=4,
        dropped=5,
        superseded=6,
        wait_total=7,
        wait_longest=8,
    )
    registry.register(LaneCollector(lambda: [(Lane.BIND, stats)]))
    assert {name: counted(registry, name) for name in exported(registry)} == {
        "berth_write_lane_depth": {("bind",): 1},
        "berth_write_lane_in_flight": {("bind",): 2},
        "berth_write_lane_writes_total": {
            ("bind", "done"): 3,
            ("bind", "failed"): 4,
            ("bind", "dropped"): 5,
            ("bind", "superseded"): 6,
        },
        "berth_write_lane_wait_seconds_total": {("bind",): 7},
        "berth_write_lane_longest_wait_seconds": {("bind",): 8},
    }


def test_reflectors(registry: CollectorRegistry) -> None:
    unreadable = {
        "n1": Unreadable(("spec: odd",), counts=True),
        "n2": Unreadable(("odd",), counts=False),
        "n3": Unreadable(("odd",), counts=False),
    }
    reflector = FakeReflector(
        store={"n1": 1},
        lists=2,
        malformed=3,
        unreadable=unreadable,
        handler_failures=4,
        version="",
    )
    registry.register(ReflectorCollector({"/api/v1/nodes": reflector}))
    assert {name: counted(registry, name) for name in exported(registry)} == {
        "berth_watched_objects": {("/api/v1/nodes",): 1},
        "berth_lists_total": {("/api/v1/nodes",): 2},
        "berth_malformed_objects_total": {("/api/v1/nodes",): 3},
        "berth_unreadable_objects": {("true", "/api/v1/nodes"): 1, ("false", "/api/v1/nodes"): 2},
        "berth_event_handler_failures_total": {("/api/v1/nodes",): 4},
    }


@pytest.mark.parametrize(
    ("path", "group", "version", "resource"),
    [
        pytest.param("/api/v1/pods", "", "v1", "pods", id="of the core group"),
        pytest.param(
            "/apis/resource.k8s.io/v1beta1/resourceslices",
            "resource.k8s.io",
            "v1beta1",
            "resourceslices",
            id="in the version that is served",
        ),
    ],
)
def test_informers(
    path: str, group: str, version: str, resource: str, registry: CollectorRegistry
) -> None:
    """1.37 spec N5.5; of versions that a float does not hold, the end."""
    reflector = FakeReflector(path=path, version="987654321000000000000123", queued=5)
    for seconds in (0.001, 0.002, 20.0):
        reflector.processing.observe(seconds)
    registry.register(ReflectorCollector({"/somewhere": reflector}))

    labels = {"name": "kube-scheduler", "group": group, "version": version, "resource": resource}

    def value(name: str, **more: str) -> float | None:
        return registry.get_sample_value(f"informer_{name}", {**labels, **more})

    assert value("queued_items") == 5
    assert value("store_resource_version") == 123
    assert value("processing_latency_seconds_count") == 3
    assert value("processing_latency_seconds_bucket", le="0.001") == 1
    assert value("processing_latency_seconds_bucket", le="0.005") == 2
    assert value("processing_latency_seconds_bucket", le="10") == 2


def test_work_under_way(registry: CollectorRegistry) -> None:
    registry.register(TaskCollector({"binding": lambda: 3}))
    assert counted(registry, "scheduler_goroutines") == {("binding",): 3}


def test_who_leads(registry: CollectorRegistry) -> None:
    metrics = LeaderMetrics("kube-scheduler", registry)
    assert counted(registry, "leader_election_master_status") == {("kube-scheduler",): 0}
    assert counted(registry, "leader_election_slowpath_total") == {}

    metrics.on_master(True)  # noqa: FBT003 - as the elector calls it
    metrics.on_slow_path()
    assert counted(registry, "leader_election_master_status") == {("kube-scheduler",): 1}
    assert counted(registry, "leader_election_slowpath_total") == {("kube-scheduler",): 1}


class LateClock(FakeClock):
    """Sleeps longer than it is asked to."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds + 0.25)
        await asyncio.sleep(0)


async def test_the_lag_of_the_event_loop(registry: CollectorRegistry) -> None:
    measuring = asyncio.create_task(
        measure_lag(SchedulerMetrics(registry), clock=LateClock()), name="lag"
    )
    for _ in range(5):
        await asyncio.sleep(0)
    measuring.cancel()
    (lag,) = summed(registry, "berth_event_loop_lag_seconds").values()
    (times,) = counted(registry, "berth_event_loop_lag_seconds").values()
    assert times
    assert lag == 0.25 * times


def test_what_the_process_is(registry: CollectorRegistry) -> None:
    register_process(registry, effective=EffectiveVersion.of("1.36"))
    (build,) = exported(registry)["kubernetes_build_info"].samples
    assert (build.labels["major"], build.labels["minor"]) == ("1", "36")
    assert build.labels["git_version"].startswith("v1.36.0+berth-")
    versions = exported(registry)["version_info"].samples
    assert [(s.labels["binary"], s.labels["emulation"]) for s in versions] == [("1.37", "1.36")]
    gates = counted(registry, "kubernetes_feature_enabled")
    assert gates["SchedulerQueueingHints", ""] == 1
    assert gates["SchedulerAsyncAPICalls", "BETA"] == 0
    assert counted(registry, "registered_metrics_total")["", "STABLE"] == 8


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "TcpExt: A\nTcpExt: 1\nIpExt: X InOctets OutOctets\nIpExt: 5 17 19\n",
            (17, 19),
            id="as Linux writes it",
        ),
        pytest.param("TcpExt: A\nTcpExt: 1\n", None, id="nothing of IP"),
        pytest.param(None, None, id="no such file"),
    ],
)
def test_network_traffic(tmp_path: Path, text: str | None, want: tuple[int, int] | None) -> None:
    path = tmp_path / "netstat"
    if text is not None:
        path.write_text(text)
    assert network_traffic(path) == want
