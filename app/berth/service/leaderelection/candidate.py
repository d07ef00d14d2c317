"""A candidate: what it has seen of the lease, and what it writes next (spec §10.3). No I/O."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

import msgspec

from berth.kube.objects.cluster import LeaseSpec
from berth.runtime.clock import rfc3339_micro
from berth.scheduler.config.types import LeaderElection

JITTER_FACTOR: Final = 1.2
"""A standby waits up to this many retry periods longer than one."""

MIN_REQUEST_TIMEOUT: Final = 1.0

MOST_TRIES: Final = 8
"""So many tries to renew are begun, at most, until the renew deadline."""


class Timing(msgspec.Struct, frozen=True):
    """How long everything takes (spec §10.2), in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    @classmethod
    def of(cls, config: LeaderElection) -> "Timing":
        return cls(
            lease_duration=config.lease_duration.seconds,
            renew_deadline=config.renew_deadline.seconds,
            retry_period=config.retry_period.seconds,
        )

    @property
    def lease_seconds(self) -> int:
        """What the Lease says; others go by it, so it is what counts."""
        return int(self.lease_duration)

    @property
    def try_period(self) -> float:
        """How long after a try to renew the next one begins if the first is not answered."""
        return max(self.retry_period, self.renew_deadline / MOST_TRIES)

    @property
    def request_timeout(self) -> float:
        return max(self.renew_deadline / 2, MIN_REQUEST_TIMEOUT)

    @property
    def write_limit(self) -> float:
        """How long after a renewal was sent the leader may write.

        Others wait for the lease's duration after they have seen the renewal, which is later. What
        is left between the two is for writes on their way.
        """
        return min(self.renew_deadline, float(self.lease_seconds))


class Now(msgspec.Struct, frozen=True):
    """One moment by two clocks: *monotonic* to measure with, *wall* to write down."""

    monotonic: float
    wall: float

    @property
    def text(self) -> str:
        return rfc3339_micro(self.wall)


class Lease(msgspec.Struct, frozen=True):
    """A Lease as the API server sent it; ``raw`` is kept so that an update loses nothing."""

    raw: Mapping[str, Any]
    spec: LeaseSpec

    @property
    def term(self) -> Hashable:
        """What stays the same while nobody else takes the Lease, not even as another's namesake."""
        return self.raw.get("metadata", {}).get("uid"), self.spec.lease_transitions or 0

    def with_spec(self, spec: LeaseSpec) -> dict[str, Any]:
        """Return the object to send: this version of it, with a spec made anew (spec §10.1)."""
        return {**self.raw, "spec": spec}


class Candidate:
    """One replica's view of who leads.

    Whether a lease is valid goes by the local time at which it was last seen to change and the
    duration written in it. The times in it are never compared, so clocks may differ.
    """

    def __init__(self, identity: str, *, timing: Timing) -> None:
        self.identity = identity
        self._timing = timing
        self._observed = LeaseSpec()
        self._observed_at = float("-inf")
        self._fetched: Lease | None = None  # as it was last read
        self._term: Hashable = None  # in which we lead
        self._was_deposed = False

    @property
    def holder(self) -> str:
        """The identity of the leader as far as is known; "" if there is none."""
        return self._observed.holder_identity or ""

    @property
    def is_holder(self) -> bool:
        """Whether the Lease names us and, since we came to lead, has named nobody else.

        An identity may be one that several share, of whom another took the Lease back.
        """
        return self.holder == self.identity and not self._was_deposed

    def leads_by(self, lease: Lease) -> None:
        """Take notice that we lead from now on by *lease*."""
        self._term = lease.term

    def remaining(self, now: float) -> float:
        """Return for how many seconds the lease is still valid; 0 or less when it is not."""
        return self._observed_at + (self._observed.lease_duration_seconds or 0) - now

    def renewal(self, now: Now) -> LeaseSpec | None:
        """Return what to write without looking first; None unless we hold a valid lease."""
        if self.is_holder and self.remaining(now.monotonic) > 0:
            return self._held_since(self._observed, now)
        return None

    def saw(self, lease: Lease, now: float) -> None:
        """Take notice of a Lease that was read at *now*."""
        self._was_deposed |= self._term not in (None, lease.term)
        if self._fetched is None or lease.raw.get("spec") != self._fetched.raw.get("spec"):
            self._fetched = lease
            self._observed, self._observed_at = lease.spec, now

    def wrote(self, spec: LeaseSpec, now: float) -> None:
        """Take notice of our own write, which the server accepted by *now*."""
        self._observed, self._observed_at = spec, now

    def saw_none(self) -> None:
        """Take notice that the Lease is gone, and with it what it said of us."""
        self._observed = LeaseSpec()

    def first(self, now: Now) -> LeaseSpec:
        """Return the spec of a Lease that does not exist yet."""
        return self._new(now, acquired=now.text, transitions=0)

    def claim(self, lease: Lease, now: Now) -> LeaseSpec | None:
        """Return what to write over a *lease* that :meth:`saw` was told; None to leave it alone."""
        if self.is_holder:
            return self._held_since(lease.spec, now)
        if lease.spec.holder_identity and self.remaining(now.monotonic) > 0:
            return None
        transitions = (lease.spec.lease_transitions or 0) + 1
        return self._new(now, acquired=now.text, transitions=transitions)

    def released(self, now: Now) -> LeaseSpec:
        """Return the spec that lets anybody take the lease at once (spec §10.4)."""
        return LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now.text,
            renew_time=now.text,
            lease_transitions=self._observed.lease_transitions or 0,
        )

    def _held_since(self, held: LeaseSpec, now: Now) -> LeaseSpec:
        return self._new(now, acquired=held.acquire_time, transitions=held.lease_transitions or 0)

    def _new(self, now: Now, *, acquired: str | None, transitions: int) -> LeaseSpec:
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=self._timing.lease_seconds,
            acquire_time=acquired,
            renew_time=now.text,
            lease_transitions=transitions,
        )
