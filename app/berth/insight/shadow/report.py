"""The report of a shadow: agreement, differences, and what to do."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from berth.insight.explain.comparison import Agreement
from berth.insight.explain.explanation import ResponseModel
from berth.insight.shadow.comparisons import Shadowed, Skipped, Summary
from berth.insight.shadow.moves import LONGEST

EXAMPLES: Final = 3
"""Of each kind of difference."""
SAMPLED: Final = (
    "kube-scheduler scores a sample of the nodes that fit and may have missed the better ones: set"
    " percentageOfNodesToScore to 100 there, and in the configuration of the shadow, to compare"
    " exactly."
)


class Found(ResponseModel):
    """What ``/debug/shadow`` answers, as far as it is reported."""

    summary: Summary
    items: tuple[Shadowed, ...]
    """The last differences, newest first."""


class Difference(ResponseModel):
    """The pods that the two schedulers differ about for one reason."""

    result: Agreement
    profile: str
    plugin: str
    """The one that made the difference; empty where none is known."""
    pods: int
    points: float | None = None
    """The median of what the chosen node has less than the best one, in points of the total."""
    without_plugin: float | None = None
    """The share of the examined pods for which the chosen node would be as good as the best one if
    the plugin did not score."""
    may_be_sampled: int = 0
    """For how many of the examined pods the chosen node may be the best of a sample."""
    advice: str
    examples: tuple[Shadowed, ...]


class Report(ResponseModel):
    """What there is to say about two schedulers."""

    words: str
    """How far they agree, in a sentence."""
    summary: Summary
    differences: tuple[Difference, ...]
    """The most frequent first."""
    notes: tuple[str, ...]
    """What else to know: what was not compared, and what may explain differences."""


def report(shadow: Found) -> Report:
    """Sum up *shadow*."""
    kept: dict[tuple[Agreement, str, str], list[Shadowed]] = defaultdict(list)
    for item in shadow.items:
        kept[item.result, item.profile, item.plugin].append(item)
    differences = tuple(
        _difference(count.result, count.profile, count.plugin, count.pods, examined)
        for count in shadow.summary.by_plugin
        for examined in [kept[count.result, count.profile, count.plugin]]
    )
    return Report(
        words=_words(shadow.summary),
        summary=shadow.summary,
        differences=differences,
        notes=tuple(_notes(shadow)),
    )


def _words(summary: Summary) -> str:
    if summary.agreement is None:
        return "nothing was compared yet"
    number = "1 pod" if summary.compared == 1 else f"{summary.compared} pods"
    results = summary.results
    return (
        f"{_percent(summary.agreement)} agreement on {number} since {summary.since}:"
        f" {results.get(Agreement.AGREED, 0)} on the same node,"
        f" {results.get(Agreement.TIE, 0)} up to a tie,"
        f" {results.get(Agreement.NOWHERE, 0)} fit nowhere"
    )


def _percent(share: float) -> str:
    """Return *share* in percent, rounded down: 100% means all."""
    return f"{int(share * 1_000) / 10:g}%"


def _difference(
    result: Agreement, profile: str, plugin: str, pods: int, examined: Sequence[Shadowed]
) -> Difference:
    scored = [comparison for comparison in examined if comparison.differences]
    points = [sum(comparison.differences.values()) for comparison in scored]
    without = [
        comparison
        for comparison in scored
        if sum(comparison.differences.values()) <= comparison.differences[plugin]
    ]
    sampled = sum(comparison.may_be_sampled for comparison in examined)
    return Difference(
        result=result,
        profile=profile,
        plugin=plugin,
        pods=pods,
        points=float(median(points)) if points else None,
        without_plugin=len(without) / len(scored) if scored else None,
        may_be_sampled=sampled,
        advice=SAMPLED if examined and sampled == len(examined) else _advice(result, plugin),
        examples=tuple(examined[:EXAMPLES]),
    )


def _advice(result: Agreement, plugin: str) -> str:
    match result:
        case Agreement.DIFFERED if plugin == "NodeResourcesFit":
            return (
                "Compare scoringStrategy and weight of NodeResourcesFit. By default it prefers"
                " nodes with free room; a scheduler that fills nodes has `--preset binpack`."
            )
        case Agreement.DIFFERED if plugin:
            return f"Compare weight and arguments of {plugin} in both configurations."
        case Agreement.DIFFERED:
            return "The pod was nominated to the node that is better here."
        case Agreement.REFUSED if plugin:
            return (
                f"Look whether the other scheduler has {plugin} enabled, with the same arguments."
            )
        case Agreement.REFUSED:
            return "The node had been removed, or could not be read, when the pod was decided."
        case Agreement.NOT_PLACED:
            return "The other scheduler has a reason that does not hold here: see its message."
        case _:
            return "The log of the shadow says more."


def _notes(shadow: Found) -> Iterator[str]:
    summary = shadow.summary
    sampled = [item.num_better for item in shadow.items if item.may_be_sampled]
    if sampled:
        yield (
            f"For {len(sampled)} pods a sample may explain the difference: {SAMPLED} Of the nodes"
            f" that fit, {median(sampled):g} (median) were better than the chosen one."
        )
    if summary.in_queue_order:
        yield (
            f"{summary.in_queue_order} pods agree only in the order of the scheduling queue:"
            " bindings and failures that are written at the same time arrive in any order."
        )
    if summary.before_moves:
        yield (
            f"{summary.before_moves} pods agree only with the cluster as it was up to {LONGEST:g}"
            " seconds before: pods left, or came with a node, or nodes changed between the decision"
            " and its binding."
        )
    reasons = sum(item.same_reasons is False for item in shadow.items)
    if reasons:
        yield f"{reasons} pods fit nowhere here and there, but for other reasons."
    for reason, number in summary.skipped.items():
        yield f"{number} pods were not compared: {_SKIPPED[reason]}."


_SKIPPED: Final = {
    Skipped.BEHIND: "too many changes were waiting",
    Skipped.RELISTED: "the watch was interrupted, so the order of what came is not known",
    Skipped.CREATED_WITH_NODE: "they were created with a node",
    Skipped.POD_GROUP: "they are scheduled together with their group",
    Skipped.CLAIMS: "their claims changed before they could be decided",
    Skipped.GATED: "they were bound in spite of their scheduling gates",
    Skipped.ERROR: "the comparison failed, see the log of the shadow",
}
