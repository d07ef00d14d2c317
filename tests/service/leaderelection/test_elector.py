"""One replica and its lease, on a clock that the tests move: getting it, keeping it, losing it."""

import asyncio
import random

import pytest

from berth.runtime.clock import FakeClock
from berth.service.leaderelection.candidate import MOST_TRIES, Timing
from berth.service.leaderelection.elector import LeaderElector, LeadershipLostError
from tests.service.leaderelection.conftest import Run
from tests.service.leaderelection.lease_api import (
    DEAD,
    EVENTS,
    LEASE,
    LEASES,
    NO_TROUBLE,
    SILENT,
    TIMING,
    LeaseApi,
    Trouble,
    advance,
    ended,
    lead_for_ever,
    lock_of,
    make_elector,
    settle,
)

T0 = "2001-09-09T01:46:40.000000Z"
GET, CREATE, UPDATE, EVENT = ("GET", LEASE), ("POST", LEASES), ("PUT", LEASE), ("POST", EVENTS)


class Replica:
    """An elector that runs, and whether it is let lead."""

    def __init__(
        self, api: LeaseApi, clock: FakeClock, run: Run, *, recreates: bool = True
    ) -> None:
        self.masters: list[bool] = []
        self.slow_paths = 0
        self._leading = False
        self.elector = LeaderElector(
            lock_of(api, clock),
            identity="me",
            timing=TIMING,
            clock=clock,
            rng=random.Random(1),
            on_master=self.masters.append,
            on_slow_path=self._count_slow_path,
            recreates=recreates,
        )
        self.running = run(self.elector, self._lead)

    def leads(self) -> bool:
        """Whether it is let lead now."""
        return self._leading

    def _count_slow_path(self) -> None:
        self.slow_paths += 1

    async def _lead(self) -> None:
        self._leading = True
        try:
            await lead_for_ever()
        finally:
            self._leading = False


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def api(clock: FakeClock) -> LeaseApi:
    return LeaseApi(clock)


@pytest.fixture
async def replica(api: LeaseApi, clock: FakeClock, run: Run) -> Replica:
    """A replica that has just come to lead."""
    replica = Replica(api, clock, run)
    await settle()
    api.asked.clear()
    return replica


async def stop(replica: Replica) -> BaseException | None:
    replica.running.cancel()
    return await ended(replica.running)


async def test_the_first_replica_creates_the_lease_and_renews_it_at_once(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    replica = Replica(api, clock, run)
    await settle()

    assert api.asked == [GET, CREATE, EVENT, UPDATE]
    assert api.spec == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": T0,
        "renewTime": T0,
        "leaseTransitions": 0,
    }
    assert api.messages == ["me became leader"]
    assert replica.masters == [False, True]
    assert replica.elector.is_leader


