"""What must be true of a pod group before it is tried (1.37 spec N8.2, N11)."""

from collections.abc import Container, Iterable, Sequence

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import CompositePodGroup, PodGroup
from berth.scheduler.framework.group_hierarchy import GroupHierarchy

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
UNSET = "[unset]"


def problem_of(
    group: PodGroup,
    queued: Iterable[Pod],
    scheduled: Iterable[Pod],
    *,
    profiles: Container[str],
    has_preemption_policy: bool,
) -> str:
    """Return what keeps *group* from being tried, in kube-scheduler's words; empty if nothing does.

    *queued* are its pods that wait, at least one, *scheduled* those that have nodes. Pods of
    groups below it are its own, whose own priorities and policies are not compared (N11). With
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


def change_of(tree: Sequence[PodGroup], hierarchy: GroupHierarchy) -> str:
    """Return how the groups of an entity are no more those of *tree*; empty if they are.

    *tree* has them as they were when the entity was taken from the queue, parents first.
    """
    if not hierarchy.has_composites:
        return ""
    for queued in tree:
        group = hierarchy.get(queued.key)
        if group is None:
            return queued.key.not_found
        now, then = group.spec, queued.spec
        kind = "composite pod group" if isinstance(queued, CompositePodGroup) else "pod group"
        if now.parent_composite_pod_group_name != then.parent_composite_pod_group_name:
            return (
                f"different parent in {kind} between snapshot"
                f" ({now.parent_composite_pod_group_name or UNSET}) and queued entity"
                f" ({then.parent_composite_pod_group_name or UNSET})"
            )
        num_now = len(hierarchy.children(queued.key))
        num_then = sum(1 for other in tree if other.parent_key == queued.key)
        if isinstance(queued, CompositePodGroup) and num_now != num_then:
            return (
                f"different number of children in {kind} between snapshot ({num_now}) and queued"
                f" entity ({num_then})"
            )
    return ""


def _of(pod: Pod) -> str | None:
    return pod.spec.preemption_policy


def _policy(policy: str | None) -> str:
    return policy or PREEMPT_LOWER_PRIORITY
