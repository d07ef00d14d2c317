"""What a replica holds, and what it may do about the Leases of members and slots. No I/O.

Every member renews one Lease, by the rules of leader election: it may write for the *write limit*
after a renewal was sent that arrived. Every slot has a Lease that names its holder and is not
renewed. All Leases are changed by compare-and-swap on their resource version:

- A member whose Lease was not seen to change for the lease duration may be **expelled**: its Lease
  is made to name nobody. Its next renewal fails then, for ever, also once the Lease is deleted; it
  comes back as another member.
  By that time its write limit has passed, and what it sent before has arrived or never will: that
  is the fence of leader election.
- A slot may be **taken** when it names nobody, or a member that was expelled.
- A slot is **given** by its holder once the last bind under way for it was answered.

A slot is held from the answer to one's own write on, never by what is read: a write whose answer
was lost may be carried out late, and only another write makes sure that it is not.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from berth.scheduler.shards.assignment import assignment


class Leases(msgspec.Struct, frozen=True):
    """What the Leases say at one moment."""

    slots: Sequence[str]
    """By slot, the holder; "" if there is none."""
    members: Mapping[str, Hashable]
    """Of members that were not expelled, by identity: what differs after each renewal."""

    def holder(self, slot: int) -> str:
        """Return the member that holds *slot*; "" if it may be taken."""
        name = self.slots[slot]
        return name if name in self.members else ""


class Renewal(msgspec.Struct, frozen=True):
    """A renewal of another member, and when it was first seen by the own clock."""

    record: Hashable
    seen_at: float


class Claims(msgspec.Struct, frozen=True):
    """One member's view; changed by making another.

    ``leaving`` are slots that are ``held`` and about to be given: nothing new is bound to them.
    """

    me: str
    duration: float
    """How long, in seconds, a member is left alone whose Lease does not change."""
    held: frozenset[int] = frozenset()
    leaving: frozenset[int] = frozenset()
    others: Mapping[str, Renewal] = msgspec.field(default_factory=dict)
    pools: int = 0
    """So many of the last slots are for members of pools; see :func:`assignment`."""

    @property
    def active(self) -> frozenset[int]:
        """The slots whose nodes may be bound to, while the fence allows to write at all."""
        return self.held - self.leaving

    def saw(self, leases: Leases, now: float) -> "Claims":
        """Take notice of *leases* that were read at *now*.

        A slot that names somebody else although nobody expelled us was written by hand.
        """
        others = {
            member: known
            if (known := self.others.get(member)) is not None and known.record == record
            else Renewal(record, now)
            for member, record in leases.members.items()
            if member != self.me
        }
        held = frozenset(slot for slot in self.held if leases.holder(slot) == self.me)
        return replace(self, held=held, leaving=self.leaving & held, others=others)

    def expired(self, now: float) -> list[str]:
        """Return the members that may be expelled."""
        return [
            member
            for member, renewal in self.others.items()
            if now - renewal.seen_at >= self.duration
        ]

    def may_take(self, slot: int, leases: Leases) -> bool:
        """Whether a write may make us the holder of *slot*; what was written in vain may be ours.

        The write must be the one that :meth:`took` is told of, however the Lease came to name us.
        """
        is_member = self.me in leases.members
        return is_member and slot not in self.held and leases.holder(slot) in ("", self.me)

    def to_take(self, leases: Leases) -> Iterator[int]:
        """Yield the slots that we should have and may take."""
        for slot, member in enumerate(self._wanted(leases)):
            if member == self.me and self.may_take(slot, leases):
                yield slot

    def to_leave(self, leases: Leases) -> frozenset[int]:
        """Return the slots that we hold and should not."""
        wanted = self._wanted(leases)
        return frozenset(slot for slot in self.active if wanted[slot] not in ("", self.me))

    def unclaimed(self, leases: Leases) -> Iterator[int]:
        """Yield the slots that name us, that we do not hold and should not have."""
        for slot, member in enumerate(self._wanted(leases)):
            if leases.holder(slot) == self.me != member and slot not in self.held:
                yield slot

    def took(self, slot: int) -> "Claims":
        """A write that makes us the holder of *slot* was answered."""
        return replace(self, held=self.held | {slot}, leaving=self.leaving - {slot})

    def leave(self, slots: frozenset[int]) -> "Claims":
        """Bind nothing new to *slots*."""
        return replace(self, leaving=self.leaving | (slots & self.held))

    def give(self, slot: int) -> "Claims":
        """The last bind under way for *slot* was answered; a write that gives it may be sent."""
        return replace(self, held=self.held - {slot}, leaving=self.leaving - {slot})

    def _wanted(self, leases: Leases) -> Sequence[str]:
        holders = [leases.holder(slot) for slot in range(len(leases.slots))]
        return assignment(holders, leases.members.keys(), pools=self.pools)
