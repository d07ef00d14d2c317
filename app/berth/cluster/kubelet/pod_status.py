"""The status that kubelets report of pods: phase, conditions, and states of containers.

The rules are those of ``getPhase`` in ``pkg/kubelet/kubelet_pods.go`` and of
``pkg/kubelet/status/generate.go``.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.container_life import ContainerLife
from berth.cluster.kubelet.container_plan import Role
from berth.cluster.kubelet.container_status import container_status
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_life import PodLife
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.runtime.clock import rfc3339

RESIZE_PENDING: Final = "PodResizePending"
"""The condition of a pod that does not get the resources that it asks for."""


class Condition(NamedTuple):
    """A condition of a pod, without its type and times."""

    status: str
    reason: str = ""
    message: str = ""


Conditions = Mapping[str, Condition]
"""By type."""

TRUE: Final = Condition("True")
FALSE: Final = Condition("False")


def status_of(
    life: PodLife,
    node: HollowNode,
    *,
    pod_ip: str,
    conditions: Conditions,
    sent: Conditions,
    given: Mapping[str, Object],
    now: float,
) -> Object:
    """Return the status of a pod, with those of *conditions* that are not as *sent*.

    *given* is what its containers have been given, by name.
    """
    pod = life.pod
    uid, generation = pod.metadata.uid, pod.metadata.generation
    ip = node.host_ip if pod.spec.host_network else pod_ip
    status: Object = {
        "observedGeneration": generation,
        "phase": phase_of(life),
        "hostIP": node.host_ip,
        "hostIPs": [{"ip": node.host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
    }
    if life.start_time is not None:
        status["startTime"] = rfc3339(life.start_time)
    if conditions != sent:
        status["conditions"] = _changes(conditions, sent, rfc3339(now), generation)
    if life.failure is not None and life.is_over:
        status["reason"], status["message"] = life.failure.reason, life.failure.message
    inits: list[Object] = []
    mains: list[Object] = []
    waits_for = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    for container in life.containers:
        known = (
            given.get(container.container.name, _NOTHING)
            if container.role is Role.MAIN
            else _NOTHING
        )
        shown = container_status(container, uid, waits_for=waits_for, resources=known)
        (mains if container.role is Role.MAIN else inits).append(shown)
    status["containerStatuses"] = mains
    if inits:
        status["initContainerStatuses"] = inits
    return status


def phase_of(life: PodLife) -> str:
    """Return the phase of a pod. Once it is Succeeded or Failed it stays so."""
    if life.is_over:
        ends = [
            container.end for container in life.containers if container.role is not Role.SIDECAR
        ]
        well = all(end is not None and end.exit_code == 0 for end in ends)
        return "Succeeded" if well and life.failure is None else "Failed"
    if not life.is_initialized:
        return "Pending"
    return "Running" if all(container.has_run for container in life.containers) else "Pending"


def conditions_of(life: PodLife, *, resize: Rejection | None = None) -> Conditions:
    """Return the conditions that the kubelet owns; *resize* is why a resize is not done."""
    pod = life.pod
    if life.is_over:
        failed = phase_of(life) == "Failed"
        done = Condition("False", "PodFailed" if failed else "PodCompleted")
        conditions = {"PodReadyToStartContainers": FALSE, "Ready": done, "ContainersReady": done}
        if not failed:
            conditions["Initialized"] = Condition("True", "PodCompleted")
        elif life.failure is not None and life.is_disrupted:
            why = Condition("True", "TerminationByKubelet", life.failure.message)
            conditions["DisruptionTarget"] = why
        return conditions
    if (
        resize is None
        and not pod.spec.init_containers
        and not pod.spec.readiness_gates
        and all(container.ready for container in life.containers)
    ):
        return _READY if _is_scheduled(pod) else _READY_BOUND_BY_HAND
    ready = _all(
        (container.container.name for container in life.containers if not _is_ready(container)),
        "ContainersNotReady",
        "unready",
    )
    conditions = {
        "PodReadyToStartContainers": TRUE,
        "Initialized": TRUE,
        "Ready": ready if ready.status == "False" else _gates(pod),
        "ContainersReady": ready,
    }
    if not life.is_initialized:
        incomplete = (
            container.container.name
            for container in life.containers
            if container.role is not Role.MAIN and not container.is_passed
        )
        conditions["Initialized"] = _all(incomplete, "ContainersNotInitialized", "incomplete")
    if resize is not None:
        conditions[RESIZE_PENDING] = Condition("True", resize.reason, resize.message)
    if not _is_scheduled(pod):
        conditions["PodScheduled"] = TRUE
    return conditions


def known_conditions(pod: KubeletPod) -> Conditions:
    """Return the conditions that an earlier kubelet process has reported."""
    return {
        condition.type: Condition(condition.status, condition.reason, condition.message)
        for condition in pod.status.conditions
    }


def rejected(rejection: Rejection, *, now: float) -> Object:
    """Return the status of a pod that its node does not take."""
    return {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": f"Pod was rejected: {rejection.message}",
        "startTime": rfc3339(now),
    }


def ephemeral_statuses(pod: KubeletPod, since: Mapping[str, float]) -> list[Object]:
    """Return the statuses of ephemeral containers, which run *since* some time, by name."""
    return [
        {
            "name": container.name,
            "image": container.image,
            "imageID": f"hollow://{container.image}",
            "containerID": f"hollow://{pod.metadata.uid}/{container.name}",
            "restartCount": 0,
            "lastState": {},
            "ready": False,
            "state": {"running": {"startedAt": rfc3339(since[container.name])}},
        }
        for container in pod.spec.ephemeral_containers
    ]


_NOTHING: Final[Object] = {}
_READY: Final[Conditions] = dict.fromkeys(
    ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"), TRUE
)
_READY_BOUND_BY_HAND: Final[Conditions] = {**_READY, "PodScheduled": TRUE}
"""With ``spec.nodeName``: no scheduler has said so."""


def _is_ready(each: ContainerLife) -> bool:
    return each.ready or each.role is Role.INIT


def _all(lacking: Iterable[str], reason: str, what: str) -> Condition:
    """Return a condition that holds if nothing is *lacking*."""
    names = " ".join(lacking)
    return (
        Condition("False", reason, f"containers with {what} status: [{names}]") if names else TRUE
    )


def _gates(pod: KubeletPod) -> Condition:
    """Return whether a pod whose containers are ready is so, by its readiness gates."""
    if not pod.spec.readiness_gates:
        return TRUE
    held = {condition.type: condition.status for condition in pod.status.conditions}
    lacking = []
    for gate in pod.spec.readiness_gates:
        name = f'pod readiness gate "{gate.condition_type}"'
        status = held.get(gate.condition_type)
        if status is None:
            lacking.append(f"corresponding condition of {name} does not exist.")
        elif status != "True":
            lacking.append(f'the status of {name} is not "True", but {status}')
    return Condition("False", "ReadinessGatesNotReady", ", ".join(lacking)) if lacking else TRUE


def _is_scheduled(pod: KubeletPod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled":
            return condition.status == "True"
    return False


def _changes(conditions: Conditions, sent: Conditions, stamp: str, generation: int) -> list[Object]:
    """Return the patch of the list of conditions."""
    changes: list[Object] = []
    for type_, condition in conditions.items():
        before = sent.get(type_)
        if condition == before:
            continue
        change: Object = {
            "type": type_,
            "status": condition.status,
            "observedGeneration": generation,
            "lastProbeTime": None,
        }
        if before is None or before.status != condition.status:
            change["lastTransitionTime"] = stamp
        if condition.reason or (before is not None and before.reason):
            change["reason"] = condition.reason or None
        if condition.message or (before is not None and before.message):
            change["message"] = condition.message or None
        changes.append(change)
    if RESIZE_PENDING in sent and RESIZE_PENDING not in conditions:
        changes.append({"$patch": "delete", "type": RESIZE_PENDING})
    return changes
