"""``metrics.k8s.io``: answers what nodes and pods use, as metrics-server does.

It would scrape kubelets; as nothing runs on hollow nodes, usage is what
:mod:`berth.cluster.kubelet.usage` says of the objects in the store at the moment. Nodes that are
not hollow, and those whose machine has failed, are not measured, nor are the pods there.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from starlette.types import ASGIApp

from berth.cluster import errors
from berth.cluster.http import reads
from berth.cluster.http.call import Call
from berth.cluster.http.subresources.kubelets import HOLLOW, NODES
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.resource_metrics import NODE_METRICS
from berth.cluster.kubelet.hollow_node import failure_of
from berth.cluster.kubelet.usage import (
    NOTHING,
    Usage,
    capacity_of,
    running_containers,
    total,
    usage_of_containers,
    usage_of_system,
)
from berth.cluster.pods.metrics import MeasuredPod
from berth.cluster.resources import Object
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.kube.objects.amounts import Amount
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.quantity import NANO, Quantities, check_quantities
from berth.runtime.clock import rfc3339

T = TypeVar("T")

PODS: Final = find("", "v1", "pods")
WINDOW: Final = "15s"
"""Over what usage is measured: the resolution of metrics-server."""

AT_ONCE: Final = 200
"""Pods that are measured before other requests get a turn."""


class _NodeInfo(KubeStruct, frozen=True, gc=False):
    container_runtime_version: str = ""


class _NodeStatus(KubeStruct, frozen=True, gc=False):
    capacity: Quantities = msgspec.field(default_factory=dict)
    node_info: _NodeInfo = _NodeInfo()

    def __post_init__(self) -> None:
        check_quantities("capacity", self.capacity)


class MeasuredNode(KubeStruct, frozen=True, gc=False):
    """A node as far as its usage depends on it."""

    metadata: ObjectMeta = ObjectMeta()
    status: _NodeStatus = _NodeStatus()

    @property
    def is_measured(self) -> bool:
        is_hollow = self.status.node_info.container_runtime_version.startswith(HOLLOW)
        return is_hollow and failure_of(self.metadata.annotations) is None


def usage_of(pod: MeasuredPod) -> dict[str, Usage]:
    """Return what the containers of a pod that run now use, by name."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    running = {status.name for status in statuses if status.state.running is not None}
    if not running:
        return {}
    used = usage_of_containers(pod.metadata.annotations, running_containers(pod.spec))
    return {name: usage for name, usage in used.items() if name in running}


def _read_with(decode: Callable[[bytes], T]) -> Callable[[Stored], T | None]:
    def read(stored: Stored) -> T | None:
        """Return what is stored; None: its quantities make no sense, so it is not measured."""
        try:
            return decode(stored.body)
        except msgspec.ValidationError:
            return None

    return read


_node_of = _read_with(msgspec.json.Decoder(MeasuredNode).decode)
_pod_of = _read_with(msgspec.json.Decoder(MeasuredPod).decode)


async def get(call: Call) -> ASGIApp:
    """Answer what one node or pod uses; 404 when there is none, or it is not measured."""
    resource, namespace, name, _ = call.target
    store, now = call.services.store, call.services.clock.now()
    render = call.renderer(resource)
    measured = NODES if resource is NODE_METRICS else PODS
    try:
        stored = store.get(measured.storage_key, namespace, name)
    except NotFoundError:
        raise errors.not_found(measured, name) from None
    found: Object | None = None
    if resource is NODE_METRICS:
        node = _node_of(stored)
        if node is not None and node.is_measured:
            found = _node_metrics(stored, node, (await _usage_of_nodes(store, name)).get(name), now)
    elif (pod := _pod_of(stored)) is not None and _is_measured(store, pod.spec.node_name):
        found = _pod_metrics(stored, pod, now)
    if found is None:
        raise errors.not_found(resource, f"{namespace}/{name}" if namespace else name)
    return call.answer(render, render.object(Stored(found, 0)))


async def list_all(call: Call) -> ASGIApp:
    """Answer what the nodes or pods use that selectors choose."""
    resource, namespace, _, _ = call.target
    store, now = call.services.store, call.services.clock.now()
    render = call.renderer(resource)
    takes = reads.asked(resource, namespace, call.request.query)[0].takes_of_list()
    found = []
    if resource is NODE_METRICS:
        usages = await _usage_of_nodes(store)
        for stored in store.list(NODES.storage_key):
            node = _node_of(stored) if takes(stored) else None
            if node is not None and node.is_measured:
                found.append(_node_metrics(stored, node, usages.get(stored.name), now))
    else:
        measured: dict[str, bool] = {}
        for number, stored in enumerate(store.list(PODS.storage_key, namespace), 1):
            pod = _pod_of(stored) if takes(stored) else None
            if pod is not None:
                name = pod.spec.node_name
                if name not in measured:
                    measured[name] = _is_measured(store, name)
                metrics = _pod_metrics(stored, pod, now) if measured[name] else None
                found += [] if metrics is None else [metrics]
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
    portion = reads.Portion([Stored(each, 0) for each in found], 0)
    return call.answer(render, b"".join(render.list(portion)))


def _is_measured(store: Store, node_name: str) -> bool:
    """Tell whether there is such a node, and it is measured."""
    try:
        node = _node_of(store.get(NODES.storage_key, "", node_name))
    except NotFoundError:
        return False
    return node is not None and node.is_measured


async def _usage_of_nodes(store: Store, only: str = "") -> dict[str, Usage]:
    """Return what the pods of each node use together."""
    found: dict[str, Usage] = {}
    for number, stored in enumerate(store.list(PODS.storage_key), 1):
        pod = _pod_of(stored)
        node = "" if pod is None else pod.spec.node_name
        if pod is not None and node and (not only or node == only):
            found[node] = total([found.get(node, NOTHING), *usage_of(pod).values()])
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def _node_metrics(stored: Stored, node: MeasuredNode, of_pods: Usage | None, now: float) -> Object:
    capacity = capacity_of(node.status.capacity)
    system = usage_of_system(node.metadata.annotations, capacity)
    return {**_measurement(stored, now), "usage": _quantities(system.plus(of_pods or NOTHING))}


def _pod_metrics(stored: Stored, pod: MeasuredPod, now: float) -> Object | None:
    """Return what a pod uses; None: none of its containers runs."""
    used = usage_of(pod)
    if not used:
        return None
    containers = [{"name": name, "usage": _quantities(each)} for name, each in used.items()]
    return {**_measurement(stored, now), "containers": containers}


def _measurement(stored: Stored, now: float) -> Object:
    namespace, name = stored.key
    stamp = rfc3339(now)
    metadata: Object = {"name": name, "creationTimestamp": stamp}
    if namespace:
        metadata["namespace"] = namespace
    if stored.labels:
        metadata["labels"] = dict(stored.labels)
    return {"metadata": metadata, "timestamp": stamp, "window": WINDOW}


def _quantities(used: Usage) -> dict[str, str]:
    return {"cpu": str(Amount(used.cpu)), "memory": str(Amount(used.memory * NANO, binary=True))}
