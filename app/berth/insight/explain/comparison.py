"""A decision beside what another scheduler chose, or this one before."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from pydantic import Field

from berth.insight.explain.choice import choose, score_at
from berth.insight.explain.explanation import NodeScore, ResponseModel
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.outcome import Failed, Outcome, Placed
from berth.scheduler.profile.results import ScoreTable


class Agreement(StrEnum):
    """How a decision compares with what was chosen elsewhere."""

    AGREED = "agreed"
    """The same node, which is better than all others."""
    TIE = "tie"
    """The chosen node is one of several that are best here: chance decides between them."""
    NOWHERE = "nowhere"
    """The pod fits no node, here and there."""
    DIFFERED = "differed"
    """The chosen node fits here, too, but another is better."""
    REFUSED = "refused"
    """The chosen node is refused here."""
    NOT_PLACED = "not_placed"
    """The pod fits here, and was not placed there."""
    FAILED = "failed"
    """An error here: nothing was decided."""

    @property
    def is_agreement(self) -> bool:
        return self in (Agreement.AGREED, Agreement.TIE, Agreement.NOWHERE)


class Chosen(NamedTuple):
    """What was chosen elsewhere."""

    node: str = ""
    """Empty: the pod was placed nowhere."""
    message: str = ""
    """Why it was placed nowhere: the FailedScheduling message, if that is known."""


class Comparison(ResponseModel):
    """A decision made here, and what was chosen elsewhere for the same pod on the same state."""

    pod: str
    """As in namespace/name."""
    uid: str
    profile: str
    result: Agreement
    words: str
    """The answer in a sentence."""
    node: str = ""
    """Where the pod goes here; empty: nowhere."""
    chosen: str
    """Where it went there; empty: nowhere."""
    plugin: str = ""
    """The plugin that made the difference: that refuses the chosen node, or the one with the
    largest weighted difference in favour of the node that is better here."""
    reasons: tuple[str, ...] = ()
    """Why the chosen node is refused here."""
    score: NodeScore | None = None
    """Of the best node here. None where nothing was scored."""
    chosen_score: NodeScore | None = None
    """What the chosen node has here."""
    differences: dict[str, int] = Field(default_factory=dict)
    """By plugin, how many points the best node has more than the chosen one, after weights."""
    equals: int = 0
    """How many other nodes have the same total as the best one."""
    num_better: int = 0
    """How many nodes have a higher total than the chosen one. A scheduler that scores a sample of
    the nodes takes the best of its sample."""
    num_nodes: int
    num_feasible: int
    message: str = ""
    """Why the pod fits nowhere here, as in the FailedScheduling event, without preemption."""
    chosen_message: str = ""
    """Why it was placed nowhere there, as far as that is known."""
    same_reasons: bool | None = None
    """Whether both messages count the same reasons; None unless both are known."""


def compare(outcome: Outcome, nodes: NodeTable, chosen: Chosen) -> Comparison:
    """Compare *outcome*, which was just found on *nodes*, with what was *chosen*.

    *outcome* must have evaluated all nodes, as :func:`~berth.scheduler.schedule_pod.evaluate_pod`
    does; where nothing is scored because a single node is left, or one is nominated, so is nothing
    here.
    """
    feasible_nodes = outcome.found
    node = outcome.node_name if isinstance(outcome, Placed) else ""
    message = "" if isinstance(outcome, Placed) else outcome.message
    base = Comparison(
        pod=outcome.pod.key,
        uid=outcome.pod.uid,
        profile=outcome.profile,
        result=Agreement.AGREED,
        words="",
        node=node,
        chosen=chosen.node,
        num_nodes=feasible_nodes.diagnosis.num_all_nodes,
        num_feasible=int(np.count_nonzero(feasible_nodes.feasible)),
        message=message,
        chosen_message=chosen.message,
    )
    if isinstance(outcome, Failed):
        found_out = _failed(base)
    elif not chosen.node:
        found_out = _not_placed(base) if node else _nowhere(base)
    else:
        row = nodes.row_of.get(chosen.node)
        if row is None or not feasible_nodes.feasible[row]:
            found_out = _refused(base, outcome, row)
        else:
            assert isinstance(outcome, Placed), outcome
            found_out = _placed(base, outcome, nodes, row)
    return base.model_copy(update=found_out)


def _failed(base: Comparison) -> dict[str, object]:
    words = f"{base.pod} cannot be decided here: {base.message}"
    return {"result": Agreement.FAILED, "words": words}


def _not_placed(base: Comparison) -> dict[str, object]:
    why = f": {base.chosen_message}" if base.chosen_message else ""
    words = f"{base.pod} fits {base.node} here, and was placed nowhere{why}"
    return {"result": Agreement.NOT_PLACED, "words": words}


def _nowhere(base: Comparison) -> dict[str, object]:
    same, words = None, f"{base.pod} fits nowhere, here and there"
    if base.message and base.chosen_message:
        same = _goes_on(base.chosen_message, base.message)
        words += (
            f": {base.message}"
            if same
            else f", but for other reasons: {base.message} (there: {base.chosen_message})"
        )
    return {"result": Agreement.NOWHERE, "words": words, "same_reasons": same}


def _goes_on(message: str, base: str) -> bool:
    """Whether *message* is *base*, maybe followed by what PostFilter plugins found (spec §2.8)."""
    return f"{message} ".startswith(f"{base} ")


def _refused(base: Comparison, outcome: Outcome, row: int | None) -> dict[str, object]:
    status = outcome.found.status_of(row) if row is not None else None
    plugin = status.plugin if status is not None else ""
    reasons = status.reasons if status is not None else ("the node is not known here",)
    by = f" by {plugin}" if plugin else ""
    here = f"here {base.node} is best" if base.node else "here the pod fits nowhere"
    return {
        "result": Agreement.REFUSED,
        "plugin": plugin,
        "reasons": reasons,
        "words": f"{base.pod} went to {base.chosen}, which is refused here{by}:"
        f" {', '.join(reasons)}; {here}",
    }


def _placed(base: Comparison, placed: Placed, nodes: NodeTable, row: int) -> dict[str, object]:
    """Compare two nodes that both fit."""
    scores = placed.scores
    if base.node == base.chosen and scores is None:
        return {"result": Agreement.AGREED, "words": f"{base.pod} goes to {base.node}"}
    place = None if scores is None else _place_of(row, scores)
    if scores is None or place is None:
        words = f"{base.pod} went to {base.chosen}; here it is nominated to {base.node}, which fits"
        return {"result": Agreement.DIFFERED, "words": words}
    return _scored(base, scores, nodes, place)


def _scored(
    base: Comparison, scores: ScoreTable, nodes: NodeTable, place: int
) -> dict[str, object]:
    total = scores.total
    (best,) = (total == total.max()).nonzero()
    ours = _place_of(nodes.row_of[base.node], scores)
    assert ours is not None, base.node
    two = scores.take(np.array([ours, place]))
    score, chosen = score_at(two, nodes, 0), score_at(two, nodes, 1)
    said: dict[str, object] = {
        "score": score,
        "chosen_score": chosen,
        "equals": len(best) - 1,
        "num_better": int(np.count_nonzero(total > total[place])),
    }
    if place not in best:
        choice = choose(base.node, [score, chosen], equals=0)
        decided_by, points = choice.decided_by, choice.differences[choice.decided_by]
        return said | {
            "result": Agreement.DIFFERED,
            "plugin": decided_by,
            "differences": choice.differences,
            "words": f"{base.pod} went to {base.chosen} ({chosen.total}); here {base.node}"
            f" ({score.total}) is better: {decided_by} makes the largest difference ({points:+})",
        }
    if len(best) == 1:
        words = f"{base.pod} goes to {base.chosen} ({chosen.total})"
        return said | {"result": Agreement.AGREED, "words": words}
    words = f"{base.pod} went to {base.chosen}, one of {len(best)} nodes that are best here"
    return said | {"result": Agreement.TIE, "words": f"{words} ({chosen.total})"}


def _place_of(row: int, scores: ScoreTable) -> int | None:
    """Return where in *scores* the node in *row* is."""
    (places,) = (scores.rows == row).nonzero()
    return int(places[0]) if len(places) else None
