"""The loop that follows the Leases: takes slots, gives them, and expels members that are silent."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.informer.reflector import Reflector
from berth.kube.objects.devices import RESOURCE_CLAIMS
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.config.types import LeaderElection
from berth.scheduler.framework.kind import PODS
from berth.scheduler.shards.claims import Claims, Leases
from berth.scheduler.shards.parts import ShardParts
from berth.service.leaderelection.candidate import Timing
from berth.service.shards.catch_up import catch_up
from berth.service.shards.leases import ShardLeases
from berth.service.shards.records import NodeRecords

log = logging.getLogger(__name__)

WRITTEN: Final = frozenset(
    {
        PODS.path,
        RESOURCE_CLAIMS,
        "/api/v1/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
    }
)
"""Kinds that say what the last holder of a slot has given away."""

SOON: Final = 0.2
"""Seconds until Leases are looked at again while slots are being given."""
MOST_CHANGES: Final = 100
LEAVE_SECONDS: Final = 5.0
"""For binds under way to be answered when this replica ends."""


class Change(msgspec.Struct, frozen=True):
    """Something that was done to the Lease of a slot or of another member."""

    at: float
    """By the wall clock."""
    what: Literal["took", "gave", "expelled"]
    slot: int | None
    member: str
    """Who was expelled, or whose the slot was before."""


class Keeper:
    """Keeps the slots of one replica, for one :meth:`run`."""

    def __init__(
        self,
        leases: ShardLeases,
        parts: ShardParts,
        *,
        identity: str,
        timing: Timing,
        catch_up: Callable[[], Awaitable[bool]],
        records: NodeRecords,
        clock: Clock,
    ) -> None:
        """*catch_up* says whether all is known that was written before it was called."""
        slots = parts.ownership.slots
        self.claims = Claims(identity, float(timing.lease_seconds), pools=len(slots.pools))
        self.seen = Leases([""] * slots.total, {})
        """The Leases as they were read last."""
        self.moves = 0
        """Slots taken and given so far."""
        self.expelled = 0
        self.changes: deque[Change] = deque(maxlen=MOST_CHANGES)
        """The last ones, the latest at the end."""
        self._leases = leases
        self._parts = parts
        self._period = timing.retry_period
        self._catch_up = catch_up
        self._records = records
        self._has_more = False
        """Whether there are nodes to record at once."""
        self._clock = clock
        self._behind: frozenset[int] = frozenset()
        """Slots that were taken before all was known that the last holder wrote."""

    async def run(self) -> None:
        """Follow the Leases, for ever."""
        while True:
            try:
                await self.step()
            except ApiError as exc:
                log.warning("no access to the Leases of shards", extra={"error": str(exc)})
            is_busy = self.claims.leaving or self._behind or self._has_more
            await self._clock.sleep(SOON if is_busy else self._period)

    async def step(self) -> None:
        """Read the Leases once, and do what follows from them. Raises ApiError."""
        leases = await self._leases.read()
        now = self._clock.monotonic()
        self.seen = leases
        self._know(self.claims.saw(leases, now))
        self._close_pools(leases)
        for member in self.claims.expired(now):
            if await self._leases.expel(member):
                self.expelled += 1
                self._changed("expelled", None, member)
                log.warning("member expelled: its Lease has expired", extra={"member": member})
        self._know(self.claims.leave(self.claims.to_leave(leases)))
        await self._give_drained()
        for slot in self.claims.unclaimed(leases):
            await self._leases.give(slot)
        for slot in self.claims.to_take(leases):
            if await self._leases.take(slot):
                self._behind |= {slot}
                self.moves += 1
                self._changed("took", slot, leases.slots[slot])
                self._know(self.claims.took(slot))
        if self._behind and await self._catch_up():
            self._behind = frozenset()
            self._know(self.claims)
        await self._leases.sweep()
        self._has_more = await self._records.write(now)

    def decided_by(self, pod: Pod) -> str:
        """Say which replica decides about a waiting *pod*; "" if it is this one."""
        slot = self._parts.slot_of_pod(pod)
        if slot in self._parts.ownership.active:
            return ""
        return self.seen.holder(slot) or f"whoever takes slot {slot}"

    def silent_for(self, member: str) -> float:
        """Return for how many seconds the Lease of *member* has not changed; 0 for our own."""
        renewal = self.claims.others.get(member)
        return 0.0 if renewal is None else self._clock.monotonic() - renewal.seen_at

    async def leave(self) -> bool:
        """Give all slots; whether every bind under way was answered in time, and they are given."""
        self._know(self.claims.leave(self.claims.held))
        deadline = self._clock.monotonic() + LEAVE_SECONDS
        try:
            await self._leases.read()
            while self.claims.held and self._clock.monotonic() < deadline:
                await self._give_drained()
                if self.claims.held:
                    await self._clock.sleep(SOON)
        except ApiError as exc:
            log.warning("slots not given back", extra={"error": str(exc)})
        return not self.claims.held

    def _changed(
        self, what: Literal["took", "gave", "expelled"], slot: int | None, member: str
    ) -> None:
        self.changes.append(Change(self._clock.now(), what, slot, member))

    def _close_pools(self, leases: Leases) -> None:
        slots = self._parts.ownership.slots
        of_pools = range(slots.number, slots.total)
        closed = frozenset(slot for slot in of_pools if not leases.holder(slot))
        self._parts.close(closed)

    async def _give_drained(self) -> None:
        for slot in sorted(self.claims.leaving):
            if self._parts.is_drained(slot):
                self._know(self.claims.give(slot))
                self.moves += 1
                self._changed("gave", slot, self.claims.me)
                await self._leases.give(slot)

    def _know(self, claims: Claims) -> None:
        before, self.claims = self.claims, claims
        self._behind &= claims.held
        if len(claims.held) != len(before.held):
            log.info(
                "slots held", extra={"slots": len(claims.held), "leaving": len(claims.leaving)}
            )
        self._parts.become(claims.active - self._behind)


def keeper_of(
    client: Api,
    config: LeaderElection,
    parts: ShardParts,
    *,
    identity: str,
    reflectors: Mapping[str, Reflector[Any]],
    clock: Clock,
) -> Keeper:
    """Make the keeper of the member *identity*, whose Leases are beside that of leader election."""
    timing = Timing.of(config)
    leases = ShardLeases(
        client,
        namespace=config.resource_namespace,
        name=config.resource_name,
        identity=identity,
        num_slots=parts.ownership.slots.total,
        timeout=timing.request_timeout,
        clock=clock,
    )

    async def know_all() -> bool:
        written = [reflector for path, reflector in reflectors.items() if path in WRITTEN]
        return await catch_up(client, [each for each in written if each.synced.is_set()], clock)

    records = NodeRecords(client, parts.ownership, patience=float(timing.lease_seconds))
    return Keeper(
        leases,
        parts,
        identity=identity,
        timing=timing,
        catch_up=know_all,
        records=records,
        clock=clock,
    )
