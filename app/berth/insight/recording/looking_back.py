"""Why a pod was placed where it was, or nowhere, at a moment of a recording."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from berth.insight.explain.explanation import Explanation, PastDecision, ResponseModel
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.groups.tables import render_group
from berth.insight.explain.tables import render, score_table
from berth.insight.explain.weights import WeightChange, weight_changes
from berth.insight.recording import lines
from berth.insight.recording.past_cluster import (
    PastCluster,
    after_time,
    at_attempt,
    attempts,
    run_at,
)
from berth.insight.recording.runs import RecordedRun
from berth.kube.objects.pod_group import GroupKey
from berth.runtime.clock import rfc3339_micro
from berth.runtime.errors import UserError
from berth.runtime.tables import Content, Stack, Table
from berth.scheduler.outcome import Placed
from berth.scheduler.profile.build import Registry


class LookBackError(UserError):
    """The recording does not say; the message says why."""


class Deciding(ResponseModel):
    """The attempt that is looked back on, made again."""

    attempt: int
    """Its number in the recording."""
    decision: PastDecision
    """What it came to, with the scores of the best nodes."""
    is_as_recorded: bool
    """Whether all fields of the recorded decision are the same, its message and scores included."""
    differs: str = ""
    """In what it differs if not, in words."""
    other_weights: tuple[WeightChange, ...] = ()
    """What would have changed the node: weights with which another of the nodes that this attempt
    had scored is better, the smallest change first. None if it was the only one."""


class LookBack(ResponseModel):
    """A pod or a pod group at a moment of a recording."""

    at: str
    """The moment, in UTC: just before the decision if there is one."""
    deciding: Deciding | None = None
    """The decision that follows; None if a time was asked about."""
    warnings: tuple[str, ...] = ()
    """Why the recording may not be the whole truth."""
    explanation: Explanation | None = None
    """Of a pod: what a running scheduler would have said at that moment."""
    pod_group: PodGroupExplanation | None = None
    """The same of a pod group."""


class Asked(NamedTuple):
    """A pod, or a pod group, and how many of its nodes are to be told of."""

    namespace: str
    name: str
    is_group: bool
    limit: int | None
    """None: all."""

    def is_about(self, decision: lines.Decision) -> bool:
        if self.is_group:
            return decision.gang == f"pod group {self.namespace}/{self.name}"
        return decision.pod == f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        kind = "pod group" if self.is_group else "pod"
        return f"{kind} {self.namespace}/{self.name}"


async def look_back(
    recorded: Sequence[RecordedRun], registry: Registry, asked: Asked, *, at: float | None = None
) -> LookBack:
    """Explain what *asked* names, as it was after all steps up to *at*, in seconds since 1970.

    By default, as it was before the last attempt that gave it a node, or its last one; and what
    that attempt came to. *recorded* are in the order of time. Raises RecordingError, LookBackError,
    and ConfigError when a recorded plugin is not known.
    """
    if at is None:
        run, number = _deciding_attempt(recorded, asked)
        until = at_attempt(number)
    else:
        run, number = run_at([*recorded], at), 0
        until = after_time(at)
    warnings = [*run.warnings()]
    past = PastCluster(run, registry)
    try:
        await past.advance(until)
        if past.next_step is None:
            last = past.view.clock.now()
            warnings.append(
                f"{run.files[-1].path}: ends at {rfc3339_micro(last)}, before that time"
            )
        moment = past.set_clock(at)
        explanation = pod_group = deciding = None
        if asked.is_group:
            key = GroupKey(asked.namespace, asked.name)
            pod_group = past.explainer.explain_pod_group(key, limit=asked.limit)
        else:
            key_of_pod = f"{asked.namespace}/{asked.name}"
            explanation = past.explainer.explain(key_of_pod, limit=asked.limit)
            if explanation is not None and number:
                deciding = await _decide(past, key_of_pod)
    finally:
        await past.end()
    if explanation is None and pod_group is None:
        raise LookBackError(
            f"{asked}: was not there at {rfc3339_micro(moment)}, or it had finished"
        )
    return LookBack(
        at=rfc3339_micro(moment),
        deciding=deciding,
        warnings=tuple(warnings),
        explanation=explanation,
        pod_group=pod_group,
    )


def _deciding_attempt(recorded: Sequence[RecordedRun], asked: Asked) -> tuple[RecordedRun, int]:
    """Return the recording with the attempt that is meant if no time is given, and its number."""
    last: tuple[RecordedRun, int] | None = None
    last_placed: tuple[RecordedRun, int] | None = None
    for run in recorded:
        for attempt in attempts(run):
            for decision in attempt.decisions:
                if asked.is_about(decision):
                    last = run, attempt.number
                    if decision.node:
                        last_placed = last
    if last is None:
        raise LookBackError(f"{asked}: no attempt of it was recorded; name a time with --at")
    return last_placed or last


async def _decide(past: PastCluster, key: str) -> Deciding | None:
    """Make the attempt that comes next; return what it came to for the pod *key*.

    It ends in a later step if it asks extenders, which answer as recorded.
    """
    await past.step()
    await past.advance(lambda line: key in past.outcomes or isinstance(line, lines.Attempt))
    if key not in past.outcomes:
        return None
    outcome = past.outcomes[key]
    weights: tuple[WeightChange, ...] = ()
    if isinstance(outcome, Placed) and outcome.scores is not None:
        weights = weight_changes(outcome.scores, past.view.cache.table, outcome.node_name)
    differences = (
        difference.words
        for difference in past.replay.following.differences
        if difference.attempt == past.attempt and difference.pod == key
    )
    differs = next(differences, "")
    return Deciding(
        attempt=past.attempt,
        decision=past.explainer.decisions(key, limit=1)[0],
        is_as_recorded=not differs,
        differs=differs,
        other_weights=weights,
    )


# The same as a table for people.


def summary(told: LookBack) -> str:
    """Return the answer in a sentence."""
    if told.deciding is not None:
        decision = told.deciding.decision
        came_to = decision.choice.words if decision.choice is not None else decision.message
        went = f"went to {came_to}" if decision.node else f"got no node: {came_to}"
        return f"at {told.at} {decision.pod} {went}"
    if told.explanation is not None:
        return f"at {told.at} {told.explanation.summary}"
    assert told.pod_group is not None
    return f"at {told.at} {told.pod_group.summary}"


def tables(told: LookBack) -> Content:
    """Lay *told* out for a terminal: the decision, and then the moment before it."""
    return Stack(_parts(told))


def _parts(told: LookBack) -> Iterator[Content]:
    deciding = told.deciding
    facts = [*_facts(told)]
    if facts:
        yield Table.of_facts(facts)
        yield ""
    if deciding is not None:
        decision = deciding.decision
        if decision.choice is not None and len(decision.best) > 1:
            yield score_table(decision.choice, decision.best)
            yield ""
        yield "the moment before:"
    if told.explanation is not None:
        yield render(told.explanation)
    elif told.pod_group is not None:
        yield render_group(told.pod_group)


def _facts(told: LookBack) -> Iterator[tuple[str, str]]:
    for warning in told.warnings:
        yield "warning", warning
    deciding = told.deciding
    if deciding is None:
        return
    decision = deciding.decision
    yield "attempt", f"{deciding.attempt} of the recording, {decision.attempt} of the pod"
    yield "feasible nodes", f"{decision.num_feasible} of {decision.num_nodes}"
    as_recorded = "in every field" if deciding.is_as_recorded else f"no: {deciding.differs}"
    yield "as recorded", as_recorded
    if decision.choice is not None and decision.choice.equals:
        yield "instead", f"by chance, one of {decision.choice.equals} other nodes"
    for change in deciding.other_weights:
        yield "instead", change.words
