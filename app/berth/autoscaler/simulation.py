"""The what-if questions of a scan, asked of the scheduler's plugins."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.profile.build import Registry
from berth.whatif.answer import Answer
from berth.whatif.course import Course
from berth.whatif.engine import answer
from berth.whatif.question import AddedNodes, Question
from berth.whatif.refusals import refusals
from berth.whatif.snapshot import Snapshot


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
