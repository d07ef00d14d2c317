"""Looks for a pod's devices on one node after the other."""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from berth.kube.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    ResourceClaim,
    ResourceClaimSpec,
)
from berth.kube.objects.meta import ObjectMeta, OwnerReference
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.dynamic_resources.allocator import allocate
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.extended_resources import RequestMapping, device_requests
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.known_rows import CachedRows
from berth_plugins.dynamic_resources.pools import Pool, ResourcePools, View
from berth_plugins.dynamic_resources.requests import (
    IN_MEMORY,
    AllocationError,
    ClaimRequests,
    requests_of,
)
from berth_plugins.dynamic_resources.search_result import ClaimPicks, SearchTimeoutError
from berth_plugins.dynamic_resources.search_time import SearchTime, deadline
from berth_plugins.dynamic_resources.state import DevicesOfPod, ExtendedResources
from berth_plugins.dynamic_resources.usable_devices import KnownDevices
from berth_plugins.shared.device_classes import DeviceClassResolver

T = TypeVar("T")

MOST_ANSWERS: Final = 100_000
"""So many are kept of all questions together, but all of the last question."""
MOST_QUESTIONS: Final = 1_024


class AttemptTimeoutError(SearchTimeoutError):
    """The time for the attempt is over: another attempt knows more, and comes further."""


class _Answer(msgspec.Struct):
    """What was found, and what that follows from beside the question."""

    pools: tuple[Pool, ...]
    checked_version: int
    """Of the last change of any device when this was seen to hold."""
    picks: tuple[ClaimPicks, ...] | None
    is_of_shared: bool = False
    """Whether the pools of the node alone have nothing to give, and the rest says what is found."""


class _Question(NamedTuple):
    """What is known of the answers to one question."""

    answers: dict[str, _Answer]
    """The last ones, by a node of those that see the same."""
    rows: WeakKeyDictionary[NodeTable, CachedRows]
    """Which of them hold without a look at what they follow from."""


