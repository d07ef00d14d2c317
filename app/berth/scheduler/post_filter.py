"""PostFilter for a pod that fits nowhere, which is preemption (spec §2.8)."""

from msgspec.structs import replace

from berth.scheduler.cycle import Cycle
from berth.scheduler.outcome import CLEAR, Failed, Unschedulable, nomination_of


def run_post_filter_plugins(cycle: Cycle, outcome: Unschedulable) -> Unschedulable | Failed:
    """Let PostFilter plugins help the pod, right after *outcome* was found in *cycle*.

    What they want is noted; nothing is done about it. Without nodes they are not run. The attempt
    fails if a filter that they ask runs out of the attempt's time: with more of it, they might want
    something else.
    """
    if not outcome.diagnosis.num_all_nodes:
        return replace(outcome, nomination=CLEAR)
    result = cycle.profile.run_post_filters(
        cycle.state, cycle.pod, cycle.nodes, outcome.diagnosis, cycle.filters
    )
    error = cycle.out_of_time
    if error is not None:
        return Failed(cycle.pod, outcome.profile, outcome.found, error)
    if result is None:
        return replace(outcome, nomination=CLEAR)
    if cycle.pod.pod.spec.node_name:
        return replace(outcome, post_filter=result)  # it has its node
    return replace(outcome, post_filter=result, nomination=nomination_of(result.nominated_node))
