"""Mean and spread over the seeds of each policy, and how policies differ from the first one."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import mean, stdev
from typing import Final, TypeAlias, TypeVar

import msgspec

from berth.tools.lab.curves import RunResult
from berth.tools.lab.errors import LabError
from berth.tools.lab.paired import Difference, paired_difference

QUARTERS: Final = 4
DECIMALS: Final = 2

T = TypeVar("T")


class Spread(msgspec.Struct, frozen=True, rename="camel"):
    """Some runs at one bin."""

    mean: float
    deviation: float
    """The sample standard deviation; 0 of a single run."""
    runs: int


Measured: TypeAlias = dict[str, dict[int, Spread]]
"""By what was measured, then by bin."""


class PolicySummary(msgspec.Struct, frozen=True, rename="camel"):
    """All runs of a policy."""

    policy: str
    axis: str
    measured: Measured
    pods: Spread
    unplaced: Spread
    unplaced_by_reason: dict[str, float]
    """The reason that held for most nodes, and for how many pods on average."""
    preempted: Spread
    waited: list[Spread]
    """Seconds until pods that got a node had it: p50, p90, p99, highest; empty without time."""
    cpu_seconds: float
    """What all runs took."""
    totals: dict[str, Spread] = {}
    """What whole runs came to, by name."""
    differences: dict[str, Difference] = {}
    """What totals are more than those of the first policy, seed by seed."""


def summarize(results: Sequence[RunResult], policies: Iterable[str]) -> list[PolicySummary]:
    """Return a summary of each of *policies*, which have runs, in their order."""
    runs = {name: [run for run in results if run.policy == name] for name in policies}
    first = {run.seed: run for run in next(iter(runs.values()), ())}
    return [_summary(of_policy, first) for of_policy in runs.values()]


def only(summaries: Sequence[PolicySummary], measures: Sequence[str]) -> Sequence[PolicySummary]:
    """Return *summaries* with these *measures* only, if any; LabError for one that none has."""
    known = sorted(
        {*chain(*(s.measured for s in summaries)), *chain(*(s.totals for s in summaries))}
    )
    for name in measures:
        if name not in known:
            raise LabError(f"report.measures: {name!r}: must be one of {', '.join(known)}")
    if not measures:
        return summaries
    return [
        msgspec.structs.replace(
            summary,
            measured=_named(summary.measured, measures),
            totals=_named(summary.totals, measures),
            differences=_named(summary.differences, measures),
        )
        for summary in summaries
    ]


def _named(values: Mapping[str, T], names: Sequence[str]) -> dict[str, T]:
    return {name: values[name] for name in names if name in values}


def columns(summaries: Sequence[PolicySummary], asked: Sequence[int]) -> Sequence[int]:
    """Return the bins of a table: those that were *asked* for, or the quarters of all."""
    if asked:
        return asked
    measured = chain.from_iterable(summary.measured.values() for summary in summaries)
    bins = sorted(set(chain.from_iterable(measured)))
    places = (len(bins) * quarter // QUARTERS - 1 for quarter in range(1, QUARTERS + 1))
    return sorted({bins[max(place, 0)] for place in places}) if bins else []


def _summary(runs: Sequence[RunResult], first: Mapping[int, RunResult]) -> PolicySummary:
    """*first*: the runs of the first policy, by seed."""
    totals = dict.fromkeys(chain.from_iterable(run.totals for run in runs))
    reasons = set(chain.from_iterable(run.unplaced_by_reason for run in runs))
    by_reason = {r: mean(run.unplaced_by_reason.get(r, 0) for run in runs) for r in reasons}
    return PolicySummary(
        policy=runs[0].policy,
        axis=runs[0].axis,
        measured={
            name: _curve([run.curves.get(name, {}) for run in runs]) for name in _names(runs)
        },
        pods=_spread([run.pods for run in runs]),
        unplaced=_spread([run.unplaced for run in runs]),
        unplaced_by_reason=dict(sorted(by_reason.items(), key=lambda item: -item[1])),
        preempted=_spread([run.preempted for run in runs]),
        waited=[_spread(values) for values in zip(*(run.waited for run in runs), strict=False)],
        cpu_seconds=round(sum(run.cpu_seconds for run in runs), DECIMALS),
        totals={
            name: _spread([run.totals[name] for run in runs if name in run.totals])
            for name in totals
        },
        differences={
            name: difference
            for name in totals
            if (difference := _difference(runs, first, name)) is not None
        },
    )


def _difference(
    runs: Sequence[RunResult], first: Mapping[int, RunResult], name: str
) -> Difference | None:
    """Return None if *runs* are those of the first policy, or too few."""
    pairs = [
        (run.totals[name], other.totals[name])
        for run in runs
        if (other := first.get(run.seed)) is not None
        and other.policy != run.policy
        and name in run.totals
        and name in other.totals
    ]
    return paired_difference([value for value, _ in pairs], [value for _, value in pairs])


def _names(runs: Sequence[RunResult]) -> Iterable[str]:
    return dict.fromkeys(chain.from_iterable(run.curves for run in runs))


def _curve(curves: Sequence[Mapping[int, float]]) -> dict[int, Spread]:
    bins = sorted(set(chain.from_iterable(curves)))
    return {bin_: _spread([curve[bin_] for curve in curves if bin_ in curve]) for bin_ in bins}


def _spread(values: Sequence[float]) -> Spread:
    deviation = stdev(values) if len(values) > 1 else 0.0
    return Spread(round(mean(values), DECIMALS), round(deviation, DECIMALS), len(values))
