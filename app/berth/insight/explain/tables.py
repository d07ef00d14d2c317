"""The same as a table for people."""

from collections.abc import Iterator, Sequence

from berth.insight.explain.explanation import (
    Choice,
    Evaluation,
    Explanation,
    NodeScore,
    NodeVerdict,
    Obstacle,
    PastDecision,
    PluginScore,
    Whereabouts,
)
from berth.insight.explain.preemption import victims_in_words
from berth.runtime.tables import Content, Stack, Table
from berth.scheduler.framework.words import counted


def render(explanation: Explanation) -> Content:
    """Lay *explanation* out for a terminal."""
    return Stack(_parts(explanation))


def _parts(explanation: Explanation) -> Iterator[Content]:
    yield Table.of_facts(_head(explanation))
    evaluation = explanation.evaluation
    if evaluation is not None:
        if evaluation.choice is not None:
            yield from _scores(evaluation.choice, evaluation.nodes)
        yield from nodes_table(evaluation)
    if explanation.history:
        yield ""
        yield _history(explanation.history)


def _head(explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield "pod", explanation.pod
    yield "profile", explanation.profile
    if explanation.pod_group is not None:
        role = ", of which this pod is the obstacle" if explanation.pod_group.is_obstacle else ""
        yield "pod group", f"{explanation.pod_group.name}{role}"
    if explanation.state is not None:
        yield "state", explanation.state.words
        if explanation.state.since:
            yield "since", explanation.state.since
        for plugin, changes in explanation.state.woken_by.items():
            yield "woken by", f"{', '.join(changes)} ({plugin})"
        if explanation.state.where is Whereabouts.UNSCHEDULABLE and explanation.state.until:
            yield "or else", f"tried again after {explanation.state.until}"
    last = explanation.history[0] if explanation.history else None
    if last is not None and last.gang and not last.node:
        yield "waits for", last.message
    preemption = next((past.preemption for past in explanation.history if past.preemption), None)
    if preemption is not None:
        chosen = preemption.chosen
        yield "evicted", f"from {chosen.node}: {victims_in_words(chosen)}"
        yield "why those", preemption.words
    evaluation = explanation.evaluation
    if evaluation is None:
        return
    for note in evaluation.notes:
        yield "note", note
    if evaluation.error:
        yield "failed", evaluation.error
    elif evaluation.choice is not None:
        yield "would go to", evaluation.choice.words
    else:
        yield "fits nowhere", evaluation.message
    if evaluation.choice is None and evaluation.funnel and not evaluation.refused_by:
        yield "filters", _funnel(evaluation)
    for finding in evaluation.findings:
        yield "overall", finding
    for advice in evaluation.advice:
        yield "advice", advice
    if evaluation.nearest_miss is not None:
        yield "nearest miss", evaluation.nearest_miss.words


def _funnel(evaluation: Evaluation) -> str:
    steps = (
        f"{step.plugin or 'PreFilter'} rejects {step.num_rejected}, {step.num_left} left"
        for step in evaluation.funnel
    )
    return f"{counted(evaluation.num_nodes, 'node')}; {'; '.join(steps)}"


def _scores(choice: Choice, nodes: Sequence[NodeVerdict]) -> Iterator[Content]:
    """Yield the scores of the chosen node and of the runner-up, plugin by plugin."""
    scored = {verdict.node: verdict.score for verdict in nodes if verdict.score is not None}
    compared = [scored[name] for name in (choice.node, choice.runner_up) if name in scored]
    if compared and compared[0].plugins:
        yield ""
        yield score_table(choice, compared)


def score_table(choice: Choice, scores: Sequence[NodeScore]) -> Table:
    """Compare the nodes of *choice* in *scores* plugin by plugin."""
    nodes = (choice.node, choice.runner_up)
    compared = [score for name in nodes for score in scores if score.node == name]
    table = Table("raw > normalised x weight", *(score.node for score in compared))
    rows = [
        [plugin, *(_score(score.plugins[plugin]) for score in compared)]
        for plugin in compared[0].plugins
    ]
    rows.append(["total", *(str(score.total) for score in compared)])
    if len(compared) > 1:
        table.add_column("difference", right=True)
        for row in rows:
            difference = choice.differences.get(row[0], compared[0].total - compared[1].total)
            row.append(f"{difference:+}")
    for row in rows:
        table.add_row(*row)
    return table


def _score(score: PluginScore) -> str:
    return f"{score.raw} > {score.normalized} x {score.weight} = {score.weighted}"


def nodes_table(evaluation: Evaluation) -> Iterator[Content]:
    """Yield the nodes with what is held against each, below an empty line."""
    if not evaluation.nodes or evaluation.refused_by:
        return
    table = Table("node", "verdict", "why")
    for verdict in evaluation.nodes:
        if verdict.fits:
            table.add_row(verdict.node, "fits", _total(verdict.score))
            continue
        first = verdict.node
        for obstacle in verdict.obstacles:
            table.add_row(first, obstacle.plugin, _why(obstacle))
            first = ""
        if first:
            table.add_row(first, "not evaluated", "")
        if verdict.beside:
            table.add_row("", "", f"with {', '.join(verdict.beside)}, nominated to it")
    yield ""
    yield table
    left = evaluation.num_nodes - len(evaluation.nodes)
    if left > 0:
        yield f"and {left} more of {counted(evaluation.num_nodes, 'node')}"


def _total(score: NodeScore | None) -> str:
    return "" if score is None else f"total {score.total}"


def _why(obstacle: Obstacle) -> str:
    return "; ".join(detail.message for detail in obstacle.details) or ", ".join(obstacle.reasons)


def _history(history: Sequence[PastDecision]) -> Table:
    table = Table("attempt", "seconds ago", "feasible nodes", "outcome")
    for past in history:
        outcome = past.message if past.choice is None else past.choice.words
        if past.nominated_node:
            outcome += f" Room is made on {past.nominated_node}."
        table.add_row(
            str(past.attempt),
            f"{past.seconds_ago:.1f}",
            f"{past.num_feasible} of {past.num_nodes}",
            outcome,
        )
    return table
