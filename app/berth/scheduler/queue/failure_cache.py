"""Pods of which the next attempt is known to fail: one of their signature has just failed.

A failure is known while nothing that it depends on has changed. It is kept only while a pod of the
signature waits for events (spec §3.5): the first event that moves such a pod ends it.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.pod_signature import (
    Demand,
    PodSignature,
    Requests,
    demand_of,
    signature_for_hints,
    signature_of,
)
from berth.scheduler.queue.nominator import Nominator


class CachedFailure(msgspec.Struct, frozen=True):
    """What the attempt for one pod came to; it holds for all pods of the same signature."""

    pod: str
    """The pod ``namespace/name`` that was tried."""
    rejectors: frozenset[str]
    """The plugins that rejected it."""
    message: str
    num_nodes: int
    """All nodes of the cluster at that time."""
    reasons: Mapping[str, int]
    """Reason to the number of nodes it holds for."""
    holds_for_more: bool = False
    """Whether pods that request more, and are otherwise the same, are bound to fail, too."""


MOST_LEAST: Final = 16
"""So many requests are kept of which none is the least, of pods that are otherwise the same."""
MOST_KINDS: Final = 1_024
"""So many kinds of pods are kept that differ in more than their requests."""


class FailureCache:
    """The known failures, by signature."""

    def __init__(self, profiles: Mapping[str, Collection[str]], nominator: Nominator) -> None:
        """*profiles* are those whose plugins decide by signature, with who may look at volumes."""
        self._profiles = profiles
        self._by_priority: dict[int, dict[PodSignature, CachedFailure]] = {}
        self._least: dict[Hashable, dict[PodSignature, Requests]] = {}
        """By what pods have in common beside requests, the least ones that are known to fail.

        Those of signatures that are not known any more do not count.
        """
        self._version = 0
        self._nominator = nominator
        self._given_up = nominator.given_up

    def use(self, profiles: Mapping[str, Collection[str]]) -> Iterator[None]:
        """Continue with other *profiles*, without known failures.

        To free thousands of them takes ten milliseconds: what is returned frees one at a time.
        """
        self._profiles = profiles
        known, self._by_priority = self._by_priority, {}
        self._clear()
        return _freeing(known.values())

    def _clear(self) -> None:
        self._by_priority.clear()
        self._least.clear()
        self._version += 1

    def signature_of(self, queued: QueuedPodInfo) -> PodSignature | None:
        """Return the signature of a pod; None: no other pod has the same."""
        if queued.pod.spec.scheduler_name not in self._profiles:
            return None
        return signature_of(queued.pod_info)

    def signature_for_hints(self, queued: QueuedPodInfo) -> PodSignature | None:
        """Return what hints about a gated pod go by; None: they may look at that pod itself."""
        if not queued.gate_hints_by_signature:
            return None
        by_volumes = self._profiles.get(queued.pod.spec.scheduler_name)
        if by_volumes is None:
            return None
        if queued.pod_info.template.volumes and not (
            queued.unschedulable_plugins.isdisjoint(by_volumes)
            and queued.pending_plugins.isdisjoint(by_volumes)
        ):
            return None
        return signature_for_hints(queued.pod_info)

    def _catch_up(self) -> None:
        """Forget everything if nominations were given up since this was last called.

        That happens without an event, and a fresh attempt would see it. Further nominations help
        nobody: nodes are judged with the nominated pods and without.
        """
        if self._given_up != self._nominator.given_up:
            self._given_up = self._nominator.given_up
            self._clear()

    def learn(self, queued: QueuedPodInfo, failure: CachedFailure) -> None:
        """Remember *failure* for the signature of a pod that has just begun to wait for events."""
        self._catch_up()
        signature = self.signature_of(queued)
        if signature is None:
            return
        self._by_priority.setdefault(signature.priority, {})[signature] = failure
        demand = demand_of(signature) if failure.holds_for_more else None
        if demand is not None and not self._fails(demand):
            if len(self._least) >= MOST_KINDS:
                self._least.clear()
            least = self._least.setdefault(demand.of, {})
            for other in [other for other, known in least.items() if demand.requests <= known]:
                del least[other]
            if len(least) < MOST_LEAST:
                least[signature] = demand.requests
                self._version += 1

    @property
    def version(self) -> int:
        """Counts up whenever :meth:`least` may return something else."""
        self._catch_up()
        return self._version

    def bound_to_fail(self, queued: QueuedPodInfo) -> Demand | None:
        """Return what a pod demands that fails because one fails that requests no more; else None.

        Not if a pod of the same signature is known to fail: then it needs no attempt.
        """
        self._catch_up()
        if not self._least:
            return None
        signature = self.signature_of(queued)
        if signature is None or signature in self:
            return None
        demand = demand_of(signature)
        return demand if demand is not None and self._fails(demand) else None

    def _fails(self, demand: Demand) -> bool:
        return any(known <= demand.requests for known in self.least(demand.of))

    def least(self, of: Hashable) -> Collection[Requests]:
        """Return the least requests that are known to fail, of pods that have *of* in common."""
        least = self._least.get(of)
        if least is None:
            return ()
        for signature in [signature for signature in least if signature not in self]:
            del least[signature]
        return least.values()

    def failure(self, queued: QueuedPodInfo) -> CachedFailure | None:
        """Return what is known of the signature of a pod."""
        self._catch_up()
        if not self._by_priority:
            return None
        signature = self.signature_of(queued)
        if signature is None:
            return None
        return self._by_priority.get(signature.priority, {}).get(signature)

    def forget(self, queued: QueuedPodInfo | None) -> None:
        """Forget the failure of a pod's signature."""
        if queued is not None and self._by_priority:
            signature = self.signature_of(queued)
            if signature is not None:
                self.forget_signature(signature)

    def forget_signature(self, signature: PodSignature) -> None:
        """Forget the failure of a signature; unknown signatures are ignored."""
        if signature in self:
            same_priority = self._by_priority[signature.priority]
            self._version += same_priority.pop(signature).holds_for_more
            if not same_priority:
                del self._by_priority[signature.priority]

    def forget_above(self, priority: int) -> None:
        """Forget the failures of pods above *priority*, that of a pod that has just got a node."""
        for higher in [known for known in self._by_priority if known > priority]:
            del self._by_priority[higher]
            self._version += 1

    def __contains__(self, signature: PodSignature) -> bool:
        return signature in self._by_priority.get(signature.priority, ())

    def __iter__(self) -> Iterator[PodSignature]:
        for same_priority in self._by_priority.values():
            yield from same_priority

    def __bool__(self) -> bool:
        return bool(self._by_priority)


def _freeing(known: Iterable[dict[PodSignature, CachedFailure]]) -> Iterator[None]:
    for failures in known:
        while failures:
            failures.popitem()
            yield