async def test_the_leader_updates_every_retry_period_without_reading(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    await advance(clock, 6)

    assert api.asked == [UPDATE] * 3
    assert (api.spec["acquireTime"], api.spec["renewTime"]) == (T0, "2001-09-09T01:46:46.000000Z")
    assert replica.slow_paths == 0


async def test_a_conflict_makes_the_leader_read_and_go_on(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    assert api.lease is not None
    api.lease["metadata"]["labels"] = {"by": "somebody"}
    api.put(**api.spec)
    await advance(clock, 2)

    assert api.asked == [UPDATE, GET, UPDATE]
    assert api.lease["metadata"]["labels"] == {"by": "somebody"}
    assert replica.slow_paths == 1
    assert replica.leads()


async def test_a_lease_that_was_deleted_is_created_again(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.lease = None
    await advance(clock, 2)

    assert api.asked == [UPDATE, GET, CREATE]
    assert replica.leads()


async def test_a_lease_that_was_deleted_is_lost_if_that_is_what_it_means(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    replica = Replica(api, clock, run, recreates=False)
    await settle()
    api.lease = None
    await advance(clock, 2)

    assert str(await ended(replica.running)).endswith("nobody holds it")
    assert api.lease is None


async def test_a_lease_that_is_not_the_one_it_led_by_is_lost(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    assert api.lease is not None
    api.lease["metadata"]["uid"] = "another"
    api.put(**api.spec)
    await advance(clock, 2)

    assert str(await ended(replica.running)).endswith("another holds it")


async def test_a_standby_waits_for_the_lease_to_expire_and_a_retry_period_at_most(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    api.put(holderIdentity="other", leaseDurationSeconds=15, leaseTransitions=3)
    replica = Replica(api, clock, run)
    await advance(clock, 15)
    assert not replica.leads()
    looks = api.asked.count(GET)
    await advance(clock, 2)

    assert replica.leads()
    assert looks in range(4, 9)  # one at once, then each 2 to 4.4 s after the last
    assert api.spec["leaseTransitions"] == 4


async def test_a_standby_takes_a_lease_that_was_given_back_when_it_looks_next(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    replica = Replica(api, clock, run)
    await advance(clock, 1)
    api.put(holderIdentity="", leaseDurationSeconds=1, leaseTransitions=7)
    await advance(clock, 3.5)

    assert replica.leads()
    assert api.spec["leaseTransitions"] == 8


def test_how_long_a_standby_waits(api: LeaseApi, clock: FakeClock) -> None:
    elector = make_elector(api, clock)
    free = [elector._pause(0.0) for _ in range(1000)]
    held = [elector._pause(1.0) for _ in range(1000)]

    assert 2.0 <= min(free) < 2.01
    assert 4.39 < max(free) < 4.4
    assert 2.0 <= min(held) < 2.01
    assert 2.99 < max(held) < 3.0


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(DEAD, id="the API server is gone"),
        pytest.param(SILENT, id="the API server does not answer"),
    ],
)
async def test_without_a_renewal_leadership_ends_at_the_deadline(
    api: LeaseApi, clock: FakeClock, replica: Replica, trouble: Trouble
) -> None:
    api.trouble = lambda _method, _path: trouble
    await advance(clock, 11.75)
    assert replica.leads()
    assert not replica.elector.is_leader  # it still hopes, but writes no more
    await advance(clock, 0.25)

    assert not replica.leads()
    assert replica.masters == [False, True, False]
    await advance(clock, 20)  # it tries to give the lease back
    assert str(await ended(replica.running)) == (
        "lease kube-system/kube-scheduler is lost: not renewed within 10.0 s"
    )


async def test_trouble_that_passes_in_time_is_survived(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.trouble = lambda _method, _path: DEAD
    await advance(clock, 9)
    api.trouble = lambda _method, _path: NO_TROUBLE
    await advance(clock, 2)

    assert replica.leads()
    assert replica.elector.is_leader


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(Trouble(until_applied=1e9), id="requests"),
        pytest.param(Trouble(until_answered=1e9), id="answers"),
    ],
)
async def test_two_tries_that_are_lost_do_not_cost_leadership(
    api: LeaseApi, clock: FakeClock, replica: Replica, lost: Trouble
) -> None:
    """Each on a connection that is dead without telling; the next try does not wait for them."""

    def trouble(_method: str, path: str) -> Trouble:
        asked = sum(each == path for _, each in api.asked)
        return lost if path == LEASE and asked <= 2 else NO_TROUBLE

    api.trouble = trouble
    for _ in range(60):
        await advance(clock, 0.25)
        assert replica.elector.is_leader

    assert replica.leads()
    assert api.spec["holderIdentity"] == "me"


async def test_an_answer_counts_however_late(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    """As long as the lease may hold: the request has been accepted, whatever was given up."""
    api.trouble = lambda method, _path: (
        Trouble(until_answered=8.0) if method == "PUT" else NO_TROUBLE
    )
    await advance(clock, 60)

    assert replica.leads()
    assert replica.masters == [False, True]


async def test_a_write_that_is_met_on_the_server_counts_without_its_answer(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    """The next try is refused because the one before it has arrived."""
    api.trouble = lambda method, _path: (
        Trouble(until_answered=1e9) if method == "PUT" else NO_TROUBLE
    )
    for _ in range(240):
        await advance(clock, 0.25)
        assert replica.elector.is_leader

    assert api.asked[:4] == [UPDATE, UPDATE, GET, UPDATE]
    assert replica.slow_paths == 0


async def test_a_write_that_is_met_counts_from_when_it_was_sent(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    def trouble(method: str, _path: str) -> Trouble:
        return NO_TROUBLE if len(api.asked) < 4 else SILENT

    await advance(clock, 1.75)
    api.trouble = lambda _method, _path: Trouble(until_answered=1e9)
    await advance(clock, 0.25)  # a renewal is sent, and accepted
    api.trouble = trouble
    await advance(clock, 2)  # the next is refused, and the first is met
    assert api.asked == [UPDATE, UPDATE, GET, UPDATE]

    await advance(clock, 7.75)
    assert replica.elector.is_leader
    await advance(clock, 0.25)
    assert not replica.elector.is_leader


async def test_time_that_a_leader_stood_still_is_not_time_tried(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    """The server is silent when it is stopped, and back when it goes on."""
    api.trouble = lambda _method, _path: SILENT
    await advance(clock, 6)
    clock.advance(60)
    assert not replica.elector.may_write()
    await settle()
    api.trouble = lambda _method, _path: NO_TROUBLE
    await advance(clock, 2)

    assert replica.elector.is_leader
    assert replica.masters == [False, True]


async def test_few_tries_are_under_way_however_often_it_is_tried(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    timing = Timing(lease_duration=15.0, renew_deadline=10.0, retry_period=0.125)
    running = run(make_elector(api, clock, timing=timing))
    await settle()
    api.asked.clear()
    api.trouble = lambda _method, _path: SILENT
    await advance(clock, 10.25)

    assert api.asked.count(UPDATE) == MOST_TRIES
    await advance(clock, 20)
    assert isinstance(await ended(running), LeadershipLostError)


async def test_a_replica_that_is_unfit_lets_the_lease_expire(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    why = ""
    elector = LeaderElector(
        lock_of(api, clock),
        identity="me",
        timing=TIMING,
        clock=clock,
        rng=random.Random(1),
        why_unfit=lambda: why,
    )
    running = run(elector)
    await advance(clock, 3)
    assert elector.is_leader
    why = "it does nothing"
    await advance(clock, 1)

    assert not elector.may_write()
    assert str(await ended(running)).endswith("is lost: it does nothing")


async def test_a_renewal_begins_a_retry_period_after_the_last_one_began(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    """However long that one took: on a slow server, time must not be lost between them."""
    api.trouble = lambda _method, _path: Trouble(until_answered=1.5)
    await advance(clock, 8)

    assert api.asked == [UPDATE] * 4


async def test_a_renewal_after_a_look_counts_from_when_it_was_sent(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.put(**api.spec)  # somebody changed the Lease otherwise, so a look is needed
    api.trouble = lambda method, _path: (
        Trouble(until_answered=1.5) if method == "GET" else NO_TROUBLE
    )
    await advance(clock, 3.5)
    assert api.asked == [UPDATE, GET, UPDATE]
    api.trouble = lambda _method, _path: SILENT

    clock.advance(9.75)
    assert replica.elector.is_leader
    clock.advance(0.25)
    assert not replica.elector.is_leader


async def test_a_lease_that_another_holds_is_lost_at_once(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    before = dict(api.spec)
    await advance(clock, 2)

    error = await ended(replica.running)
    assert isinstance(error, LeadershipLostError)
    assert str(error) == "lease kube-system/kube-scheduler is lost: other holds it"
    assert api.spec == before
    assert api.messages == ["me became leader", "me stopped leading"]


async def test_a_leader_does_not_take_back_what_another_gave_up(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.put(holderIdentity="", leaseDurationSeconds=1)
    await advance(clock, 2)

    assert str(await ended(replica.running)).endswith("nobody holds it")


async def test_a_lease_that_names_us_again_after_another_is_lost(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    """The identity may be one that several share, of whom another took it back."""
    api.put(**(api.spec | {"leaseTransitions": 2}))
    await advance(clock, 2)

    assert str(await ended(replica.running)).endswith("another holds it")
    assert not replica.leads()
    assert api.spec["leaseTransitions"] == 2


async def test_stopping_gives_the_lease_back_when_nothing_runs_any_more(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    await advance(clock, 1)
    error = await stop(replica)

    assert isinstance(error, asyncio.CancelledError)
    assert api.asked == [GET, UPDATE, EVENT]
    assert api.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2001-09-09T01:46:41.000000Z",
        "renewTime": "2001-09-09T01:46:41.000000Z",
        "leaseTransitions": 0,
    }
    assert api.messages == ["me became leader", "me stopped leading"]
    assert replica.masters == [False, True, False]


@pytest.mark.parametrize(
    "holder", [pytest.param("other", id="another's"), pytest.param(None, id="deleted")]
)
async def test_stopping_leaves_alone_what_is_not_ours(
    api: LeaseApi, clock: FakeClock, replica: Replica, holder: str | None
) -> None:
    if holder is None:
        api.lease = None
    else:
        api.put(holderIdentity=holder, leaseDurationSeconds=15)
    await stop(replica)

    assert api.asked == [GET, EVENT]


async def test_stopping_does_not_wait_for_a_dead_server_longer_than_the_deadline(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.trouble = lambda _method, _path: SILENT
    replica.running.cancel()
    await advance(clock, 10)

    assert isinstance(await ended(replica.running), asyncio.CancelledError)


async def test_stopping_a_standby_touches_nothing(
    api: LeaseApi, clock: FakeClock, run: Run
) -> None:
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    replica = Replica(api, clock, run)
    await advance(clock, 1)
    await stop(replica)

    assert api.asked == [GET]
    assert replica.masters == [False]


async def test_what_the_work_raises_passes_through_and_the_lease_is_given_back(
    api: LeaseApi, clock: FakeClock
) -> None:
    async def fail() -> None:
        raise ValueError("a bug")

    error = await ended(make_elector(api, clock).run(fail))

    assert repr(error) == "ValueError('a bug')"
    assert api.spec["holderIdentity"] == ""


async def test_events_that_cannot_be_written_change_nothing(
    api: LeaseApi, clock: FakeClock, replica: Replica
) -> None:
    api.trouble = lambda _method, path: DEAD if path == EVENTS else NO_TROUBLE
    await advance(clock, 4)

    assert replica.leads()
    await stop(replica)
    assert api.spec["holderIdentity"] == ""
