"""Binds pods for another scheduler, without giving the same room away twice."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.client.writes import pods
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.nominated_pods import NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reservation import forget, wake_for_room_of
from berth.service.extender_server.candidate_nodes import named
from berth.service.extender_server.evaluation import filter_nodes
from berth.service.extender_server.wire import ExtenderBindingArgs

log = logging.getLogger(__name__)

CONFIRMED_WITHIN: Final = 30.0
"""Seconds after which a bound pod that no watch has shown is looked up."""
LOOK_EVERY: Final = 5.0

GIVEN_UP: Final = "the caller has given up"


class PodBinder(Protocol):
    """Who writes; :class:`berth.scheduler.api_writer.ApiWriter` for a real cluster."""

    async def bind(
        self, pod: PodInfo, node_name: str, *, is_wanted: Callable[[], bool] | None = None
    ) -> None:
        """Raise ApiError when it is certain that *pod* is not bound to the node.

        So it is if *is_wanted*, which is asked right before anything is sent, says no.
        """
        ...


class _Assumed(msgspec.Struct, eq=False):
    pod: PodInfo
    written: asyncio.Future[None] = msgspec.field(default_factory=asyncio.Future)
    """Done when nobody is at it any more."""
    has_begun: bool = False
    """Whether the bind may have left."""
    is_bound: bool = False
    """Whether it is certain that the pod has been bound."""
    look_at: float = 0.0
    """When to look the pod up then; monotonic seconds."""


class Bindings:
    """Pods being bound, and those whose binding no watch has confirmed yet.

    A pod is assumed in the cache before anything is written, so that the next question finds the
    room taken. It is the caller who decides: whoever asks again about a pod has forgotten what was
    assumed for it, and another node takes the place of one that the pod has not been bound to.
    What has left cannot be taken back. Somebody must own :meth:`run`.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        queue: SchedulingQueue,
        pod_lookup: Callable[[str], Pod | None],
        client: Api,
        binder: PodBinder,
        clock: Clock,
    ) -> None:
        """*queue* has the pods that this process schedules itself, which want the same room.

        *pod_lookup* finds pods by key, as the watches show them.
        """
        self._cache = cache
        self._queue = queue
        self._pod_lookup = pod_lookup
        self._client = client
        self._binder = binder
        self._clock = clock
        self._assumed: dict[str, _Assumed] = {}

    async def bind(
        self,
        profile: Profile,
        asked: ExtenderBindingArgs,
        *,
        nominated: Callable[[], NominatedPods],
        gone: asyncio.Future[None],
    ) -> str:
        """Bind the pod if it still fits; return why not, "" when it is bound to that node.

        Once *gone* is done, nobody waits for the answer: then a bind that has not left is not made,
        and its room is given back. An earlier bind of the same pod is waited for.
        """
        while True:
            try:
                pod = await self._pod(asked)
            except ApiError as exc:
                return f"pod {asked.namespace}/{asked.name} cannot be read: {exc}"
            if pod is None or pod.metadata.uid != asked.uid:
                return f"pod {asked.namespace}/{asked.name} with uid {asked.uid} does not exist"
            earlier = self._assumed.get(asked.uid)
            if pod.spec.node_name or earlier is None or earlier.written.done():
                break
            await asyncio.wait((earlier.written, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return GIVEN_UP
        # From here to the write nothing is awaited: nobody else can take the room in between.
        where = pod.spec.node_name or self._bound_to(asked.uid)
        if where:
            return "" if where == asked.node else f"pod {pod.key} is on node {where} already"
        refusal = self._assume(profile, PodInfo(pod, node_name=asked.node), nominated())
        if refusal:
            return refusal
        assumed = self._assumed[asked.uid]

        def begins() -> bool:
            assumed.has_begun = assumed.has_begun or not gone.done()
            return not gone.done()

        def given_up(_: asyncio.Future[None]) -> None:
            if not assumed.has_begun:  # nor will it
                self._give_back(assumed)

        gone.add_done_callback(given_up)
        try:
            await self._binder.bind(assumed.pod, asked.node, is_wanted=begins)
            assumed.is_bound = True
        except ApiError as exc:
            self._give_back(assumed)
            return f"pod {pod.key} cannot be bound to node {asked.node}: {exc}"
        finally:
            gone.remove_done_callback(given_up)
            assumed.written.set_result(None)
            assumed.look_at = self._clock.monotonic() + CONFIRMED_WITHIN
        log.debug("pod bound for another scheduler", extra={"pod": pod.key, "node": asked.node})
        return ""

    def place_of(self, uid: str) -> str:
        """Return the node that a pod is on, or comes to be on unless its bind fails; "" if none.

        A bind that has not left yet does not count: its caller may choose another node.
        """
        pod, assumed = self._cache.pod(uid), self._assumed.get(uid)
        if pod is None or (assumed is not None and not assumed.has_begun):
            return ""
        return pod.node_name

    async def run(self) -> None:
        """Look up, for ever, pods whose binding is not confirmed in time."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            await self.look_up_overdue()

    async def look_up_overdue(self) -> None:
        """Give back the room of pods that turn out not to be where they were bound to."""
        for uid, assumed in list(self._assumed.items()):
            if not self._cache.is_assumed(uid):  # confirmed, or gone
                if assumed.written.done():
                    self._assumed.pop(uid, None)
                continue
            if not assumed.written.done() or assumed.look_at > self._clock.monotonic():
                continue
            try:
                where = await pods.bound_node(self._client, assumed.pod.pod)
            except ApiError as exc:
                log.info("binding is in doubt", extra={"pod": assumed.pod.key, "error": str(exc)})
                continue
            if where != assumed.pod.node_name:
                self._give_back(assumed)

    async def _pod(self, asked: ExtenderBindingArgs) -> Pod | None:
        """Return the pod of the watch or, as that may be late, of the API server."""
        known = self._pod_lookup(f"{asked.namespace}/{asked.name}")
        if known is not None and known.metadata.uid == asked.uid:
            return known
        named_so = Pod(metadata=ObjectMeta(name=asked.name, namespace=asked.namespace))
        return await pods.get_pod(self._client, named_so)

    def _bound_to(self, uid: str) -> str:
        """Return the node of a pod whose binding no watch has shown yet; "" if there is none."""
        assumed = self._assumed.get(uid)
        known = assumed is not None and assumed.is_bound and self._cache.is_assumed(uid)
        return assumed.pod.node_name if assumed is not None and known else ""

    def _assume(self, profile: Profile, pod: PodInfo, nominated: NominatedPods) -> str:
        """Take the room for *pod*; return why that cannot be, or ""."""
        known = self._cache.pod(pod.uid)
        if known is not None:
            return f"pod {pod.key} is being bound to node {known.node_name} already"
        node = pod.node_name
        self._cache.refresh_order()
        asked = named(self._cache.table, [node])
        evaluated = filter_nodes(profile, pod.on_node(""), asked, nominated=nominated)
        reason = evaluated.error or evaluated.failed.get(node) or evaluated.unresolvable.get(node)
        if reason is not None:
            return f"node {node} no longer fits: {reason}"
        self._cache.assume_pod(pod)
        self._queue.assumed(pod)
        self._assumed[pod.uid] = _Assumed(pod)
        return ""

    def _give_back(self, assumed: _Assumed) -> None:
        pod = assumed.pod
        if self._assumed.get(pod.uid) is not assumed:
            return  # it has been given back
        del self._assumed[pod.uid]
        if forget(pod, self._cache):
            wake_for_room_of(pod, self._queue)
