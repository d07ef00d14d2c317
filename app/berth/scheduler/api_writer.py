"""Writes of decisions to the API: bindings, conditions and events, through the write lanes."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any, Final, Protocol

import msgspec

from berth.kube.client.api import Api, FenceableApi
from berth.kube.client.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    log_failure,
)
from berth.kube.client.events.recorder import EventRecorder
from berth.kube.client.writes import pod_groups, pods, volumes
from berth.kube.client.writes.async_calls import (
    POD_BINDING,
    POD_STATUS_PATCH,
    AsyncCalls,
    counted,
)
from berth.kube.client.writes.lanes import Write, WriteLanes
from berth.kube.client.writes.pod_status import PodStatusWriter
from berth.kube.objects.devices import RESOURCE_CLAIMS
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup, PodGroupCondition
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.runtime.clock import Clock
from berth.runtime.release import Behaviour
from berth.scheduler.background import Background
from berth.scheduler.config.feature_gates import enabled_features
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.resource_claim_writes import ResourceClaimApi

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""Seconds between looking up a bind in doubt: doubled each time, plus up to as much at random."""

MAX_BINDS: Final = 16
"""How many binds may be waiting, in progress or in doubt until :attr:`ApiWriter.has_room` is false.

At 5 ms per bind that allows 3,000 per second. Decisions made further ahead are only more out of
date: a second scheduler may use the same nodes meanwhile.
"""
NOT_WANTED: Final = "nobody waits for it any more"

LATEST: Final = enabled_features({})

NO_ANSWER: Final = (ServerError, TooManyRequestsError, UnauthorizedError, UnavailableError)
"""Errors that say nothing of a pod; also while our token is being replaced."""


RETRIES_BINDS: Final = Behaviour(
    "1.37",
    "N3.2",
    "A binding is tried up to four times when the API server fails or refuses the connection.",
)
PATCHES_KNOWN_VERSION: Final = Behaviour(
    "1.37",
    "N3.11",
    "The status patch of a failed attempt names the version of the pod that it is about, so that it"
    " is not written over the status of a pod that was bound meanwhile.",
)


class RecorderOf(Protocol):
    """Event recorders by scheduler name."""

    def __getitem__(self, name: str, /) -> EventRecorder: ...


