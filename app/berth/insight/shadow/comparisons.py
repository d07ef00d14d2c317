"""Comparisons of a shadow: the last ones, and how many there were of each kind."""

from collections import Counter, deque
from collections.abc import Iterable
from enum import StrEnum
from heapq import merge
from typing import Final, NamedTuple

from berth.insight.explain.comparison import Agreement, Comparison
from berth.insight.explain.explanation import ResponseModel
from berth.runtime.clock import Clock, rfc3339

AGREEMENTS_KEPT: Final = 1_000
DIFFERENCES_KEPT: Final = 2_000
"""Kept apart, so that a thousand agreements do not push out the one difference."""


class Order(StrEnum):
    """The order of bindings in which a comparison holds."""

    WATCH = "watch"
    """As the watch told them."""
    QUEUE = "queue"
    """As the other scheduler's queue had the pods: bindings that are written at the same time may
    arrive in another order than they were decided in."""
    MOVED = "moved"
    """Before something else moved: pods that left, or came with a node, and nodes that changed
    between the decision and the time when it was seen."""


class Skipped(StrEnum):
    """Why a pod that was placed is not compared."""

    BEHIND = "behind"
    """Too many changes wait to be taken in."""
    RELISTED = "relisted"
    """The watch was interrupted: what came in between is known without its order."""
    CREATED_WITH_NODE = "created_with_node"
    """No scheduler placed it."""
    POD_GROUP = "pod_group"
    """It is scheduled together with others."""
    CLAIMS = "claims"
    """Its claims were bound to a node before it could be decided."""
    GATED = "gated"
    """It has scheduling gates, and was bound all the same."""
    ERROR = "error"
    """The comparison failed; the log says how."""


class Shadowed(Comparison):
    """One comparison, as it is kept."""

    number: int
    """Counts the comparisons since the start."""
    at: str
    """When the placement, or the failure, was seen, in UTC."""
    order: Order = Order.WATCH
    may_be_sampled: bool = False
    """Whether the chosen node may be the best of the sample that kube-scheduler scores."""


class Count(NamedTuple):
    """What comparisons are counted by; the labels of the metric."""

    result: Agreement
    profile: str
    plugin: str
    order: Order


class Comparisons:
    """The last comparisons, and counts of all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._agreements: deque[Shadowed] = deque(maxlen=AGREEMENTS_KEPT)
        self._differences: deque[Shadowed] = deque(maxlen=DIFFERENCES_KEPT)
        self.since = rfc3339(clock.now())
        self.made = 0
        self.counts: Counter[Count] = Counter()
        self.skipped: Counter[Skipped] = Counter(dict.fromkeys(Skipped, 0))

    def add(self, comparison: Comparison, *, order: Order, may_be_sampled: bool = False) -> None:
        """Keep and count *comparison*, which was made just now."""
        self.made += 1
        kept = self._agreements if agrees(comparison) else self._differences
        at = rfc3339(self._clock.now())
        kept.append(
            Shadowed.model_construct(
                **dict(comparison),
                number=self.made,
                at=at,
                order=order,
                may_be_sampled=may_be_sampled,
            )
        )
        self.counts[Count(comparison.result, comparison.profile, comparison.plugin, order)] += 1

    def skip(self, reason: Skipped) -> None:
        """Count a pod that is not compared."""
        self.skipped[reason] += 1

    def newest_first(self, *, agreements: bool = True) -> Iterable[Shadowed]:
        """Return those that are kept, by default *agreements*, too."""
        which = [self._differences, self._agreements] if agreements else [self._differences]
        return merge(*map(reversed, which), key=lambda comparison: -comparison.number)

    def summary(self) -> "Summary":
        """Return the counts."""
        by_result = Counter[Agreement]()
        for count, number in self.counts.items():
            by_result[count.result] += number
        return Summary(
            since=self.since,
            compared=self.made,
            agreement=_share(by_result, self.made),
            results={result: by_result[result] for result in Agreement},
            by_plugin=tuple(
                PluginCount(profile=profile, result=result, plugin=plugin, pods=number)
                for (result, profile, plugin), number in self._by_plugin().most_common()
            ),
            in_queue_order=self._in(Order.QUEUE),
            before_moves=self._in(Order.MOVED),
            skipped={reason: number for reason, number in self.skipped.items() if number},
        )

    def _in(self, order: Order) -> int:
        return sum(number for count, number in self.counts.items() if count.order == order)

    def _by_plugin(self) -> Counter[tuple[Agreement, str, str]]:
        counts = Counter[tuple[Agreement, str, str]]()
        for count, number in self.counts.items():
            if not count.result.is_agreement:
                counts[count.result, count.profile, count.plugin] += number
        return counts


class PluginCount(ResponseModel):
    """How many pods the two schedulers differ about, for one reason."""

    profile: str
    result: Agreement
    plugin: str
    """The one that made the difference; empty where none is known."""
    pods: int


class Summary(ResponseModel):
    """All comparisons since the start, counted."""

    since: str
    """When the shadow was started, in UTC."""
    compared: int
    agreement: float | None
    """The share of comparisons that agree, up to ties; 0 to 1, null before the first."""
    results: dict[Agreement, int]
    by_plugin: tuple[PluginCount, ...]
    """The differences, by the plugin that made each; the most frequent first."""
    in_queue_order: int
    """How many of all hold in the order of the scheduling queue, not in that of the watch."""
    before_moves: int = 0
    """How many of all hold before pods left, or came with a node, or nodes changed."""
    skipped: dict[Skipped, int]
    """Placements that are not compared, by reason."""
    waiting: int = 0
    """Pods that the other scheduler has not placed yet."""
    behind: int = 0
    """Changes of the cluster that were received and not looked at yet."""


def agrees(comparison: Comparison) -> bool:
    """Whether there is nothing to look at: not even the reasons differ."""
    return comparison.result.is_agreement and comparison.same_reasons is not False


def _share(by_result: Counter[Agreement], made: int) -> float | None:
    agreed = sum(by_result[result] for result in Agreement if result.is_agreement)
    return agreed / made if made else None
