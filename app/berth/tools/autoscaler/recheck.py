"""The part of a plan that still holds when it is made: the cluster has gone on meanwhile."""

from collections.abc import Callable, Iterable

from berth.tools.autoscaler.actions import Action, MarkUnneeded, NotTriggered, RemoveNode, ScaleUp
from berth.tools.autoscaler.cluster_view import ClusterView, node_state


def still_valid(
    actions: Iterable[Action],
    *,
    planned: ClusterView,
    now: ClusterView,
    target_size: Callable[[str], int],
) -> list[Action]:
    """Return those of *actions* that still hold; what is dropped is for the next scan.

    A group grows if its size is what the plan began with, and a pod that it is for still waits. A
    node goes if it is as it was, with the same pods; if they have to move, also no pod has come
    that waits, as it would want the same room.
    """
    return [action for action in actions if _holds(action, planned, now, target_size)]


def _holds(
    action: Action, planned: ClusterView, now: ClusterView, target_size: Callable[[str], int]
) -> bool:
    match action:
        case ScaleUp():
            waits = any(_waits(now, key) for key in action.pods)
            return waits and target_size(action.group) == action.current_size
        case NotTriggered():
            return _waits(now, action.pod)
        case RemoveNode():
            is_same = _node(now, action.node) == _node(planned, action.node)
            return is_same and (action.is_empty or _waiting(now) <= _waiting(planned))
        case MarkUnneeded():
            return action.node in now.nodes


def _waits(view: ClusterView, key: str) -> bool:
    pod = view.pods.get(key)
    return pod is not None and not pod.spec.node_name


def _waiting(view: ClusterView) -> set[str]:
    return {pod.metadata.uid for pod in view.pods.values() if not pod.spec.node_name}


def _node(view: ClusterView, name: str) -> object:
    """Return what is to be the same of a node, None if it is gone."""
    node = view.nodes.get(name)
    pods = frozenset(pod.metadata.uid for pod in view.pods_on.get(name, ()))
    return None if node is None else (node_state(node), pods)
