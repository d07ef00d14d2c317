"""Runs one plugin over a table and puts its answers into words, by node name."""

from collections.abc import Sequence
from typing import Any

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import EventResource, QueueingHint
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.queue.rejected_pods import RejectedPods


def table(*nodes: Node, pods: Sequence[Pod] = ()) -> NodeTable:
    """Return a table of *nodes* with *pods* on those that they name.

    It has a dead slot, as after the removal of a node; plugins must bear with that.
    """
    filled = NodeTable()
    gone = filled.add_node(Node())
    for node in nodes:
        filled.add_node(node)
    filled.remove_node(gone)
    for pod in pods:
        filled.add_pod(filled.row_of[pod.spec.node_name], PodInfo(pod))
    return filled


def verdicts(plugin: FilterPlugin, pod: Pod, nodes: NodeTable) -> dict[str, Status | None]:
    """Return what Filter says of each node; None: it passes."""
    verdict = plugin.filter(CycleState(nodes.exists.copy()), PodInfo(pod), nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


def rejected(plugin: FilterPlugin, pod: Pod, nodes: NodeTable) -> set[str]:
    """Return the names of the nodes that Filter rejects."""
    return {name for name, status in verdicts(plugin, pod, nodes).items() if status is not None}


def raw_scores(plugin: ScorePlugin, pod: Pod, nodes: NodeTable) -> dict[str, int]:
    """Return what PreScore, which must not skip, and Score give each node."""
    state, pod_info = CycleState(nodes.exists.copy()), PodInfo(pod)
    if isinstance(plugin, PreScorePlugin):
        assert plugin.pre_score(state, pod_info, nodes) is None
    scores = plugin.score(state, pod_info, nodes)
    assert not isinstance(scores, Status)
    return {name: int(scores[row]) for name, row in nodes.row_of.items()}


def final_scores(plugin: ScorePlugin, pod: Pod, nodes: NodeTable) -> dict[str, int]:
    """Return the scores of all nodes, normalised."""
    state, pod_info = CycleState(nodes.exists.copy()), PodInfo(pod)
    scores = plugin.score(state, pod_info, nodes)
    assert not isinstance(scores, Status)
    rows = list(nodes.row_of.values())
    normal = plugin.normalize(state, pod_info, scores[rows]).tolist()
    return dict(zip(nodes.row_of, normal, strict=True))


def hint_about_pod(
    plugin: EnqueueExtensions, waiting: Pod, old: Pod | None, new: Pod | None
) -> QueueingHint:
    """Return what the hint for pods answers if its indexes find *waiting*, which they have to."""
    (registered,) = (
        each for each in plugin.events_to_register() if each.event.resource is EventResource.POD
    )
    assert registered.hint is not None
    answer = registered.hint(waiting, old, new)
    if new is None or new.metadata.uid != waiting.metadata.uid:
        rejected: RejectedPods[Any] = RejectedPods(("profile", plugin.NAME), registered.indexes)
        rejected.add("waiting", PodInfo(waiting))
        found = list(rejected.found_by(registered.indexes, old, new))
        assert found or answer is QueueingHint.SKIP, "the hint is not asked"
    return answer
