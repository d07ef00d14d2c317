"""What must be true of a pod group before it is tried (1.37 spec N8.2)."""

from collections.abc import Container, Iterable

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


def problem_of(
    group: PodGroup,
    queued: Iterable[Pod],
    scheduled: Iterable[Pod],
    *,
    profiles: Container[str],
    has_preemption_policy: bool,
) -> str:
    """Return what keeps *group* from being tried, in kube-scheduler's words; empty if nothing does.

    *queued* are its pods that wait, at least one, *scheduled* those that have nodes. With
    *has_preemption_policy* the group has a preemption policy of its own.
    """
    queued = tuple(queued)
    first = queued[0]
    priority, scheduler = group.priority_beside(first), first.spec.scheduler_name
    policy = _policy(group.spec.preemption_policy if has_preemption_policy else _of(first))
    for pod in (*queued, *scheduled):
        name = pod.spec.scheduler_name
        if name != scheduler:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, got:"
                f' "{name}" and "{scheduler}"'
            )
        if pod.priority != priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's"
                f" priority, got {pod.priority} and {priority}"
            )
        if (own := _policy(_of(pod))) != policy:
            as_what = " as the pod group's preemption policy" if has_preemption_policy else ""
            return (
                "all pods in a single pod group should have the same preemption policy"
                f"{as_what}, got {own} and {policy}"
            )
    if scheduler not in profiles:
        return f'profile not found for scheduler name "{scheduler}"'
    return ""


def _of(pod: Pod) -> str | None:
    return pod.spec.preemption_policy


def _policy(policy: str | None) -> str:
    return policy or PREEMPT_LOWER_PRIORITY
