"""The rules of spec §10.1-10.4, without any I/O."""

from typing import Any

import pytest

from berth.kube.objects.cluster import LeaseSpec
from berth.runtime.duration import Duration
from berth.scheduler.config.types import LeaderElection
from berth.service.leaderelection.candidate import Candidate, Lease, Now, Timing

TIMING = Timing(lease_duration=15.5, renew_deadline=10.0, retry_period=2.0)
START = 1_800_000_000.0
T0 = "2027-01-15T08:00:00.000000Z"
T1 = "2027-01-15T08:00:01.250000Z"


def at(seconds: float) -> Now:
    """*seconds* after the start; the wall clock is another one than the monotonic."""
    return Now(monotonic=50.0 + seconds, wall=START + seconds)


def spec(holder: str = "", **fields: Any) -> LeaseSpec:
    return LeaseSpec(
        holder_identity=holder,
        **{
            "lease_duration_seconds": 15,
            "acquire_time": T0,
            "renew_time": T0,
            "lease_transitions": 3,
            **fields,
        },
    )


def lease(of: LeaseSpec, **more: object) -> Lease:
    raw_spec = {name: getattr(of, name) for name in of.__struct_fields__}
    return Lease({"metadata": {"labels": {"a": "b"}}, "spec": {**raw_spec, **more}}, spec=of)


def candidate(
    *seen: tuple[float, LeaseSpec], wrote: tuple[float, LeaseSpec] | None = None
) -> Candidate:
    made = Candidate("me", timing=TIMING)
    for seconds, seen_spec in seen:
        made.saw(lease(seen_spec), at(seconds).monotonic)
    if wrote is not None:
        made.wrote(wrote[1], at(wrote[0]).monotonic)
    return made


MINE_NOW = spec("me", acquire_time=T1, renew_time=T1, lease_transitions=4)


def test_a_lease_that_does_not_exist_begins_with_no_transitions() -> None:
    assert candidate().first(at(1.25)) == LeaseSpec(
        holder_identity="me",
        lease_duration_seconds=15,
        acquire_time=T1,
        renew_time=T1,
        lease_transitions=0,
    )


@pytest.mark.parametrize(
    ("seen", "now", "want"),
    [
        pytest.param([(0, spec("other"))], 14.99, None, id="another's, seen less than 15 s ago"),
        pytest.param(
            [(-13.75, spec("other"))], 1.25, MINE_NOW, id="another's, unchanged for its duration"
        ),
        pytest.param(
            [(-13.75, spec("other")), (0, spec("other", renew_time=T1))],
            1.25,
            None,
            id="another's, renewed since",
        ),
        pytest.param(
            [(-13.75, spec("other")), (0, spec("other"))],
            1.25,
            MINE_NOW,
            id="another's, looked at again without a change",
        ),
        pytest.param(
            [(0, spec("other", renew_time="1990-01-01T00:00:00.000000Z"))],
            1.25,
            None,
            id="another's with a clock of long ago: clocks are not compared",
        ),
        pytest.param(
            [(0, spec("other", lease_duration_seconds=1))],
            1.25,
            MINE_NOW,
            id="the duration that counts is the holder's",
        ),
        pytest.param([(0, spec(""))], 1.25, MINE_NOW, id="nobody's: at once"),
        pytest.param(
            [(0, LeaseSpec())],
            1.25,
            spec("me", acquire_time=T1, renew_time=T1, lease_transitions=1),
            id="an empty Lease: at once",
        ),
        pytest.param(
            [(0, spec("me"))],
            1.25,
            spec("me", renew_time=T1),
            id="mine: since when and how often it changed hands is kept",
        ),
        pytest.param(
            [(-100, spec("me"))], 1.25, spec("me", renew_time=T1), id="mine, though it has expired"
        ),
    ],
)
def test_what_is_written_over_a_lease(
    seen: list[tuple[float, LeaseSpec]], now: float, want: LeaseSpec | None
) -> None:
    assert candidate(*seen).claim(lease(seen[-1][1]), at(now)) == want


def test_renewals_within_one_second_count() -> None:
    seen = candidate((0, spec("other", renew_time="2027-01-15T08:00:00.100000Z")))
    seen.saw(lease(spec("other", renew_time="2027-01-15T08:00:00.900000Z")), at(0.8).monotonic)

    assert seen.remaining(at(15.2).monotonic) == pytest.approx(0.6)


def test_fields_that_are_not_ours_are_part_of_the_record() -> None:
    seen = candidate((0, spec("other")))
    seen.saw(lease(spec("other"), preferredHolder="x"), at(10).monotonic)

    assert seen.remaining(at(10).monotonic) == 15


@pytest.mark.parametrize(
    ("known", "now", "want"),
    [
        pytest.param(candidate(), 0, None, id="nothing is known"),
        pytest.param(candidate((0, spec("other"))), 0, None, id="another's"),
        pytest.param(candidate(wrote=(0, spec("me"))), 1.25, spec("me", renew_time=T1), id="mine"),
        pytest.param(candidate(wrote=(0, spec("me"))), 15, None, id="mine, expired"),
        pytest.param(
            candidate((0, spec("other")), (1, spec("me"))),
            1.25,
            spec("me", renew_time=T1),
            id="mine, as was read",
        ),
    ],
)
def test_a_renewal_without_looking(known: Candidate, now: float, want: LeaseSpec | None) -> None:
    assert known.renewal(at(now)) == want


def test_giving_back_keeps_the_transitions() -> None:
    assert candidate((0, spec("me"))).released(at(1.25)) == LeaseSpec(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=T1,
        renew_time=T1,
        lease_transitions=3,
    )


def test_an_update_keeps_the_object_and_makes_the_spec_anew() -> None:
    held = lease(spec("me"), strategy="OldestEmulationVersion", preferredHolder="other")

    assert held.with_spec(MINE_NOW) == {"metadata": {"labels": {"a": "b"}}, "spec": MINE_NOW}


@pytest.mark.parametrize(
    ("lease_duration", "renew_deadline", "lease_seconds", "request_timeout", "write_limit"),
    [
        pytest.param(15.0, 10.0, 15, 5.0, 10.0, id="defaults"),
        pytest.param(15.9, 15.5, 15, 7.75, 15.0, id="others go by whole seconds"),
        pytest.param(2.0, 1.5, 2, 1.0, 1.5, id="no request has less than a second"),
    ],
)
def test_timing(
    lease_duration: float,
    renew_deadline: float,
    lease_seconds: int,
    request_timeout: float,
    write_limit: float,
) -> None:
    timing = Timing.of(
        LeaderElection(
            lease_duration=Duration.of(lease_duration), renew_deadline=Duration.of(renew_deadline)
        )
    )

    assert timing == Timing(lease_duration, renew_deadline, 2.0)
    assert timing.lease_seconds == lease_seconds
    assert timing.request_timeout == request_timeout
    assert timing.write_limit == write_limit
