"""Faults of binding: whatever is lost on the way, a pod is bound once and its room counted once."""

import pytest

from berth.scheduler.api_writer import MAX_BINDS
from berth.scheduler.cache.comparer import Comparison
from berth.scheduler.schedule_one import ATTEMPTS_PER_TURN
from tests.faults.proxy import Answer, Fault
from tests.faults.world import world

pytestmark = pytest.mark.wall

BIND = r"/binding$"
ONE_POD = r"/pods/p\d+$"


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([], id="nothing goes wrong"),
        pytest.param(
            [Fault("POST", BIND, times=3, forwarded=False, reset=True)],
            id="reset before it arrives",
        ),
        pytest.param(
            [Fault("POST", BIND, times=3, reset=True)], id="bound, but the answer is lost"
        ),
        pytest.param(
            [
                Fault("POST", BIND, times=3, reset=True),
                Fault("GET", ONE_POD, times=4, forwarded=False, reset=True),
            ],
            id="the answer is lost, and at first nobody can say what became of it",
        ),
        pytest.param(
            [
                Fault("POST", BIND, times=3, reset=True),
                Fault("GET", ONE_POD, times=4, forwarded=False, answer=Answer(503)),
            ],
            id="the answer is lost, and the server is unavailable when asked",
        ),
        pytest.param(
            [Fault("POST", BIND, times=3, forwarded=False, answer=Answer(500))], id="500, not bound"
        ),
        pytest.param([Fault("POST", BIND, times=3, answer=Answer(500))], id="500, but bound"),
        pytest.param(
            [Fault("POST", BIND, times=3, forwarded=False, answer=Answer(409))],
            id="conflict for no reason",
        ),
        pytest.param([Fault("POST", BIND, times=3, answer=Answer(409))], id="conflict, but bound"),
        pytest.param(
            [
                Fault(
                    "POST", BIND, times=5, forwarded=False, answer=Answer(429, {"Retry-After": "1"})
                )
            ],
            id="too many requests, come again",
        ),
        pytest.param(
            [Fault("POST", BIND, times=20, forwarded=False, answer=Answer(429))],
            id="too many requests, without saying when to come again",
        ),
        pytest.param([Fault("POST", BIND, times=4, delay=2.0)], id="slow answers"),
        pytest.param(
            [Fault("PATCH|POST", r"/status$|/events$", times=50, answer=Answer(500))],
            id="nothing can be told",
        ),
    ],
)
async def test_each_pod_is_bound_once(faults: list[Fault]) -> None:
    async with world("n1", "n2") as cluster:
        cluster.proxy.faults = faults
        await cluster.create_pods(*(f"p{i}" for i in range(10)))

        await cluster.check()

        assert [fault for fault in faults if not fault.hits] == []


def until_bound(line: bytes) -> list[bytes] | None:
    """Let a watch break where it would tell of a bound pod."""
    return None if b'"nodeName":' in line else [line]


async def test_room_is_not_given_away_while_a_bind_is_in_doubt() -> None:
    """The node has room for one. Its bind succeeded, but for a while nobody says so."""
    async with world("n1", cpu=1) as cluster:
        blind = Fault("GET", r"/pods\?.*watch=true", times=1_000, lines=until_bound)
        in_doubt = Fault("GET", r"/pods/first$", times=1_000, forwarded=False, reset=True)
        cluster.proxy.faults = [Fault("POST", BIND, reset=True), in_doubt, blind]
        cluster.proxy.reset_all()
        await cluster.until(lambda: blind.hits > 0)
        await cluster.create_pods("first", cpu="1")
        await cluster.until(lambda: blind.hits > 1)
        await cluster.until(lambda: in_doubt.hits > 2)
        assert cluster.service.cache.counts()["assumed_pods"] == 1

        cluster.proxy.faults = []
        await cluster.create_pods("second", cpu="1")
        cluster.pods.remove("/api/v1/namespaces/default/pods/second")
        await cluster.until(
            lambda: cluster.service.queue.sub_queues.pending_counts()["unschedulable"] == 1
        )
        await cluster.until(lambda: cluster.service.is_idle)

        assert dict(cluster.proxy.bound) == dict.fromkeys(cluster.pods, 1)
        assert await cluster.comparison() == Comparison()


async def test_a_bind_that_fails_only_in_words_does_not_stop_the_scheduler() -> None:
    """The pod is seen bound by the watch, and still the binding's end is an error."""
    async with world("n1") as cluster:
        lost = Fault("POST", BIND, answer=Answer(500))
        forbidden = Fault("GET", ONE_POD, delay=0.3, forwarded=False, answer=Answer(403))
        cluster.proxy.faults = [lost, forbidden]
        await cluster.create_pods("p0", "p1")

        await cluster.check()

        assert (lost.hits, forbidden.hits) == (1, 1)


async def test_a_slow_server_is_not_sent_more_and_more_binds() -> None:
    async with world("n1", "n2") as cluster:
        cluster.proxy.faults = [Fault("POST", "/binding$", times=1_000, delay=0.5)]
        names = [f"p{i}" for i in range(3 * MAX_BINDS)]
        await cluster.create_pods(*names, cpu="1m")
        most = 0

        def all_bound() -> bool:
            nonlocal most
            most = max(most, cluster.service.scheduler.binding_count)
            return cluster.service.scheduler.binding_cycle.scheduled == len(names)

        await cluster.until(all_bound)
        # The bindings of one turn of attempts begin together.
        assert MAX_BINDS <= most < MAX_BINDS + ATTEMPTS_PER_TURN
        await cluster.check()
