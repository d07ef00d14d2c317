"""Follows a cluster, and decides each pod right before the other scheduler's decision shows."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from berth.insight.explain.comparison import Agreement, Chosen, Comparison, compare
from berth.insight.shadow.changes import Change, InOrder
from berth.insight.shadow.claims import is_reserved_by
from berth.insight.shadow.comparisons import Comparisons, Order, Skipped, Summary, agrees
from berth.insight.shadow.moves import LONGEST, Moves
from berth.insight.shadow.waiting import Decided, WaitingPod, WaitingPods, failure
from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.runtime.clock import Clock
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.kind import PODS, Kind
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.metrics.collectors import ShadowCollector
from berth.scheduler.sampling import sample_size
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name

log = logging.getLogger(__name__)

WINDOW: Final = 0.5
"""Seconds by which bindings may arrive in another order than the pods were decided in: several
times what an API server takes for a binding."""
MOST_BEHIND: Final = 5_000
"""Changes that wait. While there are more, placements are counted as skipped."""
MANY_BEHIND: Final = 1_000
"""Changes that wait. While there are more, pods are not decided on the states that there were
before, which takes up to twenty decisions."""
MOST_AHEAD: Final = 50
"""Pods that are decided and not bound yet, for their claims are. Each holds a copy of the nodes."""
CHANGES_PER_TURN: Final = 50
"""Changes that need no decision, between two turns of the event loop."""


@dataclass(frozen=True, slots=True)
class Received:
    """A change that waits for its turn."""

    change: Change
    at: float
    """When it was received, on the monotonic clock."""
    is_relisted: bool = False


class Bound(NamedTuple):
    """A pod that got its node not long ago."""

    pod: PodInfo
    place: tuple[int, int]
    at: float


class Shadow:
    """Compares what *core* would decide with what another scheduler does.

    *core* schedules nothing: its cache and its listers follow the changes one after the other, each
    as soon as what depends on the state before it is decided.
    """

    def __init__(
        self,
        core: SchedulerCore,
        *,
        clock: Clock,
        is_relisting: Callable[[], bool] = lambda: False,
    ) -> None:
        """*is_relisting*: whether the pods that are told now come from a list, in any order."""
        self._core = core
        self.clock = clock
        self._is_relisting = is_relisting
        self._received: deque[Received] = deque()
        self._has_received = asyncio.Event()
        self._is_synced = False
        self._waiting = WaitingPods(core.live.profiles)
        self._bound: deque[Bound] = deque()
        self._moves = Moves(core.cache)
        self.comparisons = Comparisons(clock)
        self.handler_failures = 0

    def handlers(self) -> Mapping[Kind[Any], ResourceEventHandler[Any]]:
        """Return what is to be told of changes in place of the handlers of the core."""
        return {
            kind: InOrder(handler, self._follow_pod if kind is PODS else self._follow)
            for kind, handler in self._core.handlers.items()
        }

    @property
    def num_behind(self) -> int:
        """How many changes have been received and not taken in yet."""
        return len(self._received)

    def collector(self) -> ShadowCollector:
        """Return what reads the metrics."""
        comparisons = self.comparisons
        return ShadowCollector(
            compared=comparisons.counts, skipped=comparisons.skipped, behind=lambda: self.num_behind
        )

    def summary(self) -> Summary:
        """Return how many comparisons there were, and what is under way."""
        now = {"waiting": len(self._waiting), "behind": self.num_behind}
        return self.comparisons.summary().model_copy(update=now)

    async def run(self) -> None:
        """Compare, for ever; to be begun when the whole state of the cluster is known."""
        self._is_synced = True
        since_turn = 0
        while True:
            await self._has_received.wait()
            while self._received:
                since_turn += 1
                if await self._take_in(self._received[0]) or since_turn >= CHANGES_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
            self._has_received.clear()

    def _follow(self, change: Change) -> None:
        """Take *change* in, now or in its turn."""
        if not self._is_synced:
            change.take_in()
            return
        self._received.append(Received(change, self.clock.monotonic()))
        self._has_received.set()

    def _follow_pod(self, change: Change) -> None:
        if not self._is_synced:
            self._take_in_pod(change)
            return
        now, relists = self.clock.monotonic(), self._is_relisting()
        self._received.append(Received(change, now, is_relisted=relists))
        self._has_received.set()

    async def _take_in(self, received: Received) -> bool:
        """Take in the first change; return whether something was decided before."""
        change = received.change
        decided = False
        try:
            if isinstance(change.new, Pod):
                decided = await self._look_at(received)
            else:
                decided = await self._decide_ahead(received)
        except Exception:  # one pod's comparison, and no more
            log.exception("a pod cannot be compared", extra={"object": change.new.metadata.key})
            self.comparisons.skip(Skipped.ERROR)
        self._received.popleft()
        try:
            if isinstance(change.new or change.old, Pod):
                self._take_in_pod(change)
            else:
                change.take_in()
        except Exception:  # as in a store, which notifies handlers otherwise
            self.handler_failures += 1
            log.exception("event handler failed")
        self._moves.took_in(change, received.at)
        return decided

    def _take_in_pod(self, change: Change) -> None:
        try:
            change.take_in()
        finally:
            self._waiting.follow(change.old, change.new)

    async def _look_at(self, received: Received) -> bool:
        """Compare what *received* says of a pod; False if it says nothing."""
        old, new = received.change.old, received.change.new
        if old is None:
            if new.spec.node_name and self._waiting.is_ours(new):
                relisted = Skipped.RELISTED if received.is_relisted else Skipped.CREATED_WITH_NODE
                self.comparisons.skip(relisted)
            return False
        waiting = self._waiting.get(old)
        if waiting is None:
            return False
        failed = failure(new)
        if _is_binding(old, new):
            chosen = Chosen(new.spec.node_name)
        elif failed is not None and failed != failure(old):
            chosen = Chosen(message=failed.message)
        else:
            return False
        skipped = self._reason_to_skip(received, waiting)
        if skipped is not None:
            self.comparisons.skip(skipped)
        else:
            await self._compare(received, waiting, chosen)
        if chosen.node:
            self._waiting.used_claims(waiting.pod)
            self._bound.append(Bound(PodInfo(new), waiting.place, received.at))
            _drop_older(self._bound, received.at - WINDOW)
        return skipped is None

    def _reason_to_skip(self, received: Received, waiting: WaitingPod) -> Skipped | None:
        pod = waiting.pod
        if waiting.missed:
            return Skipped.CLAIMS
        if received.is_relisted:
            return Skipped.RELISTED
        if len(self._received) > MOST_BEHIND:
            return Skipped.BEHIND
        if pod.spec.scheduling_gates:
            return Skipped.GATED
        if self._core.scheduler.groups is not None and group_of(pod) is not None:
            return Skipped.POD_GROUP
        return None

    async def _compare(self, received: Received, waiting: WaitingPod, chosen: Chosen) -> None:
        """Compare in the order of the watch and, if that differs, in others that may have been."""
        ahead = waiting.ahead
        decided = ahead[0] if ahead else self._decide(waiting.pod)
        comparison, order = compare(decided.outcome, decided.nodes, chosen), Order.WATCH
        if not agrees(comparison):
            if not ahead:
                await self._until(received.at + WINDOW)
            others = (
                ((Order.QUEUE, pod) for pod in ahead[1:])
                if ahead
                else self._decide_otherwise(received, waiting)
            )
            for other, otherwise in others:
                again = compare(otherwise.outcome, otherwise.nodes, chosen)
                if agrees(again):
                    comparison, order = again, other
                    break
                if again.result.is_agreement and not comparison.result.is_agreement:
                    comparison, order = again, other  # but for the reasons
            if isinstance(others, Generator):
                others.close()  # which does all again that was undone
        self.comparisons.add(
            comparison, order=order, may_be_sampled=self._may_be_sampled(comparison)
        )

    def _may_be_sampled(self, comparison: Comparison) -> bool:
        """Whether the chosen node may be the best of a sample, as kube-scheduler takes one."""
        if comparison.result is not Agreement.DIFFERED or not comparison.num_better:
            return False
        profile = self._core.live.profiles[comparison.profile]
        wanted = sample_size(profile.percentage_of_nodes_to_score, comparison.num_nodes)
        return comparison.num_better <= comparison.num_feasible - wanted

    def _decide_otherwise(
        self, received: Received, waiting: WaitingPod
    ) -> Generator[tuple[Order, Decided], None, None]:
        """Decide in other orders of bindings, and on the states that there were before.

        The cache is another one until this is resumed or closed.
        """
        with self._in_order_of_queue(received, waiting) as is_another:
            if is_another:
                yield Order.QUEUE, self._decide(waiting.pod)
        if len(self._received) > MANY_BEHIND:
            return
        since = received.at - LONGEST
        yield from self._decide_before_moves(waiting, since)
        with self._in_order_of_queue(received, waiting) as is_another:
            if is_another:
                yield from self._decide_before_moves(waiting, since)

    def _decide_before_moves(
        self, waiting: WaitingPod, since: float
    ) -> Generator[tuple[Order, Decided], None, None]:
        with closing(self._moves.undone(since)) as undone:
            for _ in undone:
                yield Order.MOVED, self._decide(waiting.pod)

    async def _decide_ahead(self, received: Received) -> bool:
        """Decide for the pods whose claims the other scheduler is about to change."""
        if received.change.old is None or received.change.new is None:
            return False
        reserved = [*is_reserved_by(received.change, self._waiting.with_claims())]
        for pod in reserved:
            waiting = self._waiting.get(pod)
            assert waiting is not None, pod.key
            if waiting.ahead or waiting.missed:
                continue
            is_skipped = self._reason_to_skip(received, waiting) is not None
            if is_skipped or self._waiting.num_ahead() >= MOST_AHEAD:
                waiting.missed = True
                continue
            await self._until(received.at + WINDOW)
            waiting.ahead = [self._decide(pod, detached=True)]
            with self._in_order_of_queue(received, waiting) as is_another:
                if is_another:
                    waiting.ahead.append(self._decide(pod, detached=True))
        return bool(reserved)

    async def _until(self, moment: float) -> None:
        rest = moment - self.clock.monotonic()
        if rest > 0:
            await self.clock.sleep(rest)

    def _decide(self, pod: Pod, *, detached: bool = False) -> Decided:
        """Decide *pod* on the state as it is now; nothing comes of it.

        *detached*: on a copy of the nodes, for the answer to be read when they have changed.
        """
        cache = self._core.cache
        cache.refresh_order()
        nodes = cache.table.detached() if detached else cache.table
        profile = self._core.live.profiles[pod.spec.scheduler_name]
        nominated = self._waiting.nominator.nominated_pods()
        cycle = Cycle(profile, PodInfo(pod), nodes, nominated)
        return Decided(evaluate_pod(cycle, select=smallest_name(nodes)), nodes)

    @contextmanager
    def _in_order_of_queue(self, received: Received, waiting: WaitingPod) -> Iterator[bool]:
        """Have the cache be, in the block, as if pods were decided by their places in the queue.

        Yield whether that changes anything.
        """
        cache, nominator = self._core.cache, self._waiting.nominator
        came_first = [
            bound.pod
            for bound in self._bound
            if bound.at >= received.at - WINDOW and bound.place > waiting.place
        ]
        come_later = [
            pod for pod, place in self._binds_until(received.at + WINDOW) if place < waiting.place
        ]
        if not came_first and not come_later:
            yield False
            return
        with ExitStack() as undo:
            undo.enter_context(cache.without_all(came_first))
            for pod in come_later:
                cache.assume_pod(pod)
                undo.callback(cache.forget_pod, pod)
                undo.callback(nominator.suspend(pod.uid))
            yield True

    def _binds_until(self, moment: float) -> list[tuple[PodInfo, tuple[int, int]]]:
        """Return the pods whose bindings have been received, but for the first, with their places.

        Changes of other pods do not count: they were not decided.
        """
        binds = []
        for received in islice(self._received, 1, None):
            if received.at > moment:
                break
            old, new = received.change.old, received.change.new
            if isinstance(old, Pod) and isinstance(new, Pod) and _is_binding(old, new):
                waiting = self._waiting.get(new)
                if waiting is not None:
                    binds.append((PodInfo(new), waiting.place))
        return binds


def _is_binding(old: Pod, new: Pod) -> bool:
    return bool(new.spec.node_name and not old.spec.node_name)


def _drop_older(recent: "deque[Bound]", moment: float) -> None:
    while recent and recent[0].at < moment:
        recent.popleft()
