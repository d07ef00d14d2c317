"""The partial answer of a simulation whose time was over before its end."""

from typing import Final

from berth.insight.whatif.answer import Partial
from berth.insight.whatif.course import Course, Stage
from berth.insight.whatif.question import Question
from berth.insight.whatif.world import World

UNLIMITED: Final = "`berth simulate --snapshot` has no limit"


def partial(
    course: Course, question: Question, world: World, undecided: tuple[str, ...]
) -> Partial:
    """Say how far *course* came, and what would need less time."""
    has_counted = course.stage not in ("placing", "comparing")
    return Partial(
        stage=course.stage,
        done=course.done if has_counted else course.of - len(undecided),
        of=course.of,
        undecided=undecided,
        advice=f"{_advice(course.stage, question, world)}; {UNLIMITED}",
    )


def note_on(partial: Partial) -> str:
    """Say the same in a sentence."""
    what = "nodes were tried" if partial.stage == "findRemovable" else "pods were decided about"
    return (
        f"the CPU time was over when {partial.done} of {partial.of} {what} ({partial.stage}):"
        f" {partial.advice}"
    )


def _advice(stage: Stage, question: Question, world: World) -> str:
    match stage:
        case "comparing":
            return "ask about one configuration at a time"
        case "findNodes":
            return "lower findNodes.most, or add a number of nodes with addNodes instead"
        case "findRemovable":
            return "name fewer nodes in findRemovable"
    pending, moved = len(world.pending), len(world.moving) + len(world.homeless)
    if question.repack:
        return f"repack places {moved} pods anew: leave it out"
    own = len(world.asked) - moved
    most, total = max(pending, moved, own), pending + moved + own
    if most == own:
        return "ask for fewer pods"
    if most == moved:
        return f"remove fewer nodes: {moved} of the {total} pods are theirs"
    return (
        f"set includePending to false (--no-pending): {pending} of the {total} pods"
        " wait in the cluster"
    )
