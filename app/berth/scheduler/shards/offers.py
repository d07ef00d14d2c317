"""Offers of pods to the writers of other nodes, as conditions in the status of the pods.

An offer is a fact of the API: whoever holds the slot of the node takes the pod up, whichever
replica made the offer or was to answer it. It ends when the pod is bound or gone, or when the
writer of the node refuses it; so nobody has to be waited for who may be dead.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from berth.kube.client.errors import (
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
)
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.shards.slots import offer, offered_to, refusal_of, refused

log = logging.getLogger(__name__)

NO_ANSWER: Final = (ServerError, TooManyRequestsError, UnauthorizedError, UnavailableError)
PAUSE: Final = 0.5
"""Seconds before an offer is written again whose writing was not answered."""


class OfferWrites(Protocol):
    """What is written for offers."""

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None: ...

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None: ...


class Offers:
    """The offers that this replica has made and waits for, and refusals that it writes."""

    def __init__(self, writes: OfferWrites, clock: Clock) -> None:
        self._writes = writes
        self._clock = clock
        self.pods: set[str] = set()
        """UIDs of the pods whose binding cycle is an offer."""
        self._waiting: dict[str, asyncio.Future[Status | None]] = {}
        self.made = self.accepted = self.refused = 0

    async def make(self, pod: PodInfo) -> Status | None:
        """Offer *pod* to the writer of its node; return None once it is bound there, else why not.

        An offer whose writing was not answered may have been made, and so must be made for sure.
        """
        answer: asyncio.Future[Status | None] = asyncio.get_running_loop().create_future()
        self._waiting[pod.uid] = answer
        self.made += 1
        try:
            while not answer.done():
                try:
                    await self._write(pod.pod, offer(pod.node_name, at=self._time()))
                    break
                except NO_ANSWER as exc:
                    log.info("offer is in doubt", extra={"pod": pod.key, "error": str(exc)})
                    await self._clock.sleep(PAUSE)
            status = await answer
        finally:
            del self._waiting[pod.uid]
        if status is None:
            self.accepted += 1
        else:
            self.refused += 1
        return status

    def refuse(self, pod: Pod, why: str) -> None:
        """Give an offered pod back to its home, beside the attempts."""
        answer = refused(why, at=self._time())
        self._writes.start(f"refuse {pod.key}", lambda: self._write(pod, answer))

    def saw(self, pod: Pod) -> None:
        """Take note of what the watch told about *pod*."""
        answer = self._waiting.get(pod.metadata.uid)
        if answer is None or answer.done():
            return
        if pod.spec.node_name:
            answer.set_result(None)
        elif not offered_to(pod) and (why := refusal_of(pod)):
            answer.set_result(Status.unschedulable(why))

    def saw_gone(self, pod: Pod) -> None:
        """Take note that *pod* was deleted."""
        answer = self._waiting.get(pod.metadata.uid)
        if answer is not None and not answer.done():
            answer.set_result(Status.error("the pod is gone"))

    def withdraw(self, uid: str) -> None:
        """Wait for an offer no more, if there is one of the pod: who decides has changed."""
        answer = self._waiting.get(uid)
        if answer is not None and not answer.done():
            answer.set_result(Status.unschedulable("who decides about the pod has changed"))

    async def _write(self, pod: Pod, condition: Condition) -> None:
        await self._writes.patch_pod_status(pod, {"conditions": [msgspec.to_builtins(condition)]})

    def _time(self) -> str:
        return rfc3339(self._clock.now())
