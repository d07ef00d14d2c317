"""``/healthz``, ``/livez``, ``/readyz``: what probes ask (spec §7.3)."""

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry
from starlette.responses import Response

from berth.runtime.clock import Clock
from berth.runtime.metrics import metrics_text
from berth.runtime.probes import Check, ping, report, report_one
from berth.scheduler.metrics.recorders import HealthMetrics

log = logging.getLogger(__name__)

Probes = Mapping[str, Mapping[str, Check]]
"""Name of a probe, which is its path, to the checks it consists of."""

PATIENCE: Final = 30.0
"""Seconds without a decision after which scheduling counts as stuck, if pods could be tried."""

_Verbose: TypeAlias = Annotated[str | None, Query(description="If present, list the checks.")]
_Excluded: TypeAlias = Annotated[list[str] | None, Query(description="Checks to exclude.")]
_NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}
_TEXT: Final[dict[str, Any]] = {"content": {"text/plain": {"schema": {"type": "string"}}}}


class SchedulingProgress:
    """Fails when no decision was made for long though there are pods to decide about.

    When the event loop itself hangs no probe is answered, which fails it as well.
    """

    def __init__(
        self,
        *,
        is_busy: Callable[[], bool],
        mark: Callable[[], object],
        clock: Clock,
        patience: float = PATIENCE,
    ) -> None:
        """*is_busy* says that there is a pod to be tried; *mark* changes with every attempt."""
        self._is_busy = is_busy
        self._mark = mark
        self._clock = clock
        self._patience = patience
        self._seen: object = None
        self._since: float | None = None
        """Since when every look has found the same mark, and work to do."""

    def __call__(self) -> str:
        now, mark = self._clock.monotonic(), self._mark()
        if not self._is_busy():
            self._since = None
        elif self._since is None or mark != self._seen:
            self._since = now
        self._seen = mark
        if self._since is None or now - self._since < self._patience:
            return ""
        return f"no pod was tried for {now - self._since:.0f} s though some wait for it"


def scheduler_probes(
    *,
    elects: bool,
    is_synced: Callable[[], bool],
    is_terminating: Callable[[], bool],
    progress: Check,
    watches: Check,
) -> Probes:
    """Return what each probe of a scheduler checks (spec §7.3), in ``livez`` also its *progress*.

    ``readyz`` has *watches* besides: a process that is cut off from the API server is not made
    better by a restart, but must not count as in order.

    The check of the lease, of one that *elects*, never fails, as in kube-scheduler: who loses the
    lease exits.
    """
    leader_election = {"leaderElection": ping} if elects else {}
    return {
        "healthz": leader_election or {"ping": ping},
        "livez": {"ping": ping, "scheduling-progress": progress},
        "readyz": {
            **leader_election,
            "shutdown": lambda: "process is shutting down" if is_terminating() else "",
            "sched-handler-sync": lambda: "" if is_synced() else "handlers are not synced",
            "watches": watches,
        },
    }


def extender_probes(*, is_synced: Callable[[], bool], is_terminating: Callable[[], bool]) -> Probes:
    """Return what each probe of the extender port checks: of a scheduler's, what applies."""
    probes = scheduler_probes(
        elects=False,
        is_synced=is_synced,
        is_terminating=is_terminating,
        progress=ping,
        watches=ping,
    )
    readyz = {name: check for name, check in probes["readyz"].items() if name != "watches"}
    return {**probes, "livez": {"ping": ping}, "readyz": readyz}


def health_endpoints(probes: Probes) -> APIRouter:
    """Return the endpoints of *probes*, and ``/metrics/slis`` about them."""
    router = APIRouter(tags=["health"])
    metrics = HealthMetrics()
    registry = CollectorRegistry()
    registry.register(metrics)
    for probe, checks in probes.items():
        _include(router, probe, checks, metrics)

    @router.get("/metrics/slis", summary="Metrics of the health checks", response_class=Response)
    async def slis() -> Response:
        content, content_type = metrics_text(registry, "")
        return Response(content, headers={"Content-Type": content_type})

    @router.delete(
        "/metrics/slis", summary="Reset the health check metrics", response_class=PlainTextResponse
    )
    async def reset() -> str:
        metrics.reset()
        return "metrics reset\n"

    return router


def _include(
    router: APIRouter, probe: str, checks: Mapping[str, Check], metrics: HealthMetrics
) -> None:
    @router.get(
        f"/{probe}",
        summary=f"Result of all checks of {probe}",
        response_class=PlainTextResponse,
        responses={500: {"description": "A check fails", **_TEXT}},
        name=probe,
    )
    async def all_checks(verbose: _Verbose = None, exclude: _Excluded = None) -> PlainTextResponse:
        answer = report(probe, checks, excluded=exclude or (), verbose=verbose is not None)
        for name, problem in answer.results.items():
            metrics.answered(name, probe, healthy=not problem)
        if answer.code != 200:
            failed = {name: problem for name, problem in answer.results.items() if problem}
            log.debug("health check failed", extra={"probe": probe, "failed": failed})
        return PlainTextResponse(answer.text, answer.code, headers=_NOSNIFF)

    for name, check in checks.items():
        _include_one(router, probe, name, check)


def _include_one(router: APIRouter, probe: str, name: str, check: Check) -> None:
    @router.get(
        f"/{probe}/{name}",
        summary=f"Whether {name} passes",
        response_class=PlainTextResponse,
        responses={500: {"description": "The check fails", **_TEXT}},
        name=f"{probe} {name}",
    )
    async def one_check() -> PlainTextResponse:
        answer = report_one(check)
        return PlainTextResponse(answer.text, answer.code, headers=_NOSNIFF)
