"""What comes of placing pods anew."""

from collections import Counter

from berth.insight.whatif.answer import Move, Repacked
from berth.insight.whatif.placing import Placed
from berth.insight.whatif.world import World
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_signature import PodSignature, signature_of


def spare_moves(world: World, placed: Placed) -> None:
    """Let replicas change places so that as many as can be are where they were.

    Who is placed anew and is like others in all that decides may as well be one of them.
    """
    replicas: dict[PodSignature, list[PodInfo]] = {}
    for pod in world.asked:
        signature = signature_of(pod) if pod.key in world.moving else None
        if signature is not None and pod.key in placed.nodes:
            replicas.setdefault(signature, []).append(pod)
    for pods in replicas.values():
        free = Counter(placed.nodes[pod.key] for pod in pods)
        leaving = []
        for pod in pods:
            source = world.moving[pod.key]
            if free[source]:
                free[source] -= 1
                placed.nodes[pod.key] = source
            else:
                leaving.append(pod)
        for pod, target in zip(leaving, free.elements(), strict=True):
            placed.nodes[pod.key] = target


def repacked(world: World, placed: Placed) -> Repacked:
    """Compare where the pods of *world* that were placed anew were, and are.

    Who has no node any more is among the unplaced of the outcome.
    """
    before, after = world.busy_before, world.busy_nodes()
    moves = (
        Move(pod=key, source=source, target=placed.nodes[key])
        for key, source in world.moving.items()
        if placed.nodes.get(key, source) != source
    )
    return Repacked(
        nodes_before=len(before),
        nodes_after=len(after),
        emptied=tuple(sorted(before - after)),
        pods=len(world.moving),
        moves=tuple(moves),
    )
