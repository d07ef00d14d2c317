"""Pods between the scheduling cycle and their node, and how far each has come."""

import asyncio
from collections.abc import Iterator, Sequence, Set
from enum import Enum, auto
from typing import Final

import msgspec

from berth.scheduler.framework.interface import PreBindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.reservation import Reservation

SENT_KEPT: Final = 1000
"""So many of the latest pods whose binding was sent are remembered, with the node."""

PREEMPTED: Final = "preempted by DefaultPreemption"


class Stage(Enum):
    """How far a binding has come; each stage is left for good."""

    PERMIT = auto()
    """Waiting on Permit, if any plugin wants that."""
    PRE_BIND = auto()
    BIND = auto()
    """Bind runs: nothing in memory can stop it any more."""


class Binding(msgspec.Struct, eq=False):
    """A reservation on its way to the API server."""

    reservation: Reservation
    stage: Stage = Stage.PERMIT
    pre_bind: Sequence[PreBindPlugin] = ()
    """The PreBind plugins that were started last, side by side."""
    task: asyncio.Task[None] | None = None
    """What runs the binding cycle, once it does."""
    is_preempted: bool = False
    """Whether ``task`` was cancelled to make room for another pod."""

    @property
    def pod(self) -> PodInfo:
        return self.reservation.assumed

    @property
    def waiting(self) -> WaitingPod | None:
        """The pod's wait on Permit; None if it has ended, or no plugin wanted one."""
        return self.reservation.waiting if self.stage is Stage.PERMIT else None

    def enter_pre_bind(self, plugins: Sequence[PreBindPlugin]) -> None:
        """Note that *plugins* are being run."""
        self.stage, self.pre_bind = Stage.PRE_BIND, plugins

    def reject_waiting(self, message: str) -> bool:
        """Turn away a pod that waits on Permit; False: it does not."""
        if self.waiting is None:
            return False
        self.waiting.reject("", message)
        return True

    def preempt(self) -> bool:
        """Make the pod give way to a more important one; False if it has come too far."""
        if self.waiting is not None:
            self.waiting.preempt("DefaultPreemption")
            return True
        if self.stage is Stage.PRE_BIND and self.task is not None and not self.is_preempted:
            self.is_preempted = True
            self.task.cancel(PREEMPTED)
            return True
        return self.is_preempted


class Bindings:
    """All bindings, by UID of the pod."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Binding] = {}
        self._told_to_wait: dict[str, Binding] = {}
        """Those that Permit plugins wanted to wait, however far they have come."""
        self._sent: dict[str, str] = {}

    def add(self, reservation: Reservation) -> Binding:
        """Note that the binding cycle of *reservation* is about to begin."""
        uid = reservation.assumed.uid
        binding = self._by_uid[uid] = Binding(reservation)
        if reservation.waiting is not None:
            self._told_to_wait[uid] = binding
        return binding

    def remove(self, binding: Binding) -> None:
        uid = binding.pod.uid
        del self._by_uid[uid]
        self._told_to_wait.pop(uid, None)
        if binding.stage is Stage.BIND:
            self._sent.pop(uid, None)
            self._sent[uid] = binding.pod.node_name
            if len(self._sent) > SENT_KEPT:
                del self._sent[next(iter(self._sent))]

    def was_sent(self, uid: str, node_name: str) -> bool:
        """Whether a binding of the pod to the node may have been sent, if only one that failed.

        A request that was given up may be carried out long after.
        """
        binding = self._by_uid.get(uid)
        if binding is not None and binding.pod.node_name == node_name:
            return True
        return self._sent.get(uid) == node_name

    def get(self, uid: str) -> Binding | None:
        return self._by_uid.get(uid)

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._by_uid.values())

    def __len__(self) -> int:
        return len(self._by_uid)

    def allow_waiting(self, uids: Set[str], plugin: str) -> None:
        """Let those of *uids* go that wait on Permit, as far as *plugin* is concerned.

        Costs nothing where nobody waits, however many *uids* there are.
        """
        for uid in self._told_to_wait.keys() & uids:
            waiting = self._told_to_wait[uid].waiting
            if waiting is not None:
                waiting.allow(plugin)

    def reject_waiting(self, uid: str, message: str) -> bool:
        """Turn away a pod that waits on Permit; False: it does not."""
        binding = self._by_uid.get(uid)
        return binding is not None and binding.reject_waiting(message)

    def preempt(self, uid: str) -> bool:
        """Make a pod give way to a more important one, if that can be done in memory.

        False: it is not being bound, or has come too far; it must be deleted (spec §6.7).
        """
        binding = self._by_uid.get(uid)
        return binding is not None and binding.preempt()
