"""Pods that get nodes together: one step that gives them to all, or leaves none with one."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.cycle_state import Gang
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import CLEAR, Failed, Outcome, Placed, Unschedulable
from berth.scheduler.profile.profile import Profile
from berth.scheduler.reservation import Reservation

NO_EXTENDERS: Final = "extenders cannot be called while a gang is scheduled in one step"


class Member(msgspec.Struct, frozen=True):
    """One pod of a gang in the attempt that is made for all of them."""

    queued: QueuedPodInfo
    cycle: Cycle
    outcome: Outcome
    reservation: Reservation | None = None
    """What it holds; None if it gets no node."""


class GangAttempt(msgspec.Struct, frozen=True):
    """What one attempt for a gang came to."""

    gang: Gang
    members: tuple[Member, ...]
    """Those that were tried, in this order. Those that fit hold their reservation."""
    missing: tuple[str, ...]
    """``namespace/name`` of those that do not wait, or are held back."""

    @property
    def is_complete(self) -> bool:
        """Whether all of the gang hold a reservation."""
        return not self.missing and all(member.reservation for member in self.members)

    def undo(self) -> list[tuple[QueuedPodInfo, Profile, Unschedulable | Failed]]:
        """Give back all reservations, the last first; return what each pod came to.

        All wait for whatever may help any of them. If one attempt failed with an error, all are
        tried again after their backoff. To be called when the attempt is not complete.
        """
        for member in reversed(self.members):
            if member.reservation is not None:
                member.reservation.undo.close()
        refused = [member.outcome for member in self.members if member.reservation is None]
        broke = any(isinstance(outcome, Failed) for outcome in refused)
        status = Status(
            Code.ERROR if broke else Code.UNSCHEDULABLE, (self._words(),), self.gang.plugin
        )
        diagnoses = [outcome.found.diagnosis for outcome in refused]
        rejectors = {
            plugin for diagnosis in diagnoses for plugin in diagnosis.unschedulable_plugins
        }
        pending = {plugin for diagnosis in diagnoses for plugin in diagnosis.pending_plugins}
        if self.missing:
            rejectors.add(self.gang.plugin)
        return [
            (
                member.queued,
                member.cycle.profile,
                _rejected(member.outcome, status, rejectors=rejectors, pending=pending),
            )
            for member in self.members
        ]

    def _words(self) -> str:
        refused = [member for member in self.members if member.reservation is None]
        total = len(self.members) + len(self.missing)
        text = f"{self.gang.name}: {len(self.members) - len(refused)} of {total} members fit"
        if refused:
            blocker = refused[0]
            assert not isinstance(blocker.outcome, Placed), blocker.queued.key
            text += f"; first blocker {blocker.queued.key}: {blocker.outcome.message}"
        if self.missing:
            text += f"; missing: {', '.join(self.missing)}"
        return text


def schedule_gang(
    leader: Member,
    gang: Gang,
    *,
    try_member: Callable[[str], Member | None],
    reserve: Callable[[Member], Member],
) -> GangAttempt:
    """Try *gang*, of which *leader* was tried first; each pod sees the room of those before it.

    *try_member* decides about the pod ``namespace/name``; None if it is missing. *reserve*
    takes what the decision found, if it found a node and no plugin objects. Nothing else must
    happen meanwhile, so that no pod ever holds room while it waits for another.
    """
    members, missing = [reserve(_in(gang, leader))], []
    for key in gang.pods:
        if key == leader.queued.key:
            continue
        member = try_member(key)
        if member is None:
            missing.append(key)
        else:
            members.append(reserve(_in(gang, member)))
    return GangAttempt(gang, tuple(members), tuple(missing))


def _in(gang: Gang, member: Member) -> Member:
    return replace(member, outcome=replace(member.outcome, gang=gang.name))


def _rejected(
    outcome: Outcome, status: Status, *, rejectors: set[str], pending: set[str]
) -> Unschedulable | Failed:
    """Return what *outcome* comes to where the gang gets no nodes, for the reason in *status*."""
    placed = outcome if isinstance(outcome, Placed) else outcome.refused
    diagnosis = outcome.found.diagnosis
    if isinstance(outcome, Placed):
        diagnosis = Diagnosis(1, statuses={0: status})
    diagnosis = replace(
        diagnosis, unschedulable_plugins=set(rejectors), pending_plugins=set(pending)
    )
    pod, profile, gang = outcome.pod, outcome.profile, outcome.gang
    feasible_nodes = replace(outcome.found, diagnosis=diagnosis)
    if status.code is Code.ERROR:
        return Failed(pod, profile, feasible_nodes, status, refused=placed, gang=gang)
    words = status.message
    return Unschedulable(
        pod, profile, feasible_nodes, CLEAR, refused=placed, gang=gang, words=words
    )
