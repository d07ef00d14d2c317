"""All extenders together: whom to ask about a pod, in which order, and what their answers come to.

Nothing is known here of what happens in the cluster while they are asked.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Final

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.shared_parts import PodDecoder, node_decoder
from berth.scheduler.extender import whole_objects
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.result import EXTENDER, ExtenderResult
from berth.scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Status

log = logging.getLogger(__name__)

POINTS_PER_PRIORITY: Final = 10
"""Extenders score nodes from 0 to 10, plugins from 0 to 100."""


class Extenders:
    """The extenders of a configuration; those that may be ignored come last (spec §9.1)."""

    def __init__(self, extenders: Iterable[Extender] = ()) -> None:
        self._all = sorted(extenders, key=lambda extender: extender.is_ignorable)
        self._deciding = [
            e
            for e in self._all
            if e.config.filter_verb or e.config.prioritize_verb or e.config.preempt_verb
        ]
        self._binding = [e for e in self._all if e.config.bind_verb]

    def __iter__(self) -> Iterator[Extender]:
        """Give them in the order in which they are asked."""
        return iter(self._all)

    @property
    def decide(self) -> bool:
        """Whether one filters or prioritizes, so that one feasible node is not enough."""
        return any(e.config.filter_verb or e.config.prioritize_verb for e in self._all)

    def have_a_say(self, pod: Pod) -> bool:
        """Whether *pod* cannot be placed without asking; having it bound is another matter."""
        return bool(self._deciding) and any(e.is_interested(pod) for e in self._deciding)

    def preempting(self, pod: Pod) -> list[Extender]:
        """Return those that want to be asked whom to evict for *pod*."""
        return [e for e in self._all if e.config.preempt_verb and e.is_interested(pod)]

    def binder(self, pod: Pod) -> Extender | None:
        """Return the one that binds *pod* in place of the Bind plugins."""
        for extender in self._binding:
            if extender.is_interested(pod):
                return extender
        return None

    def queueing_hints(self) -> list[tuple[str, ClusterEventWithHint]]:
        """Register for all events: nobody can know what an extender goes by (spec §3.9)."""
        return [(EXTENDER, ClusterEventWithHint(ALL_EVENTS))] if self._all else []

    # What has to be kept of objects for extenders to be shown them.

    @property
    def decode_pod(self) -> Callable[[bytes], Pod]:
        if any(e.config.preempt_verb and not e.config.node_cache_capable for e in self._all):
            return whole_objects.decode_pod
        if self._all:
            return whole_objects.decode_waiting_pod
        return PodDecoder()

    @property
    def decode_node(self) -> Callable[[bytes], Node]:
        for e in self._all:
            if not e.config.node_cache_capable and (
                e.config.filter_verb or e.config.prioritize_verb
            ):
                return whole_objects.decode_node
        return node_decoder()

    # Asking.

    async def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> ExtenderResult:
        """Ask one after the other which of *nodes* may take *pod*, while there are any left."""
        by_name = {node.metadata.name: node for node in nodes}
        left, statuses, error = list(by_name), dict[str, Status](), None
        for extender in self._all:
            if not left:
                break
            if not extender.config.filter_verb or not extender.is_interested(pod.pod):
                continue
            try:
                answer = await extender.filter(pod, [by_name[name] for name in left])
            except ExtenderError as exc:
                if not extender.is_ignorable:
                    left, error = [], Status.error(str(exc))
                    break
                _log_ignored(extender, "filter", pod, exc)
                continue
            left = answer.nodes
            statuses |= answer.statuses
        return ExtenderResult(frozenset(by_name), left, statuses, error=error)

    async def prioritize(self, pod: PodInfo, nodes: Sequence[Node]) -> dict[str, int]:
        """Ask all at once for scores; return what they add to the totals of nodes, by name.

        Whoever fails adds nothing.
        """
        names = {node.metadata.name for node in nodes}
        asked = [e for e in self._all if e.config.prioritize_verb and e.is_interested(pod.pod)]
        scores: dict[str, int] = {}
        for extender, answer in zip(
            asked,
            await asyncio.gather(*(self._scores_by(e, pod, nodes) for e in asked)),
            strict=True,
        ):
            for name, score in answer.items():
                if name in names:
                    points = score * extender.config.weight * POINTS_PER_PRIORITY
                    scores[name] = scores.get(name, 0) + points
        return scores

    async def _scores_by(
        self, extender: Extender, pod: PodInfo, nodes: Sequence[Node]
    ) -> dict[str, int]:
        try:
            return await extender.prioritize(pod, nodes)
        except ExtenderError as exc:
            _log_ignored(extender, "prioritize", pod, exc)
            return {}

    async def preempt(
        self, pod: PodInfo, candidates: Sequence[Candidate], nodes: NodeTable
    ) -> list[Candidate]:
        """Let one after the other replace *candidates*, while there are any left.

        Raises ExtenderError when one fails that cannot be ignored.
        """
        left = list(candidates)
        for extender in self.preempting(pod.pod):
            if not left:
                break
            try:
                left = await extender.preempt(pod, left, nodes)
            except ExtenderError as exc:
                if not extender.is_ignorable:
                    raise
                _log_ignored(extender, "preempt", pod, exc)
        return left

    def breaker_states(self) -> dict[str, int]:
        """Return whether calls go through, by name of the extender."""
        return {extender.name: extender.client.breaker.state for extender in self._all}

    async def close(self) -> None:
        """Close all connections."""
        async with AsyncExitStack() as stack:
            for extender in self._all:
                stack.push_async_callback(extender.client.close)


def _log_ignored(extender: Extender, verb: str, pod: PodInfo, error: ExtenderError) -> None:
    log.warning(
        "extender failed and is ignored",
        extra={"extender": extender.name, "verb": verb, "pod": pod.key, "error": str(error)},
    )
