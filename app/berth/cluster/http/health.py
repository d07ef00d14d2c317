"""``/healthz``, ``/livez`` and ``/readyz`` with their checks, as far as the cluster has them."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from berth.runtime.probes import Check, Report, ping, report, report_one

Endpoint = Callable[[Request], Awaitable[Response]]

Probes = Mapping[str, Mapping[str, Check]]
"""Name of a probe, which is its path, to the checks it consists of."""


def api_server_probes(*, etcd: Check, is_open: Callable[[], bool]) -> Probes:
    """Return what each probe checks, by kube-apiserver's names; *etcd* is about the store."""
    common = {"ping": ping, "log": ping, "etcd": etcd}
    readyz = {
        **common,
        "informer-sync": ping,  # there are none to wait for
        "shutdown": lambda: "" if is_open() else "process is shutting down",
    }
    return {"healthz": common, "livez": common, "readyz": readyz}


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
