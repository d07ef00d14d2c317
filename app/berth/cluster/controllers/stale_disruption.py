"""Pods that were to go, and that nobody deleted after all.

Source: ``syncStalePodDisruption`` of ``pkg/controller/disruption``.
"""

from collections.abc import Callable
from typing import Final

from berth.cluster.actions import STRATEGIC_MERGE, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import Condition
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.runtime.clock import Clock, rfc3339

PODS: Final = find("", "v1", "pods")
TIMEOUT: Final = 120.0
"""Seconds after which a pod that is not deleted is no DisruptionTarget any more."""

TARGET: Final = "DisruptionTarget"
BY_KUBELET: Final = "TerminationByKubelet"


class StaleDisruptionController:
    """Takes back the condition DisruptionTarget of pods that nobody deleted after all.

    What the kubelet says stays: it may take its time.
    """

    name = "stale-pod-disruption"

    def __init__(self, pods: Table[PodView], *, clock: Clock) -> None:
        self._pods = pods
        self._clock = clock

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def pod_changed(_old: PodView | None, new: PodView | None) -> None:
            if new is not None and _target(new) is not None:
                enqueue(new.metadata.key)

        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        pod = self._pods.get(key)
        condition = None if pod is None else _target(pod)
        if pod is None or condition is None:
            return NOTHING
        now, since = self._clock.now(), condition.last_transition_time
        left = seconds_of(since) + TIMEOUT - now if since else 0
        if left > 0:
            return Plan(again=left)
        meta = pod.metadata
        said: Object = {
            "type": TARGET,
            "status": "False",
            "lastTransitionTime": rfc3339(now),
            "reason": None,
            "message": None,
        }
        if meta.generation:
            said["observedGeneration"] = meta.generation
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"conditions": [said]},
        }
        path = f"{PODS.path_of(meta.namespace, meta.name)}/status"
        return Plan([Patch(path, body, STRATEGIC_MERGE)])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was taken back shows in the table."""


def new_controller(context: ControllerContext) -> StaleDisruptionController:
    return StaleDisruptionController(context.table("pods", PodView), clock=context.clock)


def _target(pod: PodView) -> Condition | None:
    """Return the condition that says that a pod is to go, if it may prove wrong."""
    for condition in pod.status.conditions or ():
        if condition.type == TARGET:
            may = condition.status == "True" and condition.reason != BY_KUBELET and pod.is_active
            return condition if may else None
    return None