class ApiWriter:
    """Binds, evicts, and reports on pods; the ``PluginWrites`` and ``Reporter`` of a cluster."""

    def __init__(
        self,
        client: FenceableApi,
        lanes: WriteLanes,
        *,
        recorders: RecorderOf,
        pod_lookup: Callable[[str], Pod | None],
        clock: Clock,
        rng: random.Random,
        count_created_claim: Callable[[str], None] = lambda _status: None,
        claims_at: Callable[[], str] = lambda: RESOURCE_CLAIMS,
        calls: AsyncCalls | None = None,
        features: Container[object] = LATEST,
    ) -> None:
        """*recorders* has one event recorder per profile, by scheduler name.

        *pod_lookup* returns the newest known pod of a key. *count_created_claim* is called with
        ``success`` or ``failure`` for each ResourceClaim that was to be created, and *claims_at*
        returns their path in the version that the API server serves. *calls* hears of bindings and
        status patches of pods; None: nobody does. *features* say how errors of writes are met.
        """
        self._pod_lookup = pod_lookup
        self._client = client
        self._lanes = lanes
        self._recorders = recorders
        self.resource_claims = ResourceClaimApi(
            client, lanes, count_created=count_created_claim, collection=claims_at
        )
        self.background = Background()
        """Whoever makes this has to run it."""
        self._clock = clock
        self._rng = rng
        self._binds = 0  # that wait, are being made or are in doubt
        self._some_bind_ended = asyncio.Event()
        self._calls = calls
        self._status = PodStatusWriter(
            client,
            lanes,
            exists=self._exists,
            clock=clock,
            rng=rng,
            calls=calls,
            only_known_version=PATCHES_KNOWN_VERSION in features,
        )
        self._retries_binds = RETRIES_BINDS in features

    async def bind(
        self, pod: PodInfo, node_name: str, *, is_wanted: Callable[[], bool] | None = None
    ) -> None:
        """Bind *pod*, ahead of all other writes; raises ApiError when it is certain that it failed.

        When the answer was lost or says conflict, the pod is read again: if it is on *node_name*
        already, our own earlier request did it. As long as the server cannot say, this waits: the
        pod's room must not be given to another while it may be on the node. *is_wanted* is asked
        right before the request leaves; if it says no, this raises FencedError.
        """
        client: Api = self._client
        if is_wanted is not None:
            client = self._client.fenced(is_wanted, otherwise=NOT_WANTED)
        self._binds += 1
        try:
            await self._ahead(POD_BINDING, pod.pod, lambda: self._bind(client, pod.pod, node_name))
        except (ConflictError, ServerError, UnavailableError) as exc:
            if await self.bound_node(pod.pod) != node_name:
                raise
            log.info("bind had succeeded", extra={"pod": pod.key, "error": str(exc)})
        finally:
            self._binds -= 1
            self._some_bind_ended.set()

    def _bind(self, client: Api, pod: Pod, node_name: str) -> Awaitable[object]:
        if not self._retries_binds:
            return pods.bind(client, pod, node_name)
        return pods.with_retries(
            lambda: pods.bind(client, pod, node_name),
            clock=self._clock,
            rng=self._rng,
            again=pods.may_pass,
        )

    async def bound_node(self, pod: Pod) -> str | None:
        """Ask :func:`berth.kube.client.writes.pods.bound_node` until there is an answer."""
        pause, level = FIRST_PAUSE, logging.INFO
        while True:
            try:
                return await pods.bound_node(self._client, pod)
            except NO_ANSWER as exc:
                log.log(level, "bind is in doubt", extra={"pod": pod.key, "error": str(exc)})
                level = logging.DEBUG  # said once: many binds may be in doubt for long
            await self._clock.sleep(pause * (1.0 + self._rng.random()))
            pause = min(pause * 2.0, LONGEST_PAUSE)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write *volume* as what a binding waits for. Raises ApiError."""
        return await self._lanes.bind(lambda: volumes.update_volume(self._client, volume))

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write *claim* as what a binding waits for. Raises ApiError."""
        return await self._lanes.bind(lambda: volumes.update_claim(self._client, claim))

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write fields of the status of *pod* that a binding waits for. Raises ApiError."""
        body = msgspec.json.encode({"status": status})
        path = pods.path_of(pod) + "/status"
        await self._ahead(
            POD_STATUS_PATCH,
            pod,
            lambda: self._client.request(
                "PATCH", path, body=body, content_type=pods.STRATEGIC_MERGE_PATCH
            ),
        )

    def _ahead(self, call_type: str, pod: Pod, write: Write[object]) -> Awaitable[object]:
        """Write for a binding of *pod* what makes a status that still waits out of date.

        Such as the condition of an earlier attempt, which must not be what is said in the end.
        """
        uid = pod.metadata.uid
        self._status.withdraw(uid)
        if self._calls is None:
            return self._lanes.bind(write, pod_key=uid)
        return counted(
            self._calls,
            call_type,
            write,
            lambda timed: self._lanes.bind(timed, pod_key=uid),
            clock=self._clock,
        )

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        """Give *pod* the condition and delete it; False if it was gone. Raises ApiError.

        The status of the pod that is *nominated* in its place is written before: should this
        process end now, another replica must know what the room is for.
        """

        async def write() -> bool:
            if not self._exists(pod):
                return False
            if nominated is not None:
                await self._write_status_now(nominated)
            await pods.patch_pod_status(
                self._client, pod, condition, None, clock=self._clock, rng=self._rng
            )
            return await pods.delete_pod(self._client, pod)

        try:
            return await self._lanes.evict(write)
        except NotFoundError:
            return False

    async def _write_status_now(self, pod: Pod) -> None:
        try:
            await self._status.write_now(pod.metadata.uid)
        except ApiError as exc:
            log_failure(log, "nomination not written", exc, {"pod": pod.key})

    def _exists(self, pod: Pod) -> bool:
        """Say whether *pod*, for all we know, was not deleted, nor replaced by one of its name.

        Status patches go by names alone, as kube-scheduler's do, and a write may wait so long that
        a controller has made a successor meanwhile, which it must not hit.
        """
        known = self._pod_lookup(pod.key)
        return known is not None and known.metadata.uid == pod.metadata.uid

    @property
    def is_binding(self) -> bool:
        return self._lanes.is_binding

    @property
    def has_room(self) -> bool:
        return self._binds < MAX_BINDS

    async def until_room(self) -> None:
        while not self.has_room:
            self._some_bind_ended.clear()
            await self._some_bind_ended.wait()

    @property
    def is_behind(self) -> bool:
        return self._lanes.is_behind

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
        related: PodGroup | None = None,
    ) -> None:
        """Record an event on *pod*, in the name of *profile*: by default that of the pod."""
        recorder = self._recorders[profile or pod.spec.scheduler_name]
        recorder.event(pod, type=type, reason=reason, action=action, note=note, related=related)

    def pod_group_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        path = pod_groups.path_of(group)
        body = pod_groups.condition_patch(condition)
        self._lanes.submit_status(
            group.metadata.uid,
            lambda: pods.patch_status(self._client, path, body, clock=self._clock, rng=self._rng),
        )

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.background.start(name, work)

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        self._status.submit(pod, condition=condition, nominated_node_name=nominated_node_name)