class NodeSearch:
    """The search of :mod:`~berth_plugins.dynamic_resources.allocator`, with what it needs to know.

    Pods from one template ask the same question, and between two of them little changes: an answer
    is kept for as long as the node sees the same pools and their devices have the same users. That
    there was no time to find one is no answer, and is not kept.
    """

    def __init__(
        self,
        claims: ResourceClaimTracker,
        classes: DeviceClassResolver,
        pools: ResourcePools,
        *,
        clock: Clock,
        timeout: float,
        features: Features = DEFAULT,
    ) -> None:
        """*timeout* is in seconds of CPU time on one node; 0 is none but that of the attempt."""
        self._claims = claims
        self._classes = classes
        self._pools = pools
        self._clock = clock
        self._timeout = timeout
        self._features = features
        self._known = KnownDevices(claims.in_use)
        self._questions: OrderedDict[tuple[object, ...], _Question] = OrderedDict()
        self._time = SearchTime(clock)

    def known_rows(self, claims: Sequence[ClaimRequests], nodes: NodeTable) -> CachedRows:
        """Return what is known about all *claims* on the rows of *nodes* without searching."""
        rows = self._question(claims).rows
        known = rows.get(nodes)
        if known is None:
            known = rows[nodes] = CachedRows(nodes, self._pools, self._claims.in_use)
        else:
            known.refresh(nodes)
        return known

    def on_node(
        self, devices: DevicesOfPod, claims: Sequence[ClaimRequests], node: Node
    ) -> tuple[ClaimPicks, ...] | None:
        """Find devices on *node* for all *claims* of the pod, None if there are none.

        Raises as :func:`allocate` does, SearchTimeoutError when the time for the node is over,
        AttemptTimeoutError when that for all nodes is.
        """
        answers, in_use = self._question(claims).answers, self._claims.in_use
        view, last = self._view_for(devices, claims, node, answers), in_use.changes.version
        pools, key = view.pools, view.key
        known = answers.get(key)
        if known is None or known.pools is not pools or known.checked_version != last:
            if known is None or known.pools is not pools or self._has_changed(known, view):
                search = partial(
                    allocate,
                    claims,
                    node,
                    pools,
                    in_use,
                    features=self._features,
                    known=self._known,
                )
                picks = self._within_time(devices, search)
                known = answers[key] = _Answer(pools, last, picks)
            known.checked_version = last
        return known.picks

    def _has_changed(self, known: _Answer, view: View) -> bool:
        """Whether devices that the view shows have come to somebody or become free."""
        versions, checked = self._claims.in_use.pool_versions, known.checked_version
        return any(versions.get(pool.id, 0) > checked for pool in view.pools)

    def _view_for(
        self,
        devices: DevicesOfPod,
        claims: Sequence[ClaimRequests],
        node: Node,
        answers: dict[str, _Answer],
    ) -> View:
        """Return what *node* sees, without its own pools if these have nothing for *claims*.

        Then all such nodes have one search in common.
        """
        view = self._pools.view_of(node)
        if view.shared is None:
            return view
        known = answers.get(view.key)
        if known is None or known.pools is not view.pools:
            shared = set(view.shared.pools)
            own = [pool for pool in view.pools if pool not in shared]
            if self._within_time(devices, partial(_may_use, claims, own)):
                return view
            known = answers[view.key] = _Answer(view.pools, 0, None, is_of_shared=True)
        return view.shared if known.is_of_shared else view

    def claims_for(
        self, devices: DevicesOfPod, pod: Pod, lacking: frozenset[str]
    ) -> tuple[tuple[ClaimRequests, ...], tuple[RequestMapping, ...]]:
        """Return what is to be found for *pod* on a node that lacks *lacking*.

        These are the extended resources that it does not offer by other means than devices.
        """
        claims = devices.to_allocate
        if devices.extended is None or not lacking:
            return claims, ()
        claim, mappings = self._claim_for(devices.extended, pod, lacking)
        return (claims if claim is None else (*claims, claim)), mappings

    def _question(self, claims: Sequence[ClaimRequests]) -> _Question:
        key = (self._classes.version, *(claim.question for claim in claims))
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = _Question({}, WeakKeyDictionary())
            self._forget_oldest()
        else:
            self._questions.move_to_end(key)
        return question

    def _forget_oldest(self) -> None:
        answers = sum(len(question.answers) for question in self._questions.values())
        while answers > MOST_ANSWERS or len(self._questions) > MOST_QUESTIONS:
            _, oldest = self._questions.popitem(last=False)
            answers -= len(oldest.answers)

    def _claim_for(
        self, extended: ExtendedResources, pod: Pod, lacking: frozenset[str]
    ) -> tuple[ClaimRequests | None, tuple[RequestMapping, ...]]:
        if lacking not in extended.variants:
            requests, mappings = device_requests(pod, lacking, self._classes)
            spec = ResourceClaimSpec(devices=DeviceClaim(requests=requests))
            claim = msgspec.structs.replace(extended.claim, spec=spec)
            ready = requests_of(claim, self._classes, self._features) if requests else None
            extended.variants[lacking] = ready, mappings
        return extended.variants[lacking]

    def _within_time(self, devices: DevicesOfPod, search: Callable[..., T]) -> T:
        """Search for as long as the node and the attempt have.

        Raises AttemptTimeoutError when others have taken most of the time.
        """
        if devices.search_time is None:
            devices.search_time = self._time.for_attempt(devices.namespace)
        before = devices.searched
        left, own = devices.search_time - before, self._timeout or math.inf
        if left <= 0:
            raise AttemptTimeoutError
        start = self._clock.cpu_time()
        try:
            return search(is_late=deadline(self._clock, min(left, own)))
        except SearchTimeoutError as exc:
            if own <= left:
                raise
            raise AttemptTimeoutError from exc
        finally:
            devices.searched += self._clock.cpu_time() - start
            self._time.charge(devices.namespace, before=before, after=devices.searched)


def _may_use(
    claims: Sequence[ClaimRequests], pools: Sequence[Pool], *, is_late: Callable[[], bool]
) -> bool:
    """Whether a request selects a device of *pools*, or is stopped by them."""

    def check_time() -> None:
        if is_late():
            raise SearchTimeoutError

    requests = [request for claim in claims for choice in claim.requests for request in choice]
    try:
        return any(
            pool.is_broken
            or any(
                request.selects(device, check_time)
                for device in pool.devices
                for request in requests
            )
            for pool in pools
        )
    except AllocationError:
        return True


def claim_in_memory(pod: Pod) -> ResourceClaim:
    """Make the claim for extended resources that is created once the pod has a node."""
    meta = pod.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=meta.namespace,
            uid=f"{meta.uid}{IN_MEMORY}",
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
            owner_references=(owner,),
        )
    )
