"""What probes are told."""

import httpx
import pytest

from berth.runtime.clock import FakeClock
from berth.runtime.probes import ping
from berth.service.server.application import Application
from berth.service.server.health import (
    Probes,
    SchedulingProgress,
    health_endpoints,
    scheduler_probes,
)

PROBES: Probes = {
    "healthz": {"ping": ping},
    "readyz": {
        "leaderElection": ping,
        "shutdown": lambda: "process is shutting down",
        "sched-handler-sync": ping,
    },
}


@pytest.fixture
def client() -> httpx.AsyncClient:
    app = Application()
    app.include_router(health_endpoints(PROBES))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


FAILED = """\
[+]leaderElection ok
[-]shutdown failed: reason withheld
[+]sched-handler-sync ok
readyz check failed
"""
WITHOUT = """\
[+]leaderElection ok
[+]shutdown excluded: ok
[+]sched-handler-sync ok
readyz check passed
"""
UNKNOWN = """\
[+]ping excluded: ok
warn: some health checks cannot be excluded: no matches for "a", "b"
healthz check passed
"""


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        pytest.param("/healthz", 200, "ok", id="all is well"),
        pytest.param(
            "/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n", id="in more words"
        ),
        pytest.param("/healthz/ping", 200, "ok", id="one check"),
        pytest.param("/healthz/pong", 404, "404 page not found\n", id="no check"),
        pytest.param("/readyz", 500, FAILED, id="a failure names the check, not the reason"),
        pytest.param("/readyz?exclude=shutdown", 200, "ok", id="left out"),
        pytest.param("/readyz?verbose&exclude=shutdown", 200, WITHOUT, id="left out, in words"),
        pytest.param(
            "/healthz?verbose=0&exclude=b&exclude=ping&exclude=a", 200, UNKNOWN, id="unknown ones"
        ),
        pytest.param(
            "/readyz/shutdown",
            500,
            "internal server error: process is shutting down\n",
            id="one check that fails",
        ),
    ],
)
async def test_probes(client: httpx.AsyncClient, path: str, code: int, text: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.text) == (code, text)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_the_answers_are_counted(client: httpx.AsyncClient) -> None:
    for path in ("/readyz", "/readyz?exclude=leaderElection", "/healthz", "/healthz/ping"):
        await client.get(path)
    text = (await client.get("/metrics/slis")).text
    last = 'kubernetes_healthcheck{name="%s",type="%s"} %s'
    count = 'kubernetes_healthchecks_total{name="%s",status="%s",type="%s"} %s'
    assert {line for line in text.splitlines() if not line.startswith("#")} == {
        last % ("leaderElection", "readyz", "1.0"),
        last % ("shutdown", "readyz", "0.0"),
        last % ("sched-handler-sync", "readyz", "1.0"),
        last % ("ping", "healthz", "1.0"),
        count % ("leaderElection", "success", "readyz", "1.0"),
        count % ("shutdown", "error", "readyz", "2.0"),
        count % ("sched-handler-sync", "success", "readyz", "2.0"),
        count % ("ping", "success", "healthz", "1.0"),
    }
    assert (await client.delete("/metrics/slis")).text == "metrics reset\n"
    assert (await client.get("/metrics/slis")).text == ""


class Loop:
    """A scheduling loop as the check sees it, looked at by probes at times."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.waiting = 1
        self.attempts = 0
        self.check = SchedulingProgress(
            is_busy=lambda: self.waiting > 0,
            mark=lambda: self.attempts,
            clock=self.clock,
            patience=30.0,
        )

    def probe(self, after: float) -> bool:
        self.clock.advance(after)
        return not self.check()


def test_a_loop_that_stands_still() -> None:
    loop = Loop()
    assert [loop.probe(after=10) for _ in range(5)] == [True, True, True, False, False]
    loop.attempts += 1
    assert [loop.probe(after=10) for _ in range(4)] == [True, True, True, False]
    assert loop.check() == "no pod was tried for 30 s though some wait for it"


def test_a_loop_that_is_slow() -> None:
    loop = Loop()
    for _ in range(9):
        assert loop.probe(after=29)
        loop.attempts += 1


def test_a_loop_with_nothing_to_do() -> None:
    loop = Loop()
    loop.waiting = 0
    assert all(loop.probe(after=100) for _ in range(3))
    loop.waiting = 1
    assert [loop.probe(after=20) for _ in range(3)] == [True, True, False]
    loop.waiting = 0
    assert loop.probe(after=0)


def test_a_probe_that_comes_late_asks_again() -> None:
    loop = Loop()
    loop.attempts = 5
    assert [loop.probe(after=3_600), loop.probe(after=29)] == [True, True]


@pytest.mark.parametrize(
    ("elects", "healthz", "readyz"),
    [
        pytest.param(
            True,
            ["leaderElection"],
            ["leaderElection", "shutdown", "sched-handler-sync", "watches"],
            id="one of several replicas",
        ),
        pytest.param(False, ["ping"], ["shutdown", "sched-handler-sync", "watches"], id="alone"),
    ],
)
def test_what_probes_of_a_scheduler_check(
    elects: bool, healthz: list[str], readyz: list[str]
) -> None:
    probes = scheduler_probes(
        elects=elects,
        is_synced=lambda: False,
        is_terminating=lambda: True,
        progress=ping,
        watches=lambda: "caches are stale",
    )
    assert {name: list(checks) for name, checks in probes.items()} == {
        "healthz": healthz,
        "livez": ["ping", "scheduling-progress"],
        "readyz": readyz,
    }
    assert {name: check() for name, check in probes["readyz"].items() if check()} == {
        "shutdown": "process is shutting down",
        "sched-handler-sync": "handlers are not synced",
        "watches": "caches are stale",
    }
