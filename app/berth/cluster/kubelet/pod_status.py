"""What kubelets report of pods."""

import msgspec

from berth.clock import rfc3339
from berth.cluster.kubelet.hollow_node import HollowNode, Rejection
from berth.cluster.resources import Object
from berth.objects.meta import ObjectMeta
from berth.objects.pod import Pod


class DeletableMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with how long the pod may take to stop."""

    deletion_grace_period_seconds: int | None = None


class KubeletPod(Pod, frozen=True, gc=False):
    """A pod as far as a hollow kubelet reads it."""

    metadata: DeletableMeta = DeletableMeta()


decode_pod = msgspec.json.Decoder(KubeletPod).decode


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
            _started(each.name, each.image, pod.metadata.uid, stamp) for each in pod.spec.containers
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


def rejected(rejection: Rejection, *, now: float) -> Object:
    """Return the status of a pod that its node does not take."""
    return {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": rejection.message,
        "startTime": rfc3339(now),
    }


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
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}
    state = {"terminated": ended}
    return {**_container(name, image, uid), "ready": True, "started": False, "state": state}
