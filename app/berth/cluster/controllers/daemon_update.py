"""The arithmetic of moving the pods of a DaemonSet to a new template. Pure: pods in, steps out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from berth.cluster.controllers.rollout import absolute
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object


@dataclass(frozen=True, slots=True)
class NodePods:
    """The pods of one node that are not being deleted. More than one of a kind is a mistake."""

    new: PodView | None = None
    old: PodView | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How many nodes may be without an available pod, or have two, at a time."""

    unavailable: int
    surge: int


@dataclass(slots=True)
class Step:
    """What may be done now."""

    doomed: list[PodView] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    """Those that get a new pod beside the old one."""


def limits_of(spec: Object, nodes: int) -> Limits:
    """Read the limits for so many *nodes*; percentages are rounded up, and never are both zero."""
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    unavailable = absolute(rolling.get("maxUnavailable", 1), nodes, round_up=True)
    surge = absolute(rolling.get("maxSurge", 0), nodes, round_up=True)
    if not unavailable and not surge:
        unavailable = 1
    return Limits(unavailable, surge)


def next_step(pods: Mapping[str, NodePods], available: Mapping[str, bool], limits: Limits) -> Step:
    """Return which old pods go now, and which nodes get a new one first.

    *pods* are those of the nodes that are to have one; *available* tells it of each, by uid.
    """
    if limits.surge:
        return _surge(pods, available, limits.surge)
    return _replace(pods, available, limits.unavailable)


def _replace(pods: Mapping[str, NodePods], available: Mapping[str, bool], unavailable: int) -> Step:
    broken: list[PodView] = []
    candidates: list[PodView] = []
    missing = 0
    for here in pods.values():
        if (here.new is None) == (here.old is None):
            missing += 1  # there will be one, or one less
        elif here.new is not None:
            missing += not available[here.new.metadata.uid]
        elif here.old is not None and not available[here.old.metadata.uid]:
            broken.append(here.old)  # no loss
            missing += 1
        elif here.old is not None:
            candidates.append(here.old)
    return Step(doomed=[*broken, *candidates[: max(unavailable - missing, 0)]])


def _surge(pods: Mapping[str, NodePods], available: Mapping[str, bool], surge: int) -> Step:
    step = Step()
    candidates: list[str] = []
    doubled = 0
    for node, here in pods.items():
        if here.old is None:
            continue
        if here.new is not None:
            if available[here.new.metadata.uid]:
                step.doomed.append(here.old)
            else:
                doubled += 1
        elif available[here.old.metadata.uid]:
            candidates.append(node)
        else:
            step.nodes.append(node)
    step.nodes += candidates[: max(surge - doubled, 0)]
    return step


def sort_pods(pods: Sequence[PodView], is_new: Callable[[PodView], bool]) -> NodePods | None:
    """Return the *pods* of a node as new and old; None: there are too many."""
    active = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    new = [pod for pod in active if is_new(pod)]
    old = [pod for pod in active if not is_new(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return NodePods(new[0] if new else None, old[0] if old else None)
