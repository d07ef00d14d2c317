"""The ``ContainerStatus`` that kubelets report."""

from berth.cluster.kubelet.container_life import ContainerLife, Doing, Termination
from berth.cluster.kubelet.container_plan import Role
from berth.cluster.resources import Object
from berth.kube.objects.pod import ResourceRequirements
from berth.runtime.clock import rfc3339


def container_status(life: ContainerLife, uid: str, *, waits_for: str, resources: Object) -> Object:
    """Return the status of a container of the pod *uid*.

    *waits_for* is why it waits if nothing else is known. *resources* is what it has been given.
    """
    container = life.container
    last = {} if life.last is None else {"terminated": _terminated(life.last)}
    status: Object = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "restartCount": life.restarts,
        "lastState": last,
        "ready": life.ready,
        "started": life.started,
    }
    if life.doing is Doing.RUNNING:
        status["state"] = {"running": {"startedAt": rfc3339(life.since)}}
    elif life.end is not None:
        status["state"] = {"terminated": _terminated(life.end)}
        # An init container that has done its work counts as ready, as in kubelets.
        status["ready"] = _is_done_init(life)
    else:
        reason, message = life.waits
        waiting = {"reason": reason or waits_for}
        if message:
            waiting["message"] = message
        status["state"] = {"waiting": waiting}
    if life.since:
        status["imageID"] = f"hollow://{container.image}"
        status["containerID"] = f"hollow://{uid}/{container.name}"
    return {**status, **resources}


def given(resources: ResourceRequirements) -> Object:
    """Return the part of a status about what a container has: all that it asks for."""
    amounts = {
        kind: dict(amounts)
        for kind, amounts in (("limits", resources.limits), ("requests", resources.requests))
        if amounts
    }
    if not resources.requests:
        return {"resources": amounts}
    return {"resources": amounts, "allocatedResources": dict(resources.requests)}


def _is_done_init(life: ContainerLife) -> bool:
    return life.role is Role.INIT and life.end is not None and life.end.exit_code == 0


def _terminated(end: Termination) -> Object:
    state: Object = {
        "exitCode": end.exit_code,
        "reason": end.reason,
        "startedAt": rfc3339(end.since) if end.since else None,
        "finishedAt": rfc3339(end.until) if end.until else None,
    }
    return {**state, "message": end.message} if end.message else state
