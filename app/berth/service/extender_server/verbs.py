"""The verbs of an extender, answered from the scheduler's own caches."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import compress
from typing import Final, NamedTuple

import msgspec
import numpy as np

from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.profile.nominated_pods import NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.service.extender_server import wire
from berth.service.extender_server.bindings import Bindings
from berth.service.extender_server.candidate_nodes import (
    CandidateNodes,
    SentNodes,
    listed,
    most_nodes,
    overlaid,
    read_nodes,
    remember,
)
from berth.service.extender_server.evaluation import filter_nodes, preempt, prioritize_nodes

log = logging.getLogger(__name__)


class VerbResult(NamedTuple):
    """The JSON to send, and what it comes to, for metrics."""

    body: bytes
    nodes: int = 0
    """How many candidate nodes there were."""
    passed: int = 0
    """How many of them are in the answer."""
    error: str = ""
    """What went wrong, also when the wire form has no place for it."""


class Verbs:
    """Answers by one of *profiles*; a method per verb, which raises ExtenderArgsError."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        cache: Cache,
        bindings: Bindings,
        budgets: DisruptionBudgets,
        nominated: Callable[[], NominatedPods],
    ) -> None:
        """*nominated* returns the pods that this scheduler has nominated nodes for.

        Nominations by the other scheduler are its own business.
        """
        self.profiles: Final = profiles
        self._cache = cache
        self._bindings = bindings
        self._budgets = budgets
        self._nominated = nominated

    async def filter(self, profile: Profile, body: bytes) -> VerbResult:
        args = wire.read_args(body)
        sent = await self._sent(args)
        pod = PodInfo(args.pod)
        place = self._bindings.place_of(pod.uid)
        with self._cache.without(pod.uid):
            candidates = self._candidates(args, sent)
            filtered = filter_nodes(profile, pod, candidates, nominated=self._nominated())
        if filtered.error:
            return VerbResult(
                wire.encode(wire.ExtenderFilterResult(error=filtered.error)),
                len(candidates.names),
                0,
                filtered.error,
            )
        if place:
            filtered = filtered.only(place, candidates.names)
        fitting = filtered.fits.tolist()
        names = nodes = None
        if args.nodes is None:
            left = CandidateNodes(
                candidates.table,
                list(compress(candidates.names, fitting)),
                candidates.rows[filtered.fits],
            )
            names = wire.encode(left.names)
            remember(left, names)
        else:
            nodes = wire.NodeList(list(compress(args.nodes, fitting)))
        result = wire.ExtenderFilterResult(
            nodes,
            None if names is None else msgspec.Raw(names),
            filtered.failed,
            filtered.unresolvable,
        )
        return VerbResult(wire.encode(result), len(fitting), int(np.count_nonzero(filtered.fits)))

    async def prioritize(self, profile: Profile, body: bytes) -> VerbResult:
        """Score nodes; all get 0 if that fails, because HostPriorityList has no error field."""
        args = wire.read_args(body)
        sent = await self._sent(args)
        pod = PodInfo(args.pod)
        with self._cache.without(pod.uid):
            candidates = self._candidates(args, sent)
            ranked = prioritize_nodes(profile, pod, candidates)
        if ranked.error:
            log.warning(
                "nodes cannot be ranked for another scheduler",
                extra={"pod": args.pod.key, "error": ranked.error},
            )
        count = len(candidates.names)
        priorities = list(map(wire.HostPriority, candidates.names, ranked.scores))
        return VerbResult(wire.encode(priorities), count, count, ranked.error)

    async def preempt(self, profile: Profile, body: bytes) -> VerbResult:
        args = wire.read_preemption_args(body)
        most = most_nodes(self._cache.table)
        if len(args.victims) > most:
            raise wire.ExtenderArgsError(f"victims on more than {most} nodes")
        self._cache.refresh_order()
        pod = PodInfo(args.pod)
        with self._cache.without(pod.uid):
            agreed = preempt(
                profile,
                pod,
                self._cache.table,
                victims=args.victims,
                nominated=self._nominated(),
                budgets=self._budgets,
            )
        return VerbResult(
            wire.encode(wire.ExtenderPreemptionResult(agreed)), len(args.victims), len(agreed)
        )

    async def bind(
        self, profile: Profile, body: bytes, *, gone: asyncio.Future[None]
    ) -> VerbResult:
        """Bind, unless *gone* is done before the request leaves: nobody waits any more then."""
        args = wire.read_binding_args(body)
        error = await self._bindings.bind(profile, args, nominated=self._nominated, gone=gone)
        return VerbResult(
            wire.encode(wire.ExtenderBindingResult(error)), 1, 0 if error else 1, error
        )

    async def _sent(self, args: wire.ExtenderArgs) -> SentNodes | None:
        if args.nodes is None:
            return None
        return await read_nodes(self._cache.table, args.nodes)

    def _candidates(self, args: wire.ExtenderArgs, sent: SentNodes | None) -> CandidateNodes:
        """Return the nodes as of now: nothing may be awaited before they are evaluated."""
        self._cache.refresh_order()
        if sent is not None:
            return overlaid(self._cache.table, sent)
        return listed(self._cache.table, args.node_names or b"[]")
