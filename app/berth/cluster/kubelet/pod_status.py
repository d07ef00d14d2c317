"""What kubelets report of pods."""

from collections.abc import Mapping
from typing import Final

from berth.clock import rfc3339
from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.kubelet_pod import KubeletPod
from berth.cluster.resources import Object
from berth.objects.pod import Pod, ResourceRequirements

KILLED: Final = 137
"""The exit code of a container that was killed: 128 and the number of SIGKILL."""


RESIZE_PENDING: Final = "PodResizePending"
"""The condition of a pod that does not get the resources that it asks for."""


def running(pod: Pod, node: HollowNode, *, pod_ip: str, now: float) -> Object:
    """Return the status of a pod whose containers have all started and are ready."""
    stamp = rfc3339(now)
    generation = pod.metadata.generation
    types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"]
    if not any(c.type == "PodScheduled" and c.status == "True" for c in pod.status.conditions):
        types.append("PodScheduled")  # bound by hand, with spec.nodeName
    ip = node.host_ip if pod.spec.host_network else pod_ip
    status: Object = {
        "observedGeneration": generation,
        "phase": "Running",
        "conditions": [_true(type_, stamp, generation) for type_ in types],
        "hostIP": node.host_ip,
        "hostIPs": [{"ip": node.host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": stamp,
        "containerStatuses": [
            {
                **_started(each.name, each.image, pod.metadata.uid, stamp),
                **_allocated(each.resources),
            }
            for each in pod.spec.containers
        ],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            _started(each.name, each.image, pod.metadata.uid, stamp)
            if each.restart_policy == "Always"
            else _completed(each.name, each.image, pod.metadata.uid, stamp)
            for each in pod.spec.init_containers
        ]
    return status


def changed(
    pod: KubeletPod,
    *,
    restarts: int,
    since: float,
    ephemeral_since: Mapping[str, float],
    resize: Rejection | None,
    now: float,
) -> Object:
    """Return what changes of the status when the spec of a pod that runs has changed.

    *since* is when its containers started last, *ephemeral_since* the same of ephemeral ones.
    *resize* is why it does not get the resources that it asks for; then it keeps those it has.
    """
    stamp, generation, uid = rfc3339(since), pod.metadata.generation, pod.metadata.uid
    had = {each.name: each for each in pod.status.container_statuses}
    statuses = []
    for each in pod.spec.containers:
        before = had.get(each.name)
        if resize is None or before is None:
            resources = _allocated(each.resources)
        else:
            kept = before.resources or ResourceRequirements()
            resources = {**_allocated(kept), "allocatedResources": dict(before.allocated_resources)}
        started = _started(each.name, each.image, uid, stamp)
        statuses.append({**started, "restartCount": restarts, **resources})
    pending = {"$patch": "delete", "type": RESIZE_PENDING}
    if resize is not None:
        told = {"reason": resize.reason, "message": resize.message}
        pending = {**_true(RESIZE_PENDING, rfc3339(now), generation), **told}
    status: Object = {
        "observedGeneration": generation,
        "containerStatuses": statuses,
        "conditions": [pending],
    }
    if pod.spec.ephemeral_containers:
        status["ephemeralContainerStatuses"] = [
            {
                **_container(each.name, each.image, uid),
                "ready": False,
                "state": {"running": {"startedAt": rfc3339(ephemeral_since[each.name])}},
            }
            for each in pod.spec.ephemeral_containers
        ]
    return status


def restarted(
    pod: Pod, *, exit_code: int, reason: str = "", restarts: int, since: float, now: float
) -> Object:
    """Return what changes of the status when all containers end and start again.

    They ran since *since*; this is the restart number *restarts*.
    """
    stamp = rfc3339(now)
    ended = {"terminated": _terminated(exit_code, rfc3339(since), stamp, reason)}
    return {
        "containerStatuses": [
            {
                **_started(each.name, each.image, pod.metadata.uid, stamp),
                "restartCount": restarts,
                "lastState": ended,
            }
            for each in pod.spec.containers
        ]
    }


def evicted(pod: Pod, eviction: Rejection, *, restarts: int, now: float) -> Object:
    """Return what changes of the status when the node has ended *pod* by its own decision."""
    status = ended(pod, exit_code=KILLED, restarts=restarts, now=now)
    target = _true("DisruptionTarget", rfc3339(now), pod.metadata.generation)
    target |= {"reason": "TerminationByKubelet", "message": eviction.message}
    status["conditions"].append(target)
    return {**status, "reason": eviction.reason, "message": eviction.message}


def ended(pod: Pod, *, exit_code: int, reason: str = "", restarts: int = 0, now: float) -> Object:
    """Return what changes of the status when all containers have ended for good."""
    stamp, generation = rfc3339(now), pod.metadata.generation
    phase, why = ("Failed", "PodFailed") if exit_code else ("Succeeded", "PodCompleted")
    conditions = [
        {**_true(type_, stamp, generation), "status": "False", "reason": why}
        for type_ in ("Ready", "ContainersReady")
    ]
    conditions.append({**_true("PodReadyToStartContainers", stamp, generation), "status": "False"})
    if not exit_code:
        conditions.append({**_true("Initialized", stamp, generation), "reason": why})
    terminated = _terminated(exit_code, pod.status.start_time or stamp, stamp, reason)
    return {
        "observedGeneration": generation,
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [
            {
                **_container(each.name, each.image, pod.metadata.uid),
                "restartCount": restarts,
                "ready": False,
                "started": False,
                "state": {"terminated": terminated},
            }
            for each in pod.spec.containers
        ],
    }


def rejected(rejection: Rejection, *, now: float) -> Object:
    """Return the status of a pod that its node does not take."""
    return {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": f"Pod was rejected: {rejection.message}",
        "startTime": rfc3339(now),
    }


def _allocated(resources: ResourceRequirements) -> Object:
    """Return what a container has: all that it asks for."""
    given = {
        kind: dict(amounts)
        for kind, amounts in (("limits", resources.limits), ("requests", resources.requests))
        if amounts
    }
    if not resources.requests:
        return {"resources": given}
    return {"resources": given, "allocatedResources": dict(resources.requests)}


def _true(type_: str, stamp: str, generation: int) -> Object:
    return {
        "type": type_,
        "status": "True",
        "observedGeneration": generation,
        "lastProbeTime": None,
        "lastTransitionTime": stamp,
    }


def _container(name: str, image: str, uid: str) -> Object:
    return {
        "name": name,
        "image": image,
        "imageID": f"hollow://{image}",
        "containerID": f"hollow://{uid}/{name}",
        "restartCount": 0,
        "lastState": {},
    }


def _started(name: str, image: str, uid: str, stamp: str) -> Object:
    state = {"running": {"startedAt": stamp}}
    return {**_container(name, image, uid), "ready": True, "started": True, "state": state}


def _completed(name: str, image: str, uid: str, stamp: str) -> Object:
    state = {"terminated": _terminated(0, stamp, stamp)}
    return {**_container(name, image, uid), "ready": True, "started": False, "state": state}


def _terminated(exit_code: int, since: str, until: str, reason: str = "") -> Object:
    return {
        "exitCode": exit_code,
        "reason": reason or ("Error" if exit_code else "Completed"),
        "startedAt": since,
        "finishedAt": until,
    }
