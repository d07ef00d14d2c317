"""Pods that get nodes together: one step that gives them to all, or leaves none with one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from berth.framework.cycle_state import CycleState, Gang
from berth.framework.diagnosis import Diagnosis
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code, Status
from berth.profile.profile import Profile
from berth.scheduler.decision import Decision

NO_EXTENDERS: Final = "extenders have a say, and cannot be asked in the step that places all"

Room = TypeVar("Room")
"""What holds a pod's room on its node until it is given back."""


@dataclass(slots=True)
class Member(Generic[Room]):
    """One pod of a gang in the attempt that is made for all of them."""

    pod: PodInfo
    profile: Profile
    state: CycleState
    decision: Decision
    room: Room | None = field(default=None, kw_only=True)
    """None if it gets none."""


AMember = TypeVar("AMember", bound=Member[Any])


@dataclass(frozen=True, slots=True)
class GangAttempt(Generic[AMember]):
    """What one attempt for a gang came to. Room is held for those who have it."""

    gang: Gang
    members: tuple[AMember, ...]
    """Those that were tried, in this order."""
    missing: tuple[str, ...]
    """``namespace/name`` of those that do not wait, or are held back."""

    @property
    def is_complete(self) -> bool:
        """Whether all of the gang have room."""
        return not self.missing and all(member.room is not None for member in self.members)

    def fail(self, give_back: Callable[[AMember], None]) -> str:
        """Have all room given back, the last first, and make failures of all decisions.

        Return what to tell of each pod. All wait for whatever may help any of them. If one attempt
        broke, all are tried again after their backoff, as after an error. To be called when the
        attempt is not complete.
        """
        refused = [member for member in self.members if member.room is None]
        text = self._words(refused)
        statuses = [member.decision.status for member in refused]
        broke = any(status is not None and status.code is Code.ERROR for status in statuses)
        status = Status(Code.ERROR if broke else Code.UNSCHEDULABLE, (text,), self.gang.plugin)
        found = [member.decision.diagnosis for member in refused]
        rejectors = {plugin for each in found for plugin in each.unschedulable_plugins}
        pending = {plugin for each in found for plugin in each.pending_plugins}
        if self.missing:
            rejectors.add(self.gang.plugin)
        for member in reversed(self.members):
            decision = member.decision
            if member.room is not None:
                give_back(member)
                decision.diagnosis = Diagnosis(1, statuses={0: status})
            if member.room is not None or broke:
                decision.status = status
            decision.node_name = decision.nominated_node = ""
            decision.gang_message = text
            decision.diagnosis.unschedulable_plugins = set(rejectors)
            decision.diagnosis.pending_plugins = set(pending)
        return text

    def _words(self, refused: list[AMember]) -> str:
        total = len(self.members) + len(self.missing)
        text = f"{self.gang.name}: {len(self.members) - len(refused)} of {total} members fit"
        if refused:
            blocker = refused[0]
            text += f"; first blocker {blocker.pod.key}: {blocker.decision.message}"
        if self.missing:
            text += f"; not to be had: {', '.join(self.missing)}"
        return text


def try_together(
    leader: AMember,
    gang: Gang,
    *,
    take: Callable[[str], AMember | None],
    reserve: Callable[[AMember], None],
) -> GangAttempt[AMember]:
    """Try *gang*, of which *leader* was tried first; each pod sees the room of those before it.

    *take* decides on the pod of a name, None if it is not to be had. *reserve* takes the room that
    a decision found, if it found any and nobody objects. Nothing else must happen meanwhile, so
    that nobody ever waits with room for another.
    """
    reserve(leader)
    members, missing = [leader], []
    for key in gang.pods:
        if key == leader.pod.key:
            continue
        member = take(key)
        if member is None:
            missing.append(key)
            continue
        reserve(member)
        members.append(member)
    for member in members:
        member.decision.gang = gang.name
    return GangAttempt(gang, tuple(members), tuple(missing))
