"""Membership among several replicas that schedule at once, each its share of the nodes."""

from collections.abc import Awaitable, Callable

from berth.service.leaderelection.elector import LeaderElector


def member_lease(name: str, identity: str) -> str:
    """Return what the Lease of a member is called, with that of leader election called *name*."""
    return f"{name}-member-{identity}"


class Membership:
    """Two Leases that a replica holds while it schedules, to be used like one elector.

    The Lease of leader election is held by all members together, in the name of their mode: so
    neither a replica that schedules alone is active beside them, nor any with another number of
    slots, also while a Deployment is being changed from one to the other. Nobody gives it back;
    it expires after the last one. A member ends when it sees that one that schedules alone has had
    that Lease since it joined, though another member has it back: it would not know what that one
    has bound. The other Lease is the member's own, whose loss ends it; also when it was deleted.
    """

    mode: LeaderElector
    member: LeaderElector

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.has_left = False
        """Whether all slots have been given, so that others need not wait until we expire."""

    @property
    def leader(self) -> str:
        """Who holds the Lease of leader election as far as is known."""
        return self.mode.leader

    @property
    def is_leader(self) -> bool:
        """Whether this replica schedules, and is so sure of it that it may write."""
        return self.mode.is_leader and self.member.is_leader

    def may_write(self) -> bool:
        """Say whether a write may leave at this moment; see :class:`LeaderElector`."""
        return self.is_leader

    def is_overdue(self) -> bool:
        """Whether this replica has not renewed for too long."""
        return self.mode.is_overdue() or self.member.is_overdue()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait until members may schedule, join them, and run *lead* until that ends."""
        await self.mode.run(lambda: self.member.run(lead))
