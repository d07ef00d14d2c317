"""Connections to containers, ports and nodes: ``exec``, ``attach``, ``portforward``, ``proxy``.

They lead to containers of kubelets in this process. Where there are none, and where nothing
listens, what is answered is what a real server says then. A request to upgrade the connection gets
it as a Status, which kubectl prints.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from starlette.types import ASGIApp

from berth.cluster import errors
from berth.cluster.errors import StatusError
from berth.cluster.http.call import Call, Handler
from berth.cluster.http.requests import WITH_BODY, Answer
from berth.cluster.http.subresources.containers import container_of
from berth.cluster.http.subresources.kubelets import (
    host_and_port,
    kubelet_of,
    refused,
    service_unavailable,
    unreachable,
)
from berth.cluster.http.subresources.port_forward import Answering, PortForward
from berth.cluster.http.subresources.remote_commands import RemoteCommand
from berth.cluster.kinds.builtin import find as find_kind
from berth.cluster.kubelet.containers import Find
from berth.cluster.kubelet.processes.sandbox import Sandbox
from berth.cluster.kubelet.processes.shell import HttpAnswer, HttpRequest
from berth.cluster.resources import Object
from berth.cluster.writes.context import WriteContext

ENDED: Final = ("Succeeded", "Failed")
PODS: Final = find_kind("", "v1", "pods")
SLICES: Final = find_kind("discovery.k8s.io", "v1", "endpointslices").storage_key
SERVICE_NAME: Final = "kubernetes.io/service-name"


async def execute(call: Call) -> ASGIApp:
    """``exec``: 400 for a container that is none, or a pod that is over."""
    pod = await _connected(call)
    phase = (pod.get("status") or {}).get("phase")
    if phase in ENDED:
        raise errors.bad_request(
            f"cannot exec into a container in a completed pod; current phase is {phase}"
        )
    return _remote_command(call, pod, attaches=False)


async def attach(call: Call) -> ASGIApp:
    return _remote_command(call, await _connected(call), attaches=True)


def _remote_command(call: Call, pod: Object, *, attaches: bool) -> ASGIApp:
    container = container_of(pod, call.request.query.get("container", ""))
    sandbox = _sandbox(call, pod, container)
    if sandbox is None:
        raise _no_kubelet(call, pod)
    if not attaches and "command" not in call.request.query:
        raise errors.bad_request("you must specify at least 1 command for the container")
    changed = partial(_changed, call, pod)
    return RemoteCommand(sandbox, attaches=attaches, changed=changed, clock=call.services.clock)


def _sandbox(call: Call, pod: Object, container: str) -> Sandbox | None:
    """Return what a container sees, if one of our kubelets runs it."""
    find = _finder(call)
    every = (each.sandbox(pod, container, find) for each in call.services.containers)
    return next((sandbox for sandbox in every if sandbox is not None), None)


def _changed(call: Call, pod: Object) -> None:
    for each in call.services.containers:
        each.changed(pod)


def _listener(call: Call, pod: Object, port: int) -> Answering | None:
    """Return what answers requests to a port of a pod; None: nothing listens there."""
    for container in pod["spec"].get("containers") or []:
        sandbox = _sandbox(call, pod, container["name"])
        if sandbox is not None and sandbox.listens(port):
            return partial(_answer, call, pod, sandbox, port)
    return None


def _answer(
    call: Call, pod: Object, sandbox: Sandbox, port: int, request: HttpRequest
) -> HttpAnswer:
    answer = sandbox.answer(port, request) or HttpAnswer("", 503)
    _changed(call, pod)
    return answer


async def _proxied(call: Call, pod: Object, port: str | int, address: str) -> ASGIApp:
    """Pass the request on to a port of a pod."""
    listener = _listener(call, pod, int(port)) if str(port).isdigit() else None
    if listener is None:
        raise _not_reached(address)
    path = call.request.path.partition("/proxy")[2] or "/"
    body = await call.request.body() if call.request.method in WITH_BODY else b""
    answer = listener(HttpRequest(call.request.method, path, call.request.query, body))
    return Answer(answer.body.encode(), answer.code, media_type=answer.content_type)


def _finder(call: Call) -> Find:
    """Return what finds ConfigMaps and Secrets of the namespace."""

    def find(plural: str, name: str) -> Object | None:
        try:
            kind = find_kind("", "v1", plural)
            stored = call.services.writes.get(kind, call.target.namespace, name)
        except StatusError:
            return None
        return stored.decode()

    return find


async def port_forward(call: Call) -> ASGIApp:
    pod = await _connected(call)
    containers = pod["spec"].get("containers") or []
    if not any(_sandbox(call, pod, container["name"]) for container in containers):
        raise _no_kubelet(call, pod)
    return PortForward(pod["metadata"]["name"], partial(_listener, call, pod))


async def proxy(call: Call) -> ASGIApp:
    """Pass a request on to a pod, a service or a node."""
    return await _PROXIES[call.target.resource.plural](call)


async def _proxy_to_pod(call: Call) -> ASGIApp:
    """``NAME`` or ``SCHEME:NAME:PORT``; without a port, the first that a container names."""
    _, name, port = _parts(call.target.name)
    pod = await _connected(call, name)
    ip = (pod.get("status") or {}).get("podIP")
    if not ip:
        raise errors.bad_request("address not allowed")
    ports = [
        each
        for container in pod["spec"].get("containers") or []
        for each in container.get("ports") or []
    ]
    named = {each.get("name"): each["containerPort"] for each in ports}
    if not port:
        port = str(ports[0]["containerPort"]) if ports else "80"
    port = named.get(port, port)
    return await _proxied(call, pod, port, host_and_port(ip, port))


async def _proxy_to_service(call: Call) -> ASGIApp:
    """``NAME`` or ``SCHEME:NAME:PORT``: one of the endpoints of that port."""
    _, name, wanted = _parts(call.target.name)
    service = await _connected(call, name)
    ports = (service.get("spec") or {}).get("ports") or []
    if wanted:
        ports = [port for port in ports if wanted in (port.get("name"), str(port["port"]))]
        if not ports:
            raise service_unavailable(f'no service port "{wanted}" found for service "{name}"')
    port_name = ports[0].get("name", "") if ports else ""
    endpoint = _endpoint(call, name, port_name)
    if endpoint is None:
        raise service_unavailable(f'no endpoints available for service "{name}"')
    address, port, pod_name = endpoint
    try:
        pod = call.services.writes.get(PODS, call.target.namespace, pod_name).decode()
    except StatusError:
        raise _not_reached(host_and_port(address, port)) from None
    return await _proxied(call, pod, port, host_and_port(address, port))


async def _proxy_to_node(call: Call) -> ASGIApp:
    """``NAME`` or ``SCHEME:NAME:PORT``; without a port, the kubelet's."""
    _, name, port = _parts(call.target.name)
    await _connected(call, name)
    raise _not_reached(kubelet_of(call.services.store, name).host_and_port(port))


