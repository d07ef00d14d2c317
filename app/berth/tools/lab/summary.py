"""Mean and spread over the seeds of each policy."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import mean, stdev
from typing import Final, TypeAlias

import msgspec

from berth.tools.lab.curves import RunResult
from berth.tools.lab.errors import LabError

QUARTERS: Final = 4
DECIMALS: Final = 2


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


def summarize(results: Sequence[RunResult], policies: Iterable[str]) -> list[PolicySummary]:
    """Return a summary of each of *policies*, which have runs, in their order."""
    return [_summary([result for result in results if result.policy == name]) for name in policies]


def only(summaries: Sequence[PolicySummary], measures: Sequence[str]) -> Sequence[PolicySummary]:
    """Return *summaries* with these *measures* only, if any; LabError for one that none has."""
    known = sorted(set(chain.from_iterable(summary.measured for summary in summaries)))
    for name in measures:
        if name not in known:
            raise LabError(f"report.measures: {name!r}: must be one of {', '.join(known)}")
    if not measures:
        return summaries
    return [
        msgspec.structs.replace(
            summary,
            measured={
                name: summary.measured[name] for name in measures if name in summary.measured
            },
        )
        for summary in summaries
    ]


def columns(summaries: Sequence[PolicySummary], asked: Sequence[int]) -> Sequence[int]:
    """Return the bins of a table: those that were *asked* for, or the quarters of all."""
    if asked:
        return asked
    measured = chain.from_iterable(summary.measured.values() for summary in summaries)
    bins = sorted(set(chain.from_iterable(measured)))
    places = (len(bins) * quarter // QUARTERS - 1 for quarter in range(1, QUARTERS + 1))
    return sorted({bins[max(place, 0)] for place in places}) if bins else []


def _summary(runs: Sequence[RunResult]) -> PolicySummary:
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
    )


def _names(runs: Sequence[RunResult]) -> Iterable[str]:
    return dict.fromkeys(chain.from_iterable(run.curves for run in runs))


def _curve(curves: Sequence[Mapping[int, float]]) -> dict[int, Spread]:
    bins = sorted(set(chain.from_iterable(curves)))
    return {bin_: _spread([curve[bin_] for curve in curves if bin_ in curve]) for bin_ in bins}


def _spread(values: Sequence[float]) -> Spread:
    deviation = stdev(values) if len(values) > 1 else 0.0
    return Spread(round(mean(values), DECIMALS), round(deviation, DECIMALS), len(values))
