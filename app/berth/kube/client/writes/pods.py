"""Writes to pods, with the bodies that kube-scheduler sends (spec §2.11)."""

import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    ServerError,
    UnavailableError,
)
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, rfc3339

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

TRIES: Final = 4
RETRY_DELAY: Final = 0.01
RETRY_FACTOR: Final = 5.0
RETRY_JITTER: Final = 0.1

T = TypeVar("T")

encode = msgspec.json.encode
decode_pod = msgspec.json.Decoder(Pod).decode


def path_of(pod: Pod) -> str:
    """Return the path of a pod on the API server."""
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def bind(client: Api, pod: Pod, node_name: str) -> Coroutine[Any, Any, object]:
    """Have the API server assign *pod* to a node. One request; see :func:`with_retries`.

    Raises ConflictError when the pod is terminating, gated, assigned already or another of its name
    (spec §12.6), also when it was our own earlier request that assigned it. After that, a
    ServerError or an UnavailableError that was not certainly unsent, ask :func:`bound_node`.
    """
    return client.request("POST", path_of(pod) + "/binding", body=binding_body(pod, node_name))


def binding_body(pod: Pod, node_name: str) -> bytes:
    """Return the Binding. Its uid keeps a recreated pod from being bound in the old one's place."""
    return encode(
        {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {
                "name": pod.metadata.name,
                "namespace": pod.metadata.namespace,
                "uid": pod.metadata.uid,
            },
            "target": {"kind": "Node", "name": node_name},
        }
    )


async def bound_node(client: Api, pod: Pod) -> str | None:
    """Return the node that the API server has *pod* on, "" when on none, None when it is gone.

    For binds whose answer was lost. A pod of the same name and another uid counts as gone.
    """
    answer = await get_pod(client, pod)
    if answer is None or answer.metadata.uid != pod.metadata.uid:
        return None
    return answer.spec.node_name


async def get_pod(client: Api, pod: Pod) -> Pod | None:
    """Return the pod of that name as it is now on the API server, None when there is none."""
    try:
        return decode_pod(await client.request("GET", path_of(pod)))
    except ApiError as exc:
        if exc.status == 404:
            return None
        raise


async def delete_pod(client: Api, pod: Pod) -> bool:
    """Delete a pod with its own grace period; False if it was gone already.

    kube-scheduler deletes by name alone. Here the uid is a precondition, so that a successor of
    the same name is left alone. Raises ApiError.
    """
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": pod.metadata.uid},
    }
    try:
        await client.request("DELETE", path_of(pod), body=encode(options))
    except NotFoundError:
        return False
    except ConflictError:
        if await bound_node(client, pod) is not None:
            raise
        return False
    return True


async def patch_pod_status(
    client: Api,
    pod: Pod,
    condition: Condition | None,
    nominated_node_name: str | None,
    *,
    clock: Clock,
    rng: random.Random,
    only_this_version: bool = False,
) -> bytes | None:
    """Make the status of *pod* say *condition* and *nominated_node_name*.

    None leaves as is, "" clears the nomination. See :func:`status_patch` for what is sent, and
    :func:`with_retries` for errors; a conflict is tried again as well unless *only_this_version* of
    the pod may be patched. Return the pod as it is then, in JSON, None if that took no call.
    """
    body = status_patch(
        pod,
        condition=condition,
        nominated_node_name=nominated_node_name,
        now=clock.now(),
        only_this_version=only_this_version,
    )
    if body is None:
        return None
    again = may_pass if only_this_version else may_pass_or_conflict
    return await patch_status(client, path_of(pod), body, clock=clock, rng=rng, again=again)


def patch_status(
    client: Api,
    path: str,
    body: bytes,
    *,
    clock: Clock,
    rng: random.Random,
    again: Callable[[ApiError], bool] | None = None,
) -> Coroutine[Any, Any, bytes]:
    """Apply a strategic merge patch to the status of the object at *path*; return the object.

    *again* says which errors are tried again as :func:`with_retries` does, by default
    :func:`may_pass_or_conflict`.
    """
    return with_retries(
        lambda: client.request(
            "PATCH", path + "/status", body=body, content_type=STRATEGIC_MERGE_PATCH
        ),
        clock=clock,
        rng=rng,
        again=again or may_pass_or_conflict,
    )


