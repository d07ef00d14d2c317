"""Runs the steps of a scenario, and says of each what came of it."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from berth.insight.explain.explainer import Explainer
from berth.insight.explain.tables import render
from berth.runtime.clock import Clock
from berth.runtime.duration import Duration
from berth.runtime.tables import as_text
from berth.runtime.tasks import background
from berth.tools.up.scenario import audit
from berth.tools.up.scenario.action_runner import ActionError, ActionRunner
from berth.tools.up.scenario.actions import Action
from berth.tools.up.scenario.audit import Auditor
from berth.tools.up.scenario.checks import Finding, check, kinds_of, words
from berth.tools.up.scenario.expectations import Expectation, Statement
from berth.tools.up.scenario.load import ScenarioFile
from berth.tools.up.scenario.observed import Observed
from berth.tools.up.scenario.simulation import Simulation
from berth.tools.up.scenario.types import Scenario, Step

LONGEST_AFTER: Final = 3600.0
"""Seconds that a step waits for what it comes after."""
LAST_EVENTS: Final = 10
"""Events that a failure shows."""
WIDTH: Final = 200
"""Columns of what the scheduler says: those of ``berth explain`` into a pipe."""


class FailedError(Exception):
    """Something that was expected did not happen; the message has all there is to say."""


@dataclass(slots=True)
class Result:
    """What came of a scenario."""

    steps: int = 0
    """Done."""
    expectations: int = 0
    """Met."""
    seconds: float = 0.0
    """Of the clock, from the first step to the end of the last."""
    failure: str = ""
    """Why it failed; empty if it did not."""


class Runner:
    """Runs *file* on *simulation*. *say* prints a line for people."""

    def __init__(
        self,
        file: ScenarioFile,
        simulation: Simulation,
        *,
        rng: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._scenario = file.scenario
        self._simulation = simulation
        self._clock = simulation.clock
        self._say = say
        self._started = self._clock.monotonic()
        self._actions = ActionRunner(simulation, file, say=self._tell)
        audited = audit.KINDS if self._scenario.audit else ()
        kinds = (*kinds_of(_statements(self._scenario)), *audited)
        self._observed = Observed(
            simulation.api, kinds, release=file.release, clock=self._clock, rng=rng
        )
        self._auditor: Auditor | None = None
        self._broken: FailedError | None = None
        """What an invariant said first."""

    async def run(self) -> Result:
        """Run all steps, or up to the first failure."""
        result = Result()
        async with background() as start:
            await self._observed.run(start)
            if objects := self._scenario.cluster.objects:
                await self._actions.perform(Action(create=objects))
            self._started = self._clock.monotonic()
            if self._scenario.audit is not None:
                self._auditor = Auditor(
                    self._observed,
                    explain=partial(self._explain, nodes=1),
                    is_scheduling=lambda: self._simulation.scheduler is not None,
                    clock=self._clock,
                )
                start("scenario audit", partial(self._audit, self._scenario.audit.seconds))
            for invariant in self._scenario.invariants:
                start("scenario invariant", partial(self._guard, invariant))
            try:
                for number, step in enumerate(self._scenario.steps, 1):
                    await self._run_step(number, step, result)
                    result.steps += 1
                await self._actions.finish()
                self._raise_if_broken()
            except (FailedError, ActionError) as exc:
                result.failure = str(exc)
                self._report_failure(str(exc))
            result.seconds = self._clock.monotonic() - self._started
            if self._auditor is not None:
                for line in self._auditor.lines():
                    self._tell(line)
            await self._actions.cancel()
        return result

    async def _run_step(self, number: int, step: Step, result: Result) -> None:
        await self._until_due(step)
        self._tell(f"step {number}: {step.name}", indent="")
        async with background() as start:
            orders: dict[int, _Order] = {}
            for index, expectation in enumerate(step.expect):
                if expectation.order is not None:
                    order = orders[index] = _Order(expectation.order, self._look, self._clock)
                    start("scenario order", partial(order.follow, self._observed))
            for action in step.do:
                await self._actions.perform(action)
            for index, expectation in enumerate(step.expect):
                await self._expect(expectation, orders.get(index))
                result.expectations += 1
                self._raise_if_broken()

    async def _until_due(self, step: Step) -> None:
        now = self._clock.monotonic() - self._started
        if step.at is not None and step.at.seconds > now:
            await self._clock.sleep(step.at.seconds - now)
        elif step.wait is not None:
            await self._clock.sleep(step.wait.seconds)
        elif step.after is not None:
            after = step.after
            finding = await self._until(lambda: self._look(after), LONGEST_AFTER, of=[after])
            if not finding.holds:
                raise FailedError(_told(finding, f"within {Duration.of(LONGEST_AFTER)}"))
        self._raise_if_broken()

    async def _expect(self, expectation: Expectation, order: "_Order | None") -> None:
        """Wait for what is expected. Raises FailedError."""
        began = self._clock.monotonic()
        until = partial(self._until, of=expectation.order or [expectation])
        look = partial(self._look, expectation)
        if order is not None:
            finding = await until(order.finding, expectation.within.seconds)
            when = f"within {expectation.within}"
        elif expectation.never is not None:
            when = f"never in {expectation.never}"
            finding = _denied(await until(look, expectation.never.seconds))
        elif expectation.always is not None:
            when = f"for {expectation.always}"
            finding = _denied(await until(lambda: _denied(look()), expectation.always.seconds))
        else:
            when = f"within {expectation.within}"
            finding = await until(look, expectation.within.seconds)
        if not finding.holds:
            raise FailedError(_told(finding, when))
        took = self._clock.monotonic() - began
        lasted = expectation.never or expectation.always
        suffix = f"; {when}" if lasted else f"; after {took:.1f}s" if took >= 0.05 else ""
        self._tell(f"ok: {finding.expected}{suffix}")

    async def _guard(self, invariant: Statement) -> None:
        """Watch over what must always be so; note when it is not."""
        kinds = self._kinds_of([invariant])
        while True:
            seen = self._observed.version(kinds)
            finding = self._look(invariant)
            if not finding.holds and self._broken is None:
                self._broken = FailedError(_told(finding, f"always; at {self._time()}"))
            await self._observed.changed(kinds, after=seen)

    async def _audit(self, seconds: float) -> None:
        assert self._auditor is not None
        while True:
            self._auditor.look()
            await self._clock.sleep(seconds)

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._auditor is not None and self._auditor.violations:
            raise FailedError(f"audit: {self._auditor.violations[0]}")

    async def _until(
        self, look: Callable[[], Finding], seconds: float, *, of: Iterable[Statement]
    ) -> Finding:
        """Look until it holds, for *seconds* at most; return the last finding.

        That is, at every change of what the statements *of* it depend on.
        """
        end, kinds = self._clock.monotonic() + seconds, self._kinds_of(of)
        while True:
            seen = self._observed.version(kinds)
            finding = look()
            left = end - self._clock.monotonic()
            if finding.holds or left <= 0:
                return finding
            await self._observed.changed(kinds, after=seen, seconds=left)

    def _kinds_of(self, statements: Iterable[Statement]) -> set[str]:
        return kinds_of(statements, of_explain=self._observed.kinds)

    def _look(self, statement: Statement) -> Finding:
        return check(statement, self._observed, self._explain)

    def _explain(self, key: str, *, nodes: int | None = None) -> str:
        """Return what ``berth explain`` says of a pod, with as many *nodes*; None: all."""
        scheduler = self._simulation.scheduler
        if scheduler is None:
            raise LookupError("no scheduler runs")
        explanation = Explainer(scheduler.view).explain(key, limit=nodes)
        if explanation is None:
            raise LookupError(f"the scheduler knows no pod {key}")
        return f"{explanation.summary}\n{as_text(render(explanation), width=WIDTH)}"

    def _time(self) -> str:
        return f"{self._clock.monotonic() - self._started:.1f}s"

    def _tell(self, line: str, *, indent: str = "  ") -> None:
        self._say(f"{self._time():>10}  {indent}{line}")

    def _report_failure(self, message: str) -> None:
        for line in f"FAILED: {message}".splitlines():
            self._tell(line)
        self._tell("the last events:")
        for event in self._observed.last_events(LAST_EVENTS):
            self._tell(f"  {event}")


class _Order:
    """Notes when each of several statements was true first."""

    def __init__(
        self,
        statements: Sequence[Statement],
        look: Callable[[Statement], Finding],
        clock: Clock,
    ) -> None:
        self._statements = statements
        self._look = look
        self._clock = clock
        self._began = clock.monotonic()
        self._moments: list[float | None] = [None] * len(statements)

    async def follow(self, observed: Observed) -> None:
        """Note what comes true, for ever."""
        kinds = kinds_of(self._statements, of_explain=observed.kinds)
        while True:
            seen = observed.version(kinds)
            self._note()
            await observed.changed(kinds, after=seen)

    def _note(self) -> None:
        for index, statement in enumerate(self._statements):
            if self._moments[index] is None and self._look(statement).holds:
                self._moments[index] = self._clock.monotonic() - self._began

    def finding(self) -> Finding:
        """Return whether all have come true, one after the other."""
        self._note()
        moments = [moment for moment in self._moments if moment is not None]
        holds = len(moments) == len(self._moments) and moments == sorted(moments)
        told = [
            f"{words(statement)}: {'not yet' if moment is None else f'after {moment:.1f}s'}"
            for statement, moment in zip(self._statements, self._moments, strict=True)
        ]
        expected = "in this order: " + ", then ".join(map(words, self._statements))
        return Finding(holds, expected, "; ".join(told))


def _denied(finding: Finding) -> Finding:
    return Finding(not finding.holds, finding.expected, finding.seen)


def _told(finding: Finding, when: str) -> str:
    return f"expected {finding.expected}, {when}\nseen instead: {finding.seen}"


def _statements(scenario: Scenario) -> Iterator[Statement]:
    yield from scenario.invariants
    for step in scenario.steps:
        if step.after is not None:
            yield step.after
        for expectation in step.expect:
            yield from expectation.order or (expectation,)
