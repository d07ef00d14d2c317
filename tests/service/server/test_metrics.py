"""``/metrics`` and ``/metrics/resources``, asked in process."""

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import Gauge

from berth.runtime.clock import Clock, FakeClock
from berth.runtime.tasks import TURN_SECONDS
from berth.scheduler.metrics.pod_resources import CONTENT_TYPE
from berth.service.server.metrics import FAMILIES, metrics_endpoints
from tests.builders import node, pod
from tests.harness import Harness
from tests.loop_turns import LoopTurns, watched_loop


@pytest.fixture
async def harness() -> Harness:
    made = Harness()
    made.put(node("n1"), pod("p", cpu=1))
    await made.until_idle()
    return made


async def get(
    harness: Harness,
    path: str,
    *,
    leads: bool = True,
    accept: str = "*/*",
    method: str = "GET",
    clock: Clock | None = None,
) -> httpx.Response:
    app = FastAPI()
    pods = harness.cluster.pods
    app.include_router(
        metrics_endpoints(
            harness.registry,
            pods=pods.values,
            is_leading=lambda: leads,
            reset=harness.metrics.reset,
            clock=clock or harness.clock,
        )
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        return await client.request(method, path, headers={"Accept": accept})


async def test_metrics(harness: Harness) -> None:
    answer = await get(harness, "/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    wanted = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0'
    assert wanted in answer.text.splitlines()


async def test_others_have_turns_between_families(harness: Harness) -> None:
    async with watched_loop() as turns:
        before = await turns_of(harness, "/metrics", turns)
        for number in range(3 * FAMILIES):
            harness.registry.register(Gauge(f"made_up_{number}", "", registry=None))
        assert await turns_of(harness, "/metrics", turns) == before + 3


class SlowClock(FakeClock):
    """By which every look at it is the end of a turn."""

    def monotonic(self) -> float:
        self.advance(TURN_SECONDS)
        return super().monotonic()


async def test_others_have_turns_between_pods_that_take_long(harness: Harness) -> None:
    harness.put(*(pod(f"p{number}", cpu=1) for number in range(10)))
    async with watched_loop() as turns:
        before = await turns_of(harness, "/metrics/resources", turns)
        after = await turns_of(harness, "/metrics/resources", turns, SlowClock(0.0))
        assert after >= before + 10


async def turns_of(
    harness: Harness, path: str, turns: LoopTurns, clock: Clock | None = None
) -> int:
    before = turns.count
    await get(harness, path, clock=clock)
    return turns.count - before


async def test_what_is_counted_by_labels_can_be_forgotten(harness: Harness) -> None:
    answer = await get(harness, "/metrics", method="DELETE")
    assert (answer.status_code, answer.text) == (200, "metrics reset\n")
    left = (await get(harness, "/metrics")).text
    assert "scheduler_schedule_attempts_total{" not in left
    assert "scheduler_scheduling_attempt_duration_seconds_count{" not in left
    assert "scheduler_pod_scheduling_attempts_count 1.0" in left.splitlines()


async def test_metrics_in_the_format_that_is_asked_for(harness: Harness) -> None:
    answer = await get(harness, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("leads", "lines"),
    [
        pytest.param(
            True,
            [
                'kube_pod_resource_request{namespace="default",pod="p",node="n1",'
                'scheduler="default-scheduler",priority="",resource="cpu",unit="cores"} 1'
            ],
            id="the leader tells of every pod",
        ),
        pytest.param(False, [], id="others of none"),
    ],
)
async def test_resources(harness: Harness, leads: bool, lines: list[str]) -> None:
    answer = await get(harness, "/metrics/resources", leads=leads)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert [line for line in answer.text.splitlines() if not line.startswith("#")] == lines
