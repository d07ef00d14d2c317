"""``/healthz``, ``/livez`` and ``/readyz`` with their checks, of those that a real server has."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from berth.runtime.probes import Check, Report, ping, report, report_one

Endpoint = Callable[[Request], Awaitable[Response]]

Probes = Mapping[str, Mapping[str, Check]]
"""Name of a probe, which is its path, to the checks it consists of."""


POST_START_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
)
"""What kube-apiserver does as it starts, of that which is done here, too: definitions, APIServices
and flow control are followed, and the first objects are created."""
DOCUMENT_HOOKS: Final = ("apiservice-openapi-controller", "apiservice-openapiv3-controller")


def api_server_probes(
    *, etcd: Check, is_open: Callable[[], bool], is_starting: Callable[[], bool]
) -> Probes:
    """Return what each probe checks, by kube-apiserver's names and in its order.

    *etcd* is about the store. While it *is_starting*, the hooks are not finished.
    """

    def hook() -> str:
        return "not finished" if is_starting() else ""

    hooks = {f"poststarthook/{name}": hook for name in POST_START_HOOKS}
    hooks["autoregister-completion"] = hook
    hooks |= {f"poststarthook/{name}": hook for name in DOCUMENT_HOOKS}
    common = {"ping": ping, "log": ping, "etcd": etcd}
    readyz = {
        **common,
        "etcd-readiness": etcd,
        "informer-sync": ping,  # there are none to wait for
        **hooks,
        "shutdown": lambda: "" if is_open() else "process is shutting down",
    }
    return {"healthz": common | hooks, "livez": common | hooks, "readyz": readyz}


def routes(probes: Probes) -> list[Route]:
    """Return the routes of *probes*, and of each of their checks."""
    found = []
    for probe, checks in probes.items():
        found.append(Route(f"/{probe}", _all(probe, checks), name=probe))
        found += [
            Route(f"/{probe}/{name}", _one(check), name=f"{probe} {name}")
            for name, check in checks.items()
        ]
    return found


def _all(probe: str, checks: Mapping[str, Check]) -> Endpoint:
    async def answer(request: Request) -> Response:
        query = request.query_params
        excluded = query.getlist("exclude")
        return _response(report(probe, checks, excluded=excluded, verbose="verbose" in query))

    return answer


def _one(check: Check) -> Endpoint:
    async def answer(_request: Request) -> Response:
        return _response(report_one(check))

    return answer


def _response(found: Report) -> Response:
    return PlainTextResponse(found.text, found.code, headers={"X-Content-Type-Options": "nosniff"})
