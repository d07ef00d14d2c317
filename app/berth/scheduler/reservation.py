"""Pods between having a node and being bound to it."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from berth.framework.cycle_state import CycleState
from berth.framework.interface import PreBindPlugin
from berth.framework.pod_info import PodInfo, QueuedPodInfo
from berth.profile.profile import Profile
from berth.profile.waiting_pod import WaitingPod

PREEMPTED: Final = "preempted by DefaultPreemption"


class Stage(Enum):
    """How far a reservation has come; each stage is left for good."""

    PERMIT = auto()
    """Waiting for Permit plugins, if any of them wants that."""
    PRE_BIND = auto()
    BIND = auto()
    """The API server is being told: nothing in memory can stop it any more."""


@dataclass(slots=True, eq=False)
class Reservation:
    """A pod that has room on a node, and how to give the room back."""

    queued: QueuedPodInfo
    profile: Profile
    state: CycleState
    assumed: PodInfo
    undo: ExitStack
    started: float
    waiting: WaitingPod | None = None
    """Set if Permit plugins want the pod to wait."""
    stage: Stage = Stage.PERMIT
    task: asyncio.Task[None] | None = None
    """What carries the reservation out, once it does."""
    companions: list["Reservation"] = field(default_factory=list)
    """Those of the pod's gang, made in the same step; to be carried out as well."""
    running_pre_binds: list[PreBindPlugin] = field(default_factory=list)
    is_preempted: bool = False
    """Whether ``task`` was cancelled to make room for another pod."""


class Reservations:
    """All reservations that are under way, by UID of the pod."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Reservation] = {}

    def add(self, reservation: Reservation) -> None:
        self._by_uid[reservation.assumed.uid] = reservation

    def remove(self, reservation: Reservation) -> None:
        del self._by_uid[reservation.assumed.uid]

    def get(self, uid: str) -> Reservation | None:
        return self._by_uid.get(uid)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self._by_uid.values())

    def __len__(self) -> int:
        return len(self._by_uid)

    def reject_waiting(self, uid: str, message: str) -> bool:
        """Turn away a pod that waits for Permit plugins; False: it does not."""
        reservation = self._by_uid.get(uid)
        if (
            reservation is None
            or reservation.stage is not Stage.PERMIT
            or reservation.waiting is None
        ):
            return False
        reservation.waiting.reject("", message)
        return True

    def preempt(self, uid: str) -> bool:
        """Make a pod give way to a more important one, if that can be done in memory.

        False: the pod has none, or its binding has come too far; it must be deleted (spec §6.7).
        """
        reservation = self._by_uid.get(uid)
        if reservation is None:
            return False
        if reservation.stage is Stage.PERMIT and reservation.waiting is not None:
            reservation.waiting.preempt("DefaultPreemption")
            return True
        if (
            reservation.stage is Stage.PRE_BIND
            and reservation.task is not None
            and not reservation.is_preempted
        ):
            reservation.is_preempted = True
            reservation.task.cancel(PREEMPTED)
            return True
        return reservation.is_preempted
