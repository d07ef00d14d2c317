"""The answer in a sentence: why a pod is pending, or why it is where it is."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from berth.insight.explain.explanation import (
    Evaluation,
    PastDecision,
    PodGroupStanding,
    PodState,
    Whereabouts,
)
from berth.insight.explain.workload import Workload
from berth.runtime.duration import human_duration
from berth.scheduler.extender.result import EXTENDER
from berth.scheduler.framework.words import counted, listed

FINDINGS_TOLD: Final = 2
_PENDING: Final = frozenset(
    {
        Whereabouts.FOREIGN,
        Whereabouts.UNQUEUED,
        Whereabouts.ACTIVE,
        Whereabouts.BACKOFF,
        Whereabouts.UNSCHEDULABLE,
        Whereabouts.GATED,
        Whereabouts.IN_FLIGHT,
    }
)


class Subject(NamedTuple):
    """Whom a sentence is about."""

    pod: str
    age: float | None = None
    """Seconds since the pod was created, if that is known."""
    num_others: int = 0
    """So many others of ``workload`` are in the same place for the same reason."""
    workload: str = ""

    @property
    def pending(self) -> str:
        """Return "shop/web has been pending for 12m", or the like of several."""
        if self.num_others:
            more = f"{self.pod} and {self.num_others} more of {self.workload}"
            return f"{more} {self._since('have', 'are')}"
        return f"{self.pod} {self._since('has', 'is')}"

    def _since(self, have: str, be: str) -> str:
        if self.age is None:
            return f"{be} pending"
        return f"{have} been pending for {human_duration(self.age)}"


def summarize(
    subject: Subject,
    state: PodState | None,
    evaluation: Evaluation | None,
    history: Sequence[PastDecision] = (),
    *,
    pod_group: PodGroupStanding | None = None,
) -> str:
    """Put together what *state* says, what would be found now, and what was (newest first).

    Made to be pasted where people talk about an incident: it names the pod, the main reasons with
    how many nodes they hold for, and the smallest change that would help, or who holds what the
    pod needs.
    """
    if state is None:
        return f"{subject.pod}: {_now(evaluation)}" if evaluation else subject.pod
    if state.where in _PENDING and state.where is not Whereabouts.FOREIGN:
        if pod_group is not None:
            return f"{subject.pending}: it waits for its group, {pod_group.summary}"
        return f"{subject.pending}: {_pending(state, evaluation, history)}"
    if state.where is Whereabouts.FOREIGN:
        return f"{subject.pending}: {state.words}"
    words = state.words
    if state.where in (Whereabouts.BOUND, Whereabouts.BINDING):
        words = words if words.startswith("is ") else f"is {words}"
    choices = (past.choice for past in history if state.node and past.node == state.node)
    choice = next(choices, None)
    return f"{subject.pod} {words}" + (f": {choice.words}" if choice is not None else "")


def _pending(
    state: PodState, evaluation: Evaluation | None, history: Sequence[PastDecision]
) -> str:
    if evaluation is None:
        return state.words
    if evaluation.error:
        return _failed(evaluation)
    if history and history[0].gang and state.where is not Whereabouts.GATED:
        waits = f"waits for its gang: {history[0].message.removesuffix('.')}"
        return f"{waits}; {_alone(evaluation)}"
    if state.nominated_node and evaluation.choice is None:
        return f"{_refusal(evaluation)}; {_preempting(state)}"
    match state.where:
        case Whereabouts.UNSCHEDULABLE:
            return _unschedulable(evaluation, state)
        case Whereabouts.BACKOFF if evaluation.choice is None:
            return _would_be(evaluation)
        case Whereabouts.GATED if state.waits_for == ("SchedulingGates",):
            return f"{state.words}; whoever has set a gate must remove it; {_now(evaluation)}"
        case Whereabouts.ACTIVE | Whereabouts.BACKOFF | Whereabouts.GATED:
            return f"{state.words}; {_now(evaluation)}"
    return state.words


def _failed(evaluation: Evaluation) -> str:
    nodes = f"{evaluation.num_not_evaluated} of {counted(evaluation.num_nodes, 'node')}"
    text = f"a plugin failed: {evaluation.error}"
    if evaluation.num_not_evaluated:
        text += f"; {nodes} {'was' if evaluation.num_not_evaluated == 1 else 'were'} not evaluated"
    return f"{text}; the scheduler's log has the trace, the pod is retried"


def _preempting(state: PodState) -> str:
    node = state.nominated_node
    if state.leaving:
        return f"preemption makes room on {node}, which {listed(state.leaving)} must leave first"
    return f"it is nominated to {node}, where room was made for it"


def _alone(evaluation: Evaluation) -> str:
    if evaluation.choice is None:
        return f"alone it would fit nowhere now: {_refusal(evaluation)}{_remedy(evaluation)}"
    nodes = counted(evaluation.num_nodes, "node")
    return f"alone {evaluation.num_feasible} of {nodes} could take it now"


def _unschedulable(evaluation: Evaluation, state: PodState) -> str:
    if evaluation.choice is None:
        return _would_be(evaluation)
    fits = f"{evaluation.num_feasible} of {counted(evaluation.num_nodes, 'node')}"
    if EXTENDER in state.waits_for:
        return f"{fits} can take it, but an extender said no when it was asked; {state.words}"
    return f"nothing fit when it was last tried, but now {fits} can take it; {state.words}"


def _now(evaluation: Evaluation) -> str:
    if evaluation.error:
        return _failed(evaluation)
    if evaluation.choice is not None:
        alone = f"if all of {evaluation.gang} got nodes " if evaluation.gang else ""
        return f"now {alone}it would go to {evaluation.choice.words}"
    return f"now it would fit nowhere: {_would_be(evaluation)}"


def _would_be(evaluation: Evaluation) -> str:
    return f"{_refusal(evaluation)}{_remedy(evaluation)}"


def _refusal(evaluation: Evaluation) -> str:
    """Count as the FailedScheduling message does, the main reason first."""
    counts = sorted(evaluation.reasons.items(), key=lambda item: (-item[1], item[0]))
    head = f"0/{evaluation.num_nodes} nodes are available: "
    if not counts or evaluation.message.startswith(head + counts[0][0]):
        return evaluation.message.removesuffix(".")  # a reason that no node has a part in
    return head + ", ".join(f"{count} {reason}" for reason, count in counts)


def _remedy(evaluation: Evaluation) -> str:
    remedies = [*evaluation.findings[:FINDINGS_TOLD], *evaluation.advice]
    if evaluation.nearest_miss is not None:
        remedies.append(f"nearest is {evaluation.nearest_miss.words}")
    return "".join(f"; {remedy}" for remedy in remedies)


def without_pods(workload: Workload, namespace: str, why: str, *, num_pods: int) -> str:
    """Say that *workload* has no pods, or not as many as it wants."""
    subject = f"{workload} in namespace {namespace}"
    if num_pods:
        return f"{subject} has only {counted(num_pods, 'pod')}: {why}"
    return f"{subject} has no pods: {why}" if why else f"{subject} has no pods that run or wait"