async def with_retries(
    request: Callable[[], Awaitable[T]],
    *,
    clock: Clock,
    rng: random.Random,
    again: Callable[[ApiError], bool],
) -> T:
    """Make a request up to four times, after 10, 50 and 250 ms (up to 10 % more), while *again*.

    Raises the last error (spec §2.11, 1.37 spec N3.2).
    """
    delay = RETRY_DELAY
    for _ in range(TRIES - 1):
        try:
            return await request()
        except ApiError as exc:
            if not again(exc):
                raise
        await clock.sleep(delay * (1.0 + rng.random() * RETRY_JITTER))
        delay *= RETRY_FACTOR
    return await request()


def may_pass(error: ApiError) -> bool:
    """Say whether the same request may succeed when sent again (1.37 spec N3.2)."""
    match error:
        case ServerError(status=500 | 503) | UnavailableError(sent=False):
            return True
    return False


def may_pass_or_conflict(error: ApiError) -> bool:
    """Say whether the same status patch may succeed when sent again (spec §2.11)."""
    return isinstance(error, ConflictError) or may_pass(error)


def status_patch(
    pod: Pod,
    *,
    condition: Condition | None,
    nominated_node_name: str | None,
    now: float,
    only_this_version: bool = False,
) -> bytes | None:
    """Return the strategic merge patch from *pod*'s status to the wanted one, None when equal.

    With *only_this_version* it fails on any other version of the pod (1.37 spec N3.11).

    Conditions are merged by type, and only fields that differ are sent. A condition whose status
    stays keeps its transition time, else that is *now* (spec §2.10). One that differs in nothing
    but ``observedGeneration`` counts as equal.
    """
    status: dict[str, Any] = {}
    if condition is not None:
        status.update(conditions_patch(pod.status.conditions, condition, now=now))
    current = pod.status.nominated_node_name
    if nominated_node_name is not None and nominated_node_name != current:
        status["nominatedNodeName"] = nominated_node_name or None
    if not status:
        return None
    version = {"metadata": {"resourceVersion": pod.metadata.resource_version}}
    return encode({**(version if only_this_version else {}), "status": status})


def conditions_patch(
    current: tuple[Condition, ...], wanted: Condition, *, now: float
) -> dict[str, Any]:
    """Return the fields of a status patch that set one condition; empty when it is set already.

    A list that was empty is sent plainly. Otherwise ``$setElementOrder/conditions`` names all
    types, so that the server keeps their order.
    """
    types = [condition.type for condition in current]
    if wanted.type not in types:
        fields = {"lastProbeTime": None, **condition_fields(wanted, transition=rfc3339(now))}
        patch: dict[str, Any] = {"conditions": [fields]}
        types.append(wanted.type)
    else:
        old = current[types.index(wanted.type)]
        if (old.status, old.reason, old.message) == (wanted.status, wanted.reason, wanted.message):
            return {}
        stays = old.status == wanted.status
        before = condition_fields(old, transition=old.last_transition_time)
        after = condition_fields(
            wanted, transition=old.last_transition_time if stays else rfc3339(now)
        )
        changes = {
            name: after.get(name)
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        }
        patch = {"conditions": [{**changes, "type": wanted.type}]}
    if current:
        order = [{"type": name} for name in types]
        patch = {"$setElementOrder/conditions": order, **patch}
    return patch


def condition_fields(condition: Condition, *, transition: str | None) -> dict[str, Any]:
    """Return the fields of a condition that are set, in the order in which they are written."""
    fields = {
        "lastTransitionTime": transition,
        "message": condition.message or None,
        "observedGeneration": condition.observed_generation or None,
        "reason": condition.reason or None,
        "status": condition.status,
        "type": condition.type,
    }
    return {name: value for name, value in fields.items() if value is not None}
