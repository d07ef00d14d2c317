"""The what-if questions of a scan, asked of the scheduler's plugins."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.course import Course
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import AddedNodes, Question
from berth.insight.whatif.refusals import refusals
from berth.insight.whatif.snapshot import Snapshot
from berth.scheduler.profile.build import Registry


@dataclass(frozen=True, slots=True)
class Simulation:
    """Asks with the *plugins* of now. Raises UserError for what cannot be asked."""

    plugins: Callable[[], Registry]
    goes_on: Callable[[], bool] = lambda: True
    """Asked between attempts to place a pod; it may raise if no answer is wanted any more."""

    def answer(self, question: Question, snapshot: Snapshot) -> Answer:
        return answer(question, snapshot, self.plugins(), course=Course(self._used))

    def _used(self) -> float:
        return 0.0 if self.goes_on() else 1.0

    def refusals(
        self, snapshot: Snapshot, node: AddedNodes, pods: Iterable[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return what a new *node* has against each of *pods*, by key."""
        return refusals(snapshot, node, pods, self.plugins())
