"""Shortages of a group: room for so many more pods, or so many more nodes."""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.insight.explain.explanation import Evaluation
from berth.insight.explain.groups.explanation import Shortage
from berth.kube.objects.node_pods import goes_with_node
from berth.kube.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources, node_allocatable
from berth.scheduler.framework.change import ChangeKind
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.words import amount_in_words, counted, listed

ROOM: Final = frozenset(
    {
        ChangeKind.FREE_RESOURCE,
        ChangeKind.FREE_POD_SLOT,
        ChangeKind.FREE_PORT,
        ChangeKind.FREE_DEVICE,
        ChangeKind.DETACH_VOLUME,
    }
)
"""What stands in the way on a full node, and not on another one like it that is empty."""


def shortage_of(
    lacking: Sequence[PodInfo], evaluation: Evaluation, nodes: NodeTable, *, where: str
) -> Shortage:
    """Say what it takes to give *lacking* nodes, the first of which *evaluation* is about.

    *nodes* is the table now, *where* is the topology domain, ``key=value``; empty: anywhere. The
    number of nodes is what the requests come to, filled in order: affinity and spreading among the
    members may need more.
    """
    requested = {name for pod in lacking for name in _names(pod.template.incoming_requested)}
    resources = {
        name: sum(pod.template.incoming_requested.amount(name) for pod in lacking)
        for name in sorted(requested)
        if f"Insufficient {name}" in evaluation.reasons
    }
    like, count = _nodes_like(lacking, evaluation, nodes)
    return Shortage(
        pods=len(lacking),
        resources=resources,
        placement=where,
        nodes=count,
        like=like,
        words=_words(len(lacking), resources, where, like, count),
    )


def _words(pods: int, resources: dict[str, int], where: str, like: str, count: int | None) -> str:
    amounts = [f"{amount_in_words(name, amount)} {name}" for name, amount in resources.items()]
    room = f"room for {counted(pods, 'more pod')}"
    in_all = f" ({listed(amounts)})" if amounts else ""
    there = f" in {where}" if where else ""
    nodes = f"; {counted(count, 'more node')} like {like} would do" if count else ""
    return f"it lacks {room}{in_all}{there}{nodes}"


def _nodes_like(
    lacking: Sequence[PodInfo], evaluation: Evaluation, nodes: NodeTable
) -> tuple[str, int | None]:
    """Return a node that only lacks room, the one where the fewest like it do, and how many."""
    best: tuple[int, str] | None = None
    for name in _only_full(evaluation):
        if name not in nodes.row_of:  # it has gone since the trial
            continue
        count = _bins(lacking, _empty(nodes, name))
        if count is not None and (best is None or count < best[0]):
            best = count, name
    return ("", None) if best is None else (best[1], best[0])


def _only_full(evaluation: Evaluation) -> Iterator[str]:
    for verdict in evaluation.nodes:
        details = [detail for obstacle in verdict.obstacles for detail in obstacle.details]
        is_told = all(obstacle.details for obstacle in verdict.obstacles)
        kinds = {None if detail.change is None else detail.change.kind for detail in details}
        if details and is_told and kinds <= ROOM:
            yield verdict.node


def _empty(nodes: NodeTable, name: str) -> Resources:
    """Return what a node like the one of *name* has for pods, beside what goes with each node."""
    row = nodes.row_of[name]
    node = nodes.nodes[row]
    assert node is not None, name
    free = node_allocatable(node)
    for pod in nodes.pods[row].values():
        if goes_with_node(pod.pod):
            free = _less(free, pod.template.requested, pods=1)
    return free


def _bins(pods: Sequence[PodInfo], node: Resources) -> int | None:
    """Return how many such nodes hold *pods*, each put into the first where it fits; None: none."""
    bins: list[Resources] = []
    for pod in pods:
        wanted = pod.template.incoming_requested
        for index, free in enumerate(bins):
            if _holds(free, wanted):
                bins[index] = _less(free, wanted, pods=1)
                break
        else:
            if not _holds(node, wanted):
                return None
            bins.append(_less(node, wanted, pods=1))
    return len(bins)


def _holds(free: Resources, wanted: Resources) -> bool:
    return free.allowed_pods > 0 and all(
        wanted.amount(name) <= free.amount(name) for name in _names(wanted)
    )


def _names(wanted: Resources) -> Iterator[str]:
    """Yield the resources that are requested."""
    names = (CPU, MEMORY, EPHEMERAL_STORAGE, *wanted.scalars)
    return (name for name in names if wanted.amount(name))


def _less(free: Resources, taken: Resources, *, pods: int) -> Resources:
    return Resources(
        milli_cpu=free.milli_cpu - taken.milli_cpu,
        memory=free.memory - taken.memory,
        ephemeral_storage=free.ephemeral_storage - taken.ephemeral_storage,
        scalars={name: amount - taken.amount(name) for name, amount in free.scalars.items()},
        allowed_pods=free.allowed_pods - pods,
    )
