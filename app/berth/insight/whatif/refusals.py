"""Why pods do not fit on a node of some type, the rest of the cluster being as it is."""

from collections.abc import Iterable, Mapping, Sequence

from berth.insight.explain.evaluation import evaluate
from berth.insight.whatif.deciding import decider
from berth.insight.whatif.placing import Placing
from berth.insight.whatif.question import AddedNodes, Question
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.world import World
from berth.scheduler.core.simulated_cluster import run_simulation
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry


def refusals(
    snapshot: Snapshot, node: AddedNodes, pods: Iterable[str], registry: Registry
) -> Mapping[str, Sequence[str]]:
    """Return by key of each of *pods*, which wait, what a new *node* has against it.

    Reasons are those of FailedScheduling events; none if the pod fits. The node runs the pods of
    its DaemonSets. Raises QuestionError and ConfigError.
    """
    return run_simulation(_refusals(snapshot, node, pods, registry))


async def _refusals(
    snapshot: Snapshot, node: AddedNodes, pods: Iterable[str], registry: Registry
) -> Mapping[str, Sequence[str]]:
    question = Question(add_nodes=[node])
    config = decider(question, snapshot, registry).config
    placing = Placing.on_empty_cluster(
        config, registry, seed=None, preempts=False, now=snapshot.now, listers=snapshot.listers
    )
    world = World.of(question, snapshot, placing.cluster, None)
    name, cluster = world.added[0], placing.cluster
    refusals: dict[str, Sequence[str]] = {}
    for key in pods:
        pod = PodInfo(cluster.pods[key])
        profile = placing.profiles.get(pod.pod.spec.scheduler_name)
        if profile is None:
            refusals[key] = (f"scheduler {pod.pod.spec.scheduler_name!r} places it",)
            continue
        evaluation = evaluate(
            profile,
            pod,
            cluster.cache.table,
            nominated=cluster.core.queue.nominator.nominated_pods(),
            limit=None,
        )
        verdict = next((verdict for verdict in evaluation.nodes if verdict.node == name), None)
        if verdict is not None and (verdict.fits or verdict.reasons):
            refusals[key] = verdict.reasons
        else:  # refused before any node was looked at
            refusals[key] = tuple(evaluation.reasons) or (evaluation.message,)
    return refusals
