"""Pods that get nodes together: what becomes of each when one of them gets none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.framework.cycle_state import CycleState, Gang
from app.framework.diagnosis import Diagnosis
from app.framework.pod_info import QueuedPodInfo
from app.framework.status import Code, Status
from app.profile.profile import Profile
from app.scheduler.claim import Claim, Claims
from app.scheduler.decision import Decision

NO_EXTENDERS: Final = "extenders have a say, and cannot be asked in the step that places all"


@dataclass(slots=True)
class Member:
    """One pod of a gang in the attempt that is made for all of them."""

    queued: QueuedPodInfo
    profile: Profile
    state: CycleState
    decision: Decision
    claim: Claim | None = None
    """Its room; None if it gets none."""


def give_back(members: Sequence[Member], claims: Claims) -> None:
    """Undo the claims that were made, the last one first."""
    for member in reversed(members):
        if member.claim is not None:
            claims.remove(member.claim)
            member.claim.undo.close()


def word_failure(members: Sequence[Member], gang: Gang, *, missing: Sequence[str]) -> str:
    """Turn the decisions of all *members* into failures; return what to tell of each.

    At least one has no claim, or some of the gang are *missing*: they do not wait, or are held
    back. All wait for whatever may help any of them. If one attempt broke, all are tried again
    after their backoff, as after an error.
    """
    failed = [member for member in members if member.claim is None]
    statuses = [member.decision.status for member in failed]
    broke = any(status is not None and status.code is Code.ERROR for status in statuses)
    total = len(members) + len(missing)
    text = f"{gang.name}: {len(members) - len(failed)} of {total} members fit"
    if failed:
        text += f"; {failed[0].queued.key}: {failed[0].decision.message}"
    if missing:
        text += f"; not to be had: {', '.join(missing)}"
    status = Status(Code.ERROR if broke else Code.UNSCHEDULABLE, (text,), gang.plugin)
    rejectors = {plugin for m in failed for plugin in m.decision.diagnosis.unschedulable_plugins}
    pending = {plugin for m in failed for plugin in m.decision.diagnosis.pending_plugins}
    if missing:
        rejectors.add(gang.plugin)
    for member in members:
        decision = member.decision
        if member.claim is not None:
            decision.diagnosis = Diagnosis(1, statuses={0: status})
        if member.claim is not None or broke:
            decision.status = status
        decision.node_name = decision.nominated_node = ""
        decision.diagnosis.unschedulable_plugins = set(rejectors)
        decision.diagnosis.pending_plugins = set(pending)
    return text
