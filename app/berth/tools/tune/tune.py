"""The search, and what it comes to."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec

from berth.scheduler.config.configz import to_yaml
from berth.scheduler.config.errors import ConfigError
from berth.tools.lab.errors import LabError
from berth.tools.lab.load import LabFile
from berth.tools.lab.paired import Difference, paired_difference
from berth.tools.lab.processes import Processes, Progress
from berth.tools.lab.run import Policy, run
from berth.tools.lab.workload import Part, Workload
from berth.tools.tune.halving import BASELINE, most_runs, successive_halving
from berth.tools.tune.objective import Objective, Totals
from berth.tools.tune.space import MOST_CHANGES, Changes, Space, changed, default_space, draw

FEWEST_PARTS: Final = 4
"""Two to search on, and two to be sure."""


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How much is tried."""

    candidates: int = 32
    """Configurations, with the baseline."""
    parts: int = 10
    """Of the workload; every second one is held out."""
    seed: int = 1
    jobs: int = 1
    """Runs at a time; the result does not depend on it."""
    shuffles: bool = False
    """Exchange results at random between the candidates of each part: then there is nothing to be
    found, and what is found shows how often the search errs."""


class Elsewhere(msgspec.Struct, frozen=True, rename="camel"):
    """A measure on the parts that were held out."""

    baseline: float
    tuned: float
    difference: Difference


class Tuned(msgspec.Struct, frozen=True, rename="camel"):
    """What a search came to."""

    objective: str
    baseline: float
    """What the objective comes to on the parts that were held out."""
    tuned: float
    difference: Difference
    changes: dict[str, Any]
    """Of the best candidate, but for those that come to nothing; none: it is the baseline."""
    out_of_bounds: dict[str, float]
    """By measure how far it is out of its bound, on the parts that were held out."""
    measures: dict[str, Elsewhere]
    candidates: int
    runs: int
    configuration: str
    """The best candidate as YAML."""

    @property
    def is_better(self) -> bool:
        """Whether the best candidate is better than the baseline beyond noise, within bounds."""
        return self.difference.high < 0 and not self.out_of_bounds


class _Unit(NamedTuple):
    """A candidate on a part."""

    candidate: int
    part: int


class _Item(NamedTuple):
    """A unit as processes are told of it."""

    unit: _Unit
    document: str
    """The configuration, as JSON."""
    part: Part
    seed: int


