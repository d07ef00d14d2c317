"""Why a pod or a pod group of a snapshot fits, or does not."""

from berth.insight.explain.evaluation import evaluate
from berth.insight.explain.explanation import Explanation, PodState, Whereabouts
from berth.insight.explain.groups.explainer import NO_GROUP, PodGroupExplainer
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.summary import Subject, summarize
from berth.insight.explain.unplaced import AS_IF_UNPLACED, as_if_unplaced
from berth.insight.offline.explain import configuration
from berth.insight.whatif.filling import fill
from berth.insight.whatif.snapshot import Snapshot, SnapshotError
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey
from berth.runtime.tasks import at_once
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.core.view import view_of
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import pod_reader
from berth.scheduler.profile.build import Registry, build_profiles


def explain_pod(
    snapshot: Snapshot, key: str, registry: Registry, *, limit: int | None
) -> Explanation:
    """Tell about the pod ``namespace/name`` of *snapshot*, and the *limit* best nodes.

    Nothing is evaluated for a pod of another scheduler. Raises SnapshotError if there is no such
    pod, or it has finished, and ConfigError when the configuration cannot be used.
    """
    config = configuration({"id": "snapshot", "config": snapshot.config}, registry)
    cluster = snapshot.scenario(read_pod=pod_reader(features_of(config)))
    pod = cluster.pods.get(key)
    if pod is None or pod.is_terminated:
        raise SnapshotError(f"pod {key}: not found, or it has finished")
    nodes, asked, notes = cluster.cache.table, PodInfo(pod), []
    handle = Handle(nodes, listers=cluster.listers, pod=cluster.pods.get)
    profile = build_profiles(config, registry, handle).get(pod.spec.scheduler_name)
    placed = cluster.cache.pod(asked.uid)
    if placed is not None:
        notes.append(AS_IF_UNPLACED)
        nodes = nodes.detached()
        asked = as_if_unplaced(pod, placed, nodes)
    state = _state(pod)
    evaluation = None
    if profile is not None:
        evaluation = evaluate(
            profile, asked, nodes, nominated=cluster.nominated, limit=limit, notes=notes
        )
    return Explanation(
        pod=key,
        uid=asked.uid,
        profile=pod.spec.scheduler_name,
        summary=summarize(Subject(key), state, evaluation),
        state=state,
        evaluation=evaluation,
    )


def _state(pod: Pod) -> PodState | None:
    """Say where *pod* is; None if it waits: a snapshot does not tell for what."""
    node = pod.spec.node_name
    if not node:
        return None
    since = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
    return PodState(
        where=Whereabouts.BOUND,
        words=f"bound to {node}",
        node=node,
        since=since.last_transition_time if since and since.status == "True" else None,
    )


def explain_pod_group(
    snapshot: Snapshot, key: GroupKey, registry: Registry, *, limit: int | None
) -> PodGroupExplanation:
    """Tell about a pod group of *snapshot*, and about the *limit* nearest nodes for its obstacle.

    A scheduler is made for it that has the queue of the snapshot. Raises SnapshotError if there is
    no such group, and ConfigError when the configuration cannot be used.
    """
    config = configuration({"id": "snapshot", "config": snapshot.config}, registry)
    options = SimulationOptions(preempts=False, start=snapshot.now)
    cluster = SimulatedCluster(config, registry, options, listers=snapshot.listers)
    fill(cluster, snapshot, snapshot.scheduler, with_waiting=True)
    explainer = PodGroupExplainer(view_of(cluster.core))
    explanation = at_once(explainer.explaining(key, limit=limit))
    if explanation is None:
        raise SnapshotError(f"pod group {key}: {NO_GROUP}")
    return explanation
