"""Answers questions from the scheduler's own caches: one method for each verb."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import compress
from typing import Final, NamedTuple

import msgspec
import numpy as np

from berth.cache.cache import Cache
from berth.extender_server import wire
from berth.extender_server.asked_nodes import (
    AskedNodes,
    SentNodes,
    listed,
    most_nodes,
    overlaid,
    read_nodes,
    remember,
)
from berth.extender_server.bindings import Bindings
from berth.extender_server.judging import filter_nodes, preempt, prioritize_nodes
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.profile.nominated_pods import NominatedPods
from berth.profile.profile import Profile

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """The JSON to send, and what it comes to, for metrics."""

    body: bytes
    nodes: int = 0
    """How many nodes were asked about."""
    passed: int = 0
    """How many of them are in the answer."""
    error: str = ""
    """What went wrong, also when the wire form has no place for it."""


class Answers:
    """Answers in the name of *profiles*. Reading a question raises QuestionError."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        cache: Cache,
        bindings: Bindings,
        budgets: DisruptionBudgets,
        nominated: Callable[[], NominatedPods],
    ) -> None:
        """*nominated* tells who is nominated where, by our own scheduling.

        Those that the other scheduler nominates are its own business.
        """
        self.profiles: Final = profiles
        self._cache = cache
        self._bindings = bindings
        self._budgets = budgets
        self._nominated = nominated

    async def filter(self, profile: Profile, body: bytes) -> Answer:
        question = wire.read_question(body)
        sent = await self._sent(question)
        pod = PodInfo(question.pod)
        place = self._bindings.place_of(pod.uid)
        with self._cache.without(pod.uid):
            asked = self._asked(question, sent)
            judged = filter_nodes(profile, pod, asked, nominated=self._nominated())
        if judged.error:
            return Answer(
                wire.encode(wire.FilterResult(error=judged.error)),
                len(asked.names),
                0,
                judged.error,
            )
        if place:
            judged = judged.only(place, asked.names)
        fitting = judged.fits.tolist()
        names = nodes = None
        if question.nodes is None:
            left = AskedNodes(
                asked.table, list(compress(asked.names, fitting)), asked.rows[judged.fits]
            )
            names = wire.encode(left.names)
            remember(left, names)
        else:
            nodes = wire.NodeList(list(compress(question.nodes, fitting)))
        result = wire.FilterResult(
            nodes,
            None if names is None else msgspec.Raw(names),
            judged.failed,
            judged.unresolvable,
        )
        return Answer(wire.encode(result), len(fitting), int(np.count_nonzero(judged.fits)))

    async def prioritize(self, profile: Profile, body: bytes) -> Answer:
        """Rank nodes; a pod that cannot be judged gets 0 for all: the answer has no error field."""
        question = wire.read_question(body)
        sent = await self._sent(question)
        pod = PodInfo(question.pod)
        with self._cache.without(pod.uid):
            asked = self._asked(question, sent)
            ranked = prioritize_nodes(profile, pod, asked)
        if ranked.error:
            log.warning(
                "nodes cannot be ranked for another scheduler",
                extra={"pod": question.pod.key, "error": ranked.error},
            )
        count = len(asked.names)
        priorities = list(map(wire.HostPriority, asked.names, ranked.scores))
        return Answer(wire.encode(priorities), count, count, ranked.error)

    async def preempt(self, profile: Profile, body: bytes) -> Answer:
        question = wire.read_preemption_question(body)
        most = most_nodes(self._cache.table)
        if len(question.victims) > most:
            raise wire.QuestionError(f"victims on more than {most} nodes")
        self._cache.refresh_order()
        pod = PodInfo(question.pod)
        with self._cache.without(pod.uid):
            agreed = preempt(
                profile,
                pod,
                self._cache.table,
                victims=question.victims,
                nominated=self._nominated(),
                budgets=self._budgets,
            )
        return Answer(
            wire.encode(wire.PreemptionResult(agreed)), len(question.victims), len(agreed)
        )

    async def bind(self, profile: Profile, body: bytes, *, gone: asyncio.Future[None]) -> Answer:
        """Bind; not if *gone*, which tells that nobody waits any more, is done before it leaves."""
        question = wire.read_binding_question(body)
        error = await self._bindings.bind(profile, question, nominated=self._nominated, gone=gone)
        return Answer(wire.encode(wire.BindingResult(error)), 1, 0 if error else 1, error)

    async def _sent(self, question: wire.Question) -> SentNodes | None:
        if question.nodes is None:
            return None
        return await read_nodes(self._cache.table, question.nodes)

    def _asked(self, question: wire.Question, sent: SentNodes | None) -> AskedNodes:
        """Return what to judge, now: nothing may be awaited between this and the judgement."""
        self._cache.refresh_order()
        if sent is not None:
            return overlaid(self._cache.table, sent)
        return listed(self._cache.table, question.node_names or b"[]")