class Tuner:
    """Searches the configurations of a space."""

    def __init__(
        self,
        file: LabFile,
        objective: Objective,
        options: TuneOptions,
        *,
        more: Space | None = None,
        only_more: bool = False,
    ) -> None:
        """The baseline is the first policy of *file*; *more* is tried beside the usual changes.

        Raises ConfigError or LabError.
        """
        if options.parts < FEWEST_PARTS:
            raise LabError(f"{options.parts} parts: {FEWEST_PARTS} or more are needed")
        self._file, self._objective, self._options = file, objective, options
        self._baseline = file.policies()[0]
        workload = file.workload()
        self.warnings = workload.warnings
        space: Space = {}
        if not only_more:
            space = default_space(self._baseline.config, self._baseline.registry, workload.nodes)
        self.space: Space = {**space, **(more or {})}
        self._random = Random(options.seed)
        self._candidates = self._valid()
        self._drawn = len(self._candidates)

    def _valid(self) -> list[tuple[Changes, str]]:
        """The valid ones of those that were drawn, as changes and JSON; the baseline first."""
        candidates: dict[str, Changes] = {}
        problem: ConfigError | None = None
        for changes in draw(self.space, self._options.candidates, self._random):
            document = changed(self._baseline.config, changes)
            try:
                self._file.configured(document, source="candidate")
            except ConfigError as exc:
                problem = exc
            else:
                candidates.setdefault(json.dumps(document), changes)
        if len(candidates) < 2:
            raise problem or LabError("there is nothing to try")
        return [(changes, document) for document, changes in candidates.items()]

    @property
    def most_runs(self) -> int:
        """How many runs it takes, at most."""
        held_out = self._options.parts // 2
        searched = self._options.parts - held_out
        return most_runs(self._drawn, searched) + MOST_CHANGES * searched + 2 * held_out

    def run(self, look: Callable[[float], None] | None = None) -> Tuned:
        """Search; *look* is called every second with how many runs are done."""
        options = self._options
        searched, held_out = range(0, options.parts, 2), range(1, options.parts, 2)
        order = self._random.sample(searched, len(searched))
        number = min(options.jobs, self._drawn)
        load = partial(_Loaded, self._file.path, self._file.fields)
        with Processes[_Item, Totals](number, load, _do) as processes:
            evaluate = _Evaluation(self, processes, look)
            best, *_ = successive_halving(self._drawn, order, evaluate, self._objective.rank)
            if not options.shuffles:
                best = self._simplified(best, order, evaluate)
            compared = evaluate([(c, part) for c in (BASELINE, best) for part in held_out])
        return self._tuned(
            best, [(compared[BASELINE, p], compared[best, p]) for p in held_out], evaluate.runs
        )

    def _simplified(self, best: int, parts: Sequence[int], evaluate: "_Evaluation") -> int:
        """Return *best* without those of its changes that it is no better for on *parts*."""
        rank = self._objective.rank([evaluate.values[best, part] for part in parts])
        for name in self._candidates[best][0]:
            changes = {n: value for n, value in self._candidates[best][0].items() if n != name}
            if not changes:
                break
            document = json.dumps(changed(self._baseline.config, changes))
            self._candidates.append((changes, document))
            simpler = len(self._candidates) - 1
            values = evaluate([(simpler, part) for part in parts])
            if (other := self._objective.rank(list(values.values()))) <= rank:
                best, rank = simpler, other
        return best

    def items(self, units: Sequence[tuple[int, int]]) -> Iterator[_Item]:
        """Yield what processes are to do."""
        for candidate, part in dict.fromkeys(units):
            _, document = self._candidates[candidate]
            at = Part(part, self._options.parts)
            yield _Item(_Unit(candidate, part), document, at, self._options.seed + part)

    def check(self, totals: Totals) -> None:
        self._objective.check(totals)

    def shuffled(self, values: dict[tuple[int, int], Totals]) -> dict[tuple[int, int], Totals]:
        """Return *values*, if asked for exchanged between the candidates of each part."""
        if not self._options.shuffles:
            return values
        for part in sorted({part for _, part in values}):
            units = sorted(unit for unit in values if unit[1] == part)
            others = self._random.sample(units, len(units))
            values |= dict(zip(units, [values[other] for other in others], strict=True))
        return values

    def _tuned(self, best: int, pairs: Sequence[tuple[Totals, Totals]], runs: int) -> Tuned:
        def difference(of: Callable[[Totals], float]) -> tuple[float, float, Difference]:
            before, after = [of(a) for a, _ in pairs], [of(b) for _, b in pairs]
            found = paired_difference(after, before)
            assert found is not None, "there are two parts or more"
            return fmean(before), fmean(after), found

        value = self._objective.value
        names = [name for name in pairs[0][0] if all(name in a and name in b for a, b in pairs)]
        changes, document = self._candidates[best]
        config = self._file.configured(json.loads(document), source="candidate")
        baseline, tuned, improvement = difference(value)
        return Tuned(
            objective=self._objective.words,
            baseline=baseline,
            tuned=tuned,
            difference=improvement,
            changes=dict(changes),
            out_of_bounds=self._objective.excess([after for _, after in pairs]),
            measures={name: Elsewhere(*difference(itemgetter(name))) for name in names},
            candidates=self._drawn,
            runs=runs,
            configuration=to_yaml(config),
        )


class _Evaluation:
    """Runs candidates on parts, and counts the runs."""

    def __init__(
        self,
        tuner: Tuner,
        processes: "Processes[_Item, Totals]",
        look: Callable[[float], None] | None,
    ) -> None:
        self._tuner, self._processes, self._look = tuner, processes, look
        self.runs = 0
        self.values: dict[tuple[int, int], Totals] = {}

    def __call__(self, units: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Totals]:
        items = list(self._tuner.items(units))
        values: dict[tuple[int, int], Totals] = {}
        before, look = self.runs, self._look

        def tell(share: float) -> None:
            if look is not None:
                look(before + share)

        for item, totals in self._processes.run(items, look=tell if look else None):
            self._tuner.check(totals)
            values[item.unit] = totals
            self.runs += 1
        # In the order of the units, not in that in which processes were done.
        ordered = self._tuner.shuffled({item.unit: values[item.unit] for item in items})
        self.values |= ordered
        return ordered


class _Loaded:
    """What a process needs for all runs."""

    def __init__(self, path: Path, fields: Mapping[str, Any]) -> None:
        self.file = LabFile(path, fields)
        self.registry = self.file.policies()[0].registry
        self.workload: Callable[[Part], Workload] = lru_cache(self.file.workload)


def _do(loaded: _Loaded, item: _Item, progress: Progress) -> Totals:
    config = loaded.file.configured(json.loads(item.document), source="candidate")
    return run(
        Policy("candidate", config, loaded.registry),
        loaded.workload(item.part),
        loaded.file.chance(item.seed),
        loaded.file.terms(),
        seed=item.seed,
        progress=progress,
    ).totals
