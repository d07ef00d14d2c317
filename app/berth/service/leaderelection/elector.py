"""The loops of leader election: get the lease, keep it, give it back (spec §10.2-10.5)."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from berth.kube.client.errors import ApiError
from berth.kube.objects.cluster import LeaseSpec
from berth.runtime.clock import Clock
from berth.runtime.loop_thread import LoopThread, call_in
from berth.service.leaderelection.candidate import JITTER_FACTOR, Candidate, Lease, Now, Timing
from berth.service.leaderelection.lease_lock import LeaseLock

log = logging.getLogger(__name__)

T = TypeVar("T")


class LeadershipLostError(Exception):
    """This replica led and does so no more; the message says why."""


class LeaderElector:
    """Leads while it holds the lease. For one :meth:`run`.

    *on_master* is called when leadership begins and ends, *on_slow_path* for every renewal that had
    to read the Lease first. *clock* should go on while the machine is suspended
    (:class:`berth.runtime.clock.BootClock`), or a resumed leader takes its lease for fresh.
    *why_unfit* is asked before each renewal; if it gives a reason, the lease is let expire.

    *gives_back* is asked at the end whether others may have the lease at once. With *recreates*
    a leader whose Lease was deleted makes it anew, as kube-scheduler does; else it has lost it.

    With a *thread*, all that is done for the lease is done in that, as are those calls, and
    *lock* must belong to its loop. The fence (:attr:`is_leader`, :meth:`may_write`,
    :meth:`is_overdue`) may be asked in any thread.
    """

    def __init__(
        self,
        lock: LeaseLock,
        *,
        identity: str,
        timing: Timing,
        clock: Clock,
        rng: random.Random,
        on_master: Callable[[bool], None] = lambda _leads: None,
        on_slow_path: Callable[[], None] = lambda: None,
        why_unfit: Callable[[], str] = lambda: "",
        thread: LoopThread | None = None,
        gives_back: Callable[[], bool] = lambda: True,
        recreates: bool = True,
    ) -> None:
        self.identity = identity
        self._lock = lock
        self._timing = timing
        self._write_limit = timing.write_limit
        self._clock = clock
        self._rng = rng
        self._on_master = on_master
        self._on_slow_path = on_slow_path
        self._why_unfit = why_unfit
        self._thread = thread
        self._gives_back = gives_back
        self._recreates = recreates
        self._candidate = Candidate(identity, timing=timing)
        self._lease: Lease | None = None  # as last read, or returned to a write
        self._renewed_at = float("-inf")  # when the last write that is known to hold was sent
        self._sent: dict[str, float] = {}  # when each write was sent, by its renewTime
        self._leads = False
        self._lost = asyncio.Event()
        self._why_lost = ""

    # The fence

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads, and is so sure of it that it may write."""
        # Asked before each write; so without further calls.
        age = self._clock.monotonic() - self._renewed_at
        return self._leads and age < self._write_limit

    @property
    def leader(self) -> str:
        """The identity of the holder of the lease as far as is known; "" if there is none."""
        return self._candidate.holder

    def is_overdue(self) -> bool:
        """Whether this replica would still lead, but has not renewed for too long."""
        return self._leads and not self._is_fresh

    def may_write(self) -> bool:
        """Say whether a write of the leader may leave at this moment.

        Ask immediately before sending: between a frozen process' question and its request, another
        replica may have come to lead. A refusal holds until the lease is renewed, which shows that
        nobody led meanwhile.
        """
        return self.is_leader

    @property
    def _age(self) -> float:
        return self._clock.monotonic() - self._renewed_at

    @property
    def _is_fresh(self) -> bool:
        return self._age < self._write_limit

    def _lose(self, why: str) -> None:
        """End leadership: nothing may be written from here on, and :meth:`run` ends."""
        if self._leads:
            self._leads = False
            self._why_lost = why
            self._lost.set()

    # The loops

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run *lead* as long as it is held.

        When it is lost, *lead* is cancelled and LeadershipLostError raised. When this is cancelled,
        *lead* is cancelled, and the lease is given back once that has ended. What *lead* raises
        passes through, after the lease was given back too.
        """
        if self._thread is None:
            await self._run(lead)
            return
        here = asyncio.get_running_loop()
        await self._thread.call(lambda: self._run(lambda: call_in(here, lead)))

    async def _run(self, lead: Callable[[], Awaitable[None]]) -> None:
        who = {"lease": self._lock.key, "identity": self.identity}
        self._on_master(False)  # noqa: FBT003 - a hook for a gauge
        log.info("waiting to lead", extra=who)
        await self._acquire()
        assert self._lease is not None
        self._candidate.leads_by(self._lease)
        self._leads = True
        self._on_master(True)  # noqa: FBT003 - a hook for a gauge
        log.info("became leader", extra=who)
        try:
            await self._lead_until_lost(lead)
        finally:
            self._on_master(False)  # noqa: FBT003 - a hook for a gauge
            log.info("stopped leading", extra=who)
            await self._retire()

    async def _acquire(self) -> None:
        """Try until the lease is ours and that is no old news."""
        while True:
            begun = self._clock.monotonic()
            if await self._acquire_or_renew() and self._is_fresh:
                return
            await self._clock.sleep(self._pause(self._candidate.remaining(begun)))

    def _pause(self, remaining: float) -> float:
        """Return how long a standby waits: by chance 1 to 2.2 retry periods.

        Not so long, though, that the attempt which finds a lease expired that is valid for
        *remaining* seconds comes later than a retry period after that.
        """
        shortest = self._timing.retry_period
        longest = shortest * (1 + JITTER_FACTOR)
        if remaining > 0:
            longest = min(longest, remaining + shortest)
        return shortest + self._rng.random() * (longest - shortest)

    async def _lead_until_lost(self, lead: Callable[[], Awaitable[None]]) -> None:
        leading = asyncio.create_task(_called(lead), name="lead")
        renewing = asyncio.create_task(self._renew(), name="renew lease")
        lost = asyncio.create_task(self._lost.wait(), name="lease is lost")
        recording = asyncio.create_task(self._record("became leader"), name="leader event")
        try:
            await asyncio.wait((leading, renewing, lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leads = False  # before anybody else gets a turn
            await _stop(leading, renewing, lost, recording)
        failed = [task for task in (renewing, leading) if not task.cancelled()]
        error = next(filter(None, (task.exception() for task in failed)), None)
        if self._lost.is_set():
            raise LeadershipLostError(
                f"lease {self._lock.key} is lost: {self._why_lost}"
            ) from error  # what fails in the same moment fails because of it
        if error is not None:
            raise error

    async def _renew(self) -> None:
        """Renew every retry period, counted from one beginning to the next, until a round fails."""
        while await self._renew_round():
            await self._clock.sleep(max(self._timing.retry_period - self._age, 0.0))

    async def _renew_round(self) -> bool:
        """Try until the lease is renewed; False when it is lost."""
        if why := self._why_unfit():
            self._lose(why)
        elif not await self._try_until_settled():
            self._lose(f"not renewed within {self._timing.renew_deadline} s")
        elif not self._candidate.is_holder:
            holder = self._candidate.holder or "nobody"
            self._lose(f"{'another' if holder == self.identity else holder} holds it")
        return self._leads

    async def _try_until_settled(self) -> bool:
        """Begin a try every now and then until the lease is renewed or seen to be another's.

        A try goes on beside those after it: its answer may come late, but a request on a connection
        that is dead, or to a server that is, must not take the time of the others. Of several
        that arrive the API server accepts one, by the resource version. False if all are in vain
        until the renew deadline, which does not count the time that this process stood still.
        """
        tries: set[asyncio.Task[bool]] = set()
        left = self._timing.renew_deadline
        try:
            while left > 0:
                period = min(self._timing.try_period, left)
                begun = self._clock.monotonic()
                tries.add(asyncio.create_task(self._acquire_or_renew(), name="try to renew"))
                if await self._has_settled(tries, period):
                    return True
                if self._clock.monotonic() - begun < 2 * period:
                    left -= period
            return False
        finally:
            await _stop(*tries)

    async def _has_settled(self, tries: set[asyncio.Task[bool]], seconds: float) -> bool:
        """Return after *seconds*, or at once when one of *tries* has settled it.

        Those that have ended in vain are taken out of *tries*.
        """
        period = asyncio.create_task(self._clock.sleep(seconds), name="period")
        try:
            while True:
                await asyncio.wait((period, *tries), return_when=asyncio.FIRST_COMPLETED)
                ended = {try_ for try_ in tries if try_.done()}
                tries -= ended
                results = [task.result() for task in ended]
                if any(results) or not self._candidate.is_holder:
                    return True
                if period.done():
                    return False
        finally:
            await _stop(period)

    async def _acquire_or_renew(self) -> bool:
        """Make one attempt (spec §10.3); whether the lease is ours now."""
        now = self._now()
        try:
            return await self._renew_at_once(now) or await self._look_and_claim()
        except ApiError as exc:
            log.warning("no access to lease", extra={"lease": self._lock.key, "error": str(exc)})
            return False

    @property
    def _wait(self) -> float:
        """Seconds to wait for an answer: a leader's late one counts as long as the lease may hold,
        and others are tried beside it; a standby has nothing else to do meanwhile."""
        timing = self._timing
        return float(timing.lease_seconds) if self._leads else timing.request_timeout

    async def _renew_at_once(self, now: Now) -> bool:
        """Renew without reading the Lease; it is read next when this does not work."""
        spec = self._candidate.renewal(now)
        if spec is None or self._lease is None:
            return False
        try:
            await self._update(self._lease, spec, now)
        except ApiError as exc:
            log.info("lease not renewed at once", extra={"error": str(exc)})
            return False
        return True

    async def _look_and_claim(self) -> bool:
        lease = await self._lock.get(timeout=self._timing.request_timeout, wait=self._wait)
        now = self._now()  # what is written counts from here, however long the look took
        if lease is None:
            if self._leads and not self._recreates:
                self._candidate.saw_none()
                return False
            spec = self._candidate.first(now)
            self._sends(spec, now)
            created = await self._lock.create(
                spec, timeout=self._timing.request_timeout, wait=self._wait
            )
            self._wrote(created, spec, now)
            if self._leads:
                self._candidate.leads_by(created)
            return True
        if self._saw(lease):
            return True
        if self._candidate.is_holder:
            self._on_slow_path()
        elif self._leads:
            return False  # somebody led since; what we know may be old, so we do not take it back
        claim = self._candidate.claim(lease, now)
        if claim is None:
            return False
        await self._update(lease, claim, now)
        return True

    async def _update(self, lease: Lease, spec: LeaseSpec, now: Now) -> None:
        self._sends(spec, now)
        self._wrote(
            await self._lock.update(
                lease, spec, timeout=self._timing.request_timeout, wait=self._wait
            ),
            spec,
            now,
        )

    def _sends(self, spec: LeaseSpec, now: Now) -> None:
        """Remember what is about to be written: it may be met before its answer is."""
        oldest = now.monotonic - self._timing.lease_seconds
        self._sent = {text: at for text, at in self._sent.items() if at > oldest}
        if spec.renew_time is not None:  # the earlier one, should the wall clock have been set back
            self._sent.setdefault(spec.renew_time, now.monotonic)

    def _saw(self, lease: Lease) -> bool:
        """Take notice of a Lease that was read; whether it has a write of ours that was not known
        to have arrived."""
        before, known = self._candidate.holder, self._renewed_at
        self._lease = lease
        self._candidate.saw(lease, self._clock.monotonic())
        holder = self._candidate.holder
        if self._candidate.is_holder:
            self._renewed_at = max(known, self._sent.get(lease.spec.renew_time or "", known))
        elif holder != before:
            log.info("another leads", extra={"lease": self._lock.key, "holder": holder or "nobody"})
        return self._renewed_at > known

    def _wrote(self, lease: Lease, spec: LeaseSpec, now: Now) -> None:
        self._lease = lease
        self._candidate.wrote(spec, self._clock.monotonic())
        self._renewed_at = max(self._renewed_at, now.monotonic)

    # The end

    async def _retire(self) -> None:
        """Release the lease and record it, but do not wait long for a dead server."""
        try:
            await self._within(self._timing.renew_deadline, self._say_farewell)
        except TimeoutError as exc:
            log.warning("no farewell", extra={"lease": self._lock.key, "error": str(exc)})

    async def _say_farewell(self) -> None:
        try:
            if self._gives_back():
                await self._release()
        except ApiError as exc:
            log.warning("lease not given back", extra={"lease": self._lock.key, "error": str(exc)})
        await self._record("stopped leading")

    async def _release(self) -> None:
        """Let anybody take the lease, if it is ours (spec §10.4)."""
        lease = await self._lock.get(timeout=self._timing.request_timeout, wait=self._wait)
        if lease is None:
            return
        self._saw(lease)
        if self._candidate.is_holder:
            spec = self._candidate.released(self._now())
            self._lease = await self._lock.update(
                lease, spec, timeout=self._timing.request_timeout, wait=self._wait
            )
            log.info("lease given back", extra={"lease": self._lock.key})

    async def _record(self, what: str) -> None:
        """Record an event; that it cannot be is no reason for anything."""
        assert self._lease is not None
        try:
            await self._lock.event(
                self._lease, f"{self.identity} {what}", timeout=self._timing.request_timeout
            )
        except ApiError as exc:
            log.warning("event not recorded", extra={"note": what, "error": str(exc)})

    def _now(self) -> Now:
        return Now(self._clock.monotonic(), self._clock.now())

    async def _within(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """Return what *work* does; TimeoutError when it takes longer than *seconds*."""
        working = asyncio.create_task(_called(work), name="before the deadline")
        timer = asyncio.create_task(self._clock.sleep(seconds), name="deadline")
        try:
            await asyncio.wait((working, timer), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise TimeoutError(f"took longer than {seconds} s")
            return working.result()
        finally:
            await _stop(working, timer)


async def _called(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
