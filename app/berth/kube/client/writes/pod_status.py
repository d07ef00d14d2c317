"""Pod status patches on their way out, merged per pod."""

import asyncio
import random
from collections.abc import Callable
from typing import Final

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.writes.async_calls import POD_STATUS_PATCH, AsyncCalls, executed
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.client.writes.pods import decode_pod, patch_pod_status
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock

MOST_PATCHED: Final = 1_000


class Wanted(msgspec.Struct, frozen=True):
    """What the status of *pod* is to say; None leaves as is."""

    pod: Pod
    condition: Condition | None
    nominated_node_name: str | None

    def after(self, older: "Wanted") -> "Wanted":
        """Return what is wanted when *older* was wanted before and has not been written."""
        return Wanted(
            self.pod,
            older.condition if self.condition is None else self.condition,
            older.nominated_node_name
            if self.nominated_node_name is None
            else self.nominated_node_name,
        )


class PodStatusWriter:
    """Writes conditions and nominations through the status lane.

    :meth:`WriteLanes.submit_status` alone would lose a nomination that waits when the pod's next
    attempt has nothing to say about it. Here what waits is what is wanted, and the patch is made
    from it when its turn comes.
    """

    def __init__(
        self,
        client: Api,
        lanes: WriteLanes,
        *,
        exists: Callable[[Pod], bool],
        clock: Clock,
        rng: random.Random,
        calls: AsyncCalls | None = None,
        only_known_version: bool = True,
    ) -> None:
        """*exists* says whether a pod is still there: the patch goes to any pod of its name.

        With *only_known_version*, the patch fails if the pod has changed meanwhile, so that a
        condition of an attempt that failed is not written over the one of a pod that is bound.

        *calls* hears of the patches; None: nobody does.
        """
        self._client = client
        self._lanes = lanes
        self._exists = exists
        self._clock = clock
        self._rng = rng
        self._calls = calls
        self._only_known_version = only_known_version
        self._patched: dict[str, tuple[str, bytes]] = {}
        """By UID, the version that was patched and the answer, which the watch has yet to tell; of
        the pods that were patched last."""
        self._wanted: dict[str, Wanted] = {}
        self._under_way: dict[str, asyncio.Future[None]] = {}
        """By UID of the pod, what ends with the patch that is being written."""

    def submit(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Have the status of *pod* patched; what is newer wins, None leaves as is, "" clears.

        *pod* is the newest known object: the patch is the difference to it, and there is no request
        when that is empty.
        """
        uid = pod.metadata.uid
        wanted = Wanted(pod, condition, nominated_node_name)
        waiting = self._wanted.get(uid)
        self._wanted[uid] = wanted if waiting is None else wanted.after(waiting)
        if waiting is None and self._calls is not None:
            self._calls.waits(POD_STATUS_PATCH, 1)
        self._lanes.submit_status(uid, lambda: self._write(uid))

    def withdraw(self, uid: str) -> None:
        """Forget what is wanted for a pod and has not begun to be written: it is out of date.

        To be called right before :meth:`WriteLanes.bind` for that pod, which drops the write.
        """
        self._take(uid)

    def _take(self, uid: str) -> Wanted | None:
        """Return what is wanted for a pod, which waits no more."""
        wanted = self._wanted.pop(uid, None)
        if wanted is not None and self._calls is not None:
            self._calls.waits(POD_STATUS_PATCH, -1)
        return wanted

    async def write_now(self, uid: str) -> None:
        """Return when all that was wanted for a pod is written; write what has not begun.

        Raises the error of a patch that is made here; that of another is logged by the lane.
        """
        while uid in self._wanted or uid in self._under_way:
            await self._write(uid)

    async def _write(self, uid: str) -> None:
        """Write what is wanted, if there is something, after what was wanted before."""
        while uid in self._under_way:
            await asyncio.shield(self._under_way[uid])
        wanted = self._take(uid)
        if wanted is None or not self._exists(wanted.pod):
            return
        ended = self._under_way[uid] = asyncio.get_running_loop().create_future()
        try:
            await self._make(wanted)
        finally:
            del self._under_way[uid]
            ended.set_result(None)

    async def _make(self, wanted: Wanted) -> None:
        if self._calls is None:
            await self._patch(wanted)
            return
        await executed(
            self._calls, POD_STATUS_PATCH, lambda: self._patch(wanted), clock=self._clock
        )

    async def _patch(self, wanted: Wanted) -> bool:
        uid, known = wanted.pod.metadata.uid, wanted.pod
        version, answer = self._patched.get(uid, ("", b""))
        if version == known.metadata.resource_version:
            newer = decode_pod(answer)
            known = newer if newer.metadata.uid == uid else known
        elif version:
            del self._patched[uid]  # the watch has told
        patched = await patch_pod_status(
            self._client,
            known,
            wanted.condition,
            wanted.nominated_node_name,
            clock=self._clock,
            rng=self._rng,
            only_this_version=self._only_known_version,
        )
        if patched is None:
            return False
        if self._only_known_version:
            self._patched[uid] = wanted.pod.metadata.resource_version, patched
            if len(self._patched) > MOST_PATCHED:
                del self._patched[next(iter(self._patched))]
        return True
