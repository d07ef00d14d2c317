"""Asks about pods of a scheduler in process."""

from dataclasses import replace

from berth.insight.explain.explainer import Explainer
from berth.insight.explain.explanation import Evaluation, Explanation, NodeVerdict
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.harness import Harness


def explainer(harness: Harness, *, schedules: bool = True) -> Explainer:
    return Explainer(replace(harness.view, schedules=schedules))


def explain(harness: Harness, key: str, *, limit: int | None = None) -> Explanation:
    found = explainer(harness).explain(key, limit=limit)
    assert found is not None, key
    return found


def evaluation(pod: Pod, *objects: Node | Pod) -> Evaluation:
    """Return what would be found for *pod* among *objects*."""
    harness = Harness()
    harness.put(*objects, pod)
    found = explain(harness, pod.key).evaluation
    assert found is not None
    return found


def verdict(evaluated: Evaluation, node: str = "n1") -> NodeVerdict:
    (found,) = (each for each in evaluated.nodes if each.node == node)
    return found