_PROXIES: Final[Mapping[str, Handler]] = {
    "nodes": _proxy_to_node,
    "pods": _proxy_to_pod,
    "services": _proxy_to_service,
}


async def _connected(call: Call, name: str = "") -> Object:
    """Return the object, once admission let the connection pass."""
    resource, namespace, given, subresource = call.target
    name = name or given
    context = WriteContext(call.request.user, "")
    found = call.services.writes.get(resource, namespace, name)
    await call.services.writes.connect(resource, namespace, name, subresource, context)
    return found.decode()


def _no_kubelet(call: Call, pod: Object) -> StatusError:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if not node:
        return errors.bad_request(f"pod {name} does not have a host assigned")
    kubelet = kubelet_of(call.services.store, node)
    return unreachable(f"error dialing backend: {kubelet.why}")


def _not_reached(address: str) -> StatusError:
    return service_unavailable(f"error trying to reach service: {refused(address)}")


def _parts(name: str) -> tuple[str, str, str]:
    """Take ``SCHEME:NAME:PORT`` apart; scheme and port may be missing."""
    match name.split(":"):
        case [only]:
            return "", only, ""
        case [name, port]:
            return "", name, port
        case ["" | "http" | "https" as scheme, name, port]:
            return scheme, name, port
    raise errors.bad_request(f'invalid service request "{name}"')


def _endpoint(call: Call, service: str, port_name: str) -> tuple[str, int, str] | None:
    """Return an address of a service that is ready, its port and pod, by EndpointSlices."""
    for stored in call.services.store.list(SLICES, call.target.namespace):
        if stored.labels.get(SERVICE_NAME) != service:
            continue
        part = stored.decode()
        ports = [port for port in part.get("ports") or [] if (port.get("name") or "") == port_name]
        for endpoint in part.get("endpoints") or []:
            is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
            if ports and ports[0].get("port") and endpoint.get("addresses") and is_ready:
                pod = (endpoint.get("targetRef") or {}).get("name", "")
                return endpoint["addresses"][0], ports[0]["port"], pod
    return None
