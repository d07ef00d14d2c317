"""What a running scheduler answers over HTTP, put together from the routers of ``app.server``."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, FastAPI

from app.explain.explainer import Explainer
from app.log import set_verbosity
from app.server.application import Application
from app.server.debug.comparison import ClusterComparison
from app.server.debug.configuration import effective_configuration
from app.server.debug.endpoints import Debugged, debug_endpoints
from app.server.debug.sight import Sight
from app.server.explain_endpoints import explain_endpoints
from app.server.health import Probes, SchedulingProgress, health_endpoints, scheduler_probes
from app.server.metrics_endpoints import metrics_endpoints
from app.server.profiling import profiling_endpoints
from app.server.simulate_endpoints import simulate_endpoints
from app.server.simulation_process import SimulationProcesses
from app.server.snapshot_endpoints import snapshot_endpoints
from app.server.zpages import zpages
from app.watches import NODES, PODS, UNFINISHED_PODS
from app.whatif.live import LiveSnapshots

if TYPE_CHECKING:
    from app.main import SchedulerService

SIMULATION_WORKER: Final = (sys.executable, "-m", "app.commands.simulation_worker")


def scheduler_application(service: "SchedulerService", *, flags: Mapping[str, str]) -> FastAPI:
    """Return all endpoints of *service*; *flags* are those that the process was started with."""
    application = Application()
    explainer = Explainer(service.scheduler, pods=service.pods.store, clock=service.clock)
    take = _snapshots(service).take
    routers = [
        health_endpoints(_probes(service)),
        zpages(
            configuration=service.current_config,
            flags=flags,
            paths=lambda: sorted(application.paths),
            clock=service.clock,
            gates=service.gates,
        ),
        explain_endpoints(explainer),
        debug_endpoints(_debugged(service, explainer)),
        snapshot_endpoints(take, is_synced=lambda: service.is_synced),
        simulate_endpoints(
            take,
            SimulationProcesses(SIMULATION_WORKER, more=lambda: service.plugins.as_flags).simulate,
            is_synced=lambda: service.is_synced,
        ),
        metrics_of(service),
    ]
    if service.current_config().enable_profiling:
        routers.append(profiling_endpoints(set_verbosity=set_verbosity))
    for router in routers:
        application.include_router(router)
    return application


def metrics_of(service: "SchedulerService") -> APIRouter:
    """Return what Prometheus reads of *service*."""
    return metrics_endpoints(
        service.registry,
        pods=service.pods.store.values,
        is_leading=lambda: service.is_leading,
        reset=service.metrics.reset,
    )


def _probes(service: "SchedulerService") -> Probes:
    return scheduler_probes(
        elects=service.elector is not None,
        is_synced=lambda: service.is_synced,
        is_terminating=lambda: service.is_terminating,
        progress=SchedulingProgress(
            is_busy=lambda: (
                service.is_synced
                and service.is_leading
                and service.queue.pending_counts()["active"] > 0
            ),
            mark=lambda: service.scheduler.decisions.made,
            clock=service.clock,
        ),
    )


def _debugged(service: "SchedulerService", explainer: Explainer) -> Debugged:
    return Debugged(
        sight=Sight(service.scheduler, service.pods.store, service.clock),
        explainer=explainer,
        comparison=ClusterComparison(
            service.client,
            service.cache,
            node_path=NODES,
            pod_path=PODS,
            pod_params=UNFINISHED_PODS,
            clock=service.clock,
        ),
        configuration=lambda: effective_configuration(
            service.live.current,
            generation=service.live.generation,
            loaded_at=service.live.loaded_at,
        ),
        is_ready=lambda: service.is_synced,
    )


def _snapshots(service: "SchedulerService") -> LiveSnapshots:
    return LiveSnapshots(
        service.cache,
        service.queue.nominator,
        pods=service.pods.store,
        others=lambda: (
            reflector.store.values()
            for path, reflector in service.watches.reflectors.items()
            if path not in (NODES, PODS)
        ),
        config=service.current_config,
        clock=service.clock,
    )
