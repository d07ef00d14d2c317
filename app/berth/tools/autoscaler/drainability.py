"""Pods that keep their node: the drainability rules of cluster-autoscaler."""

from collections.abc import Iterable
from typing import Final

from berth.cluster.times import seconds_of
from berth.kube.objects.pod import Pod
from berth.kube.objects.policy import PodDisruptionBudget
from berth.kube.objects.selectors import compile_selector
from berth.tools.autoscaler.cluster_view import ClusterView, is_mirror
from berth.tools.autoscaler.node_groups import is_of_daemon_set
from berth.tools.autoscaler.options import AutoscalingOptions

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM_NAMESPACE: Final = "kube-system"
LONG_TERMINATING_SECONDS: Final = 30.0
"""After its grace period: a pod that is still there is taken for gone."""
DEFAULT_GRACE_SECONDS: Final = 30


def why_not_drained(view: ClusterView, pod: Pod, *, options: AutoscalingOptions, now: float) -> str:
    """Return why *pod* keeps its node, empty if it does not.

    Whether it would fit elsewhere, and whether a PodDisruptionBudget allows its eviction at this
    moment, are other questions.
    """
    if is_mirror(pod) or is_of_daemon_set(pod) or is_long_terminating(view, pod, now=now):
        return ""
    annotation = pod.metadata.annotations.get(SAFE_TO_EVICT)
    if annotation == "true":
        return ""
    if pod.metadata.controller is None:
        return f"{pod.key} is not replicated"
    if (
        options.skip_nodes_with_system_pods
        and pod.metadata.namespace == SYSTEM_NAMESPACE
        and not _has_budget(view, pod)
    ):
        name = pod.metadata.name
        return f"non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present: {name}"
    if annotation == "false":
        return f"pod annotated as not safe to evict present: {pod.metadata.name}"
    if options.skip_nodes_with_local_storage and has_local_storage(view, pod):
        return f"pod with local storage present: {pod.metadata.name}"
    return ""


def has_local_storage(view: ClusterView, pod: Pod) -> bool:
    """Whether *pod* has data on its node that nobody declared to be worth nothing."""
    written = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "")
    safe = {name.strip() for name in written.split(",")}
    return any(
        volume.host_path is not None
        or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory")
        for volume in view.drain_pod(pod.key).spec.volumes
        if volume.name not in safe
    )


def is_long_terminating(view: ClusterView, pod: Pod, *, now: float) -> bool:
    """Whether *pod* should have been gone for a while."""
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return False
    seconds = view.drain_pod(pod.key).spec.termination_grace_period_seconds
    grace = DEFAULT_GRACE_SECONDS if seconds is None else seconds
    return seconds_of(deleted) + grace + LONG_TERMINATING_SECONDS < now


def pods_to_evict(view: ClusterView, node: str, *, now: float) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that must leave *node*, and those of DaemonSets."""
    pods = [
        pod
        for pod in view.pods_on.get(node, ())
        if not is_mirror(pod) and not is_long_terminating(view, pod, now=now)
    ]
    daemons = [pod for pod in pods if is_of_daemon_set(pod)]
    return [pod for pod in pods if not is_of_daemon_set(pod)], daemons


def _has_budget(view: ClusterView, pod: Pod) -> bool:
    return any(
        budget.metadata.namespace == pod.metadata.namespace and _matches(budget, pod)
        for budget in _budgets(view)
    )


def _budgets(view: ClusterView) -> Iterable[PodDisruptionBudget]:
    budgets = view.snapshot.objects.get("PodDisruptionBudget", ())
    return (obj for obj in budgets if isinstance(obj, PodDisruptionBudget))


def _matches(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return compile_selector(budget.spec.selector).matches(pod.metadata.labels)
    except ValueError:
        return False
