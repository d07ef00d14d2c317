"""The HTTP applications of a scheduler service, made of the routers of ``berth.service.server``."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from berth.insight.explain.explainer import Explainer
from berth.insight.explain.explanation import ResponseModel
from berth.insight.whatif.live import LiveSnapshots
from berth.runtime.log import set_verbosity
from berth.scheduler.config.feature_gates import DRA_DEVICE_TAINT_RULES, features_of
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.framework.resource_slice_tracker import resource_slice_tracker
from berth.scheduler.metrics.recorders import ExtenderServerMetrics
from berth.service import simulation_worker
from berth.service.missing_pods import MissingPods
from berth.service.plugin_sources import KnownPlugins
from berth.service.policies import LivePolicies
from berth.service.scheduler_service import SchedulerService
from berth.service.server.application import Application
from berth.service.server.extender.application import extender_application
from berth.service.server.extender.endpoints import ExtenderEndpoints
from berth.service.server.health import (
    Probes,
    SchedulingProgress,
    extender_probes,
    health_endpoints,
    scheduler_probes,
)
from berth.service.server.index_page import NO_PAGE, PAGE
from berth.service.server.metrics import metrics_endpoints
from berth.service.server.scheduler.debug.comparison import ClusterComparison
from berth.service.server.scheduler.debug.configuration import Configurations
from berth.service.server.scheduler.debug.devices import Devices
from berth.service.server.scheduler.debug.endpoints import DebugState, debug_endpoints
from berth.service.server.scheduler.debug.models import EffectiveConfiguration
from berth.service.server.scheduler.debug.shard_endpoints import Describe
from berth.service.server.scheduler.explain import explain_endpoints
from berth.service.server.scheduler.overview import overview_endpoints
from berth.service.server.scheduler.profiling import profiling_endpoints
from berth.service.server.scheduler.simulate import simulate_endpoints
from berth.service.server.scheduler.simulation_process import SimulationProcesses
from berth.service.server.scheduler.snapshot import snapshot_endpoints
from berth.service.server.scheduler.zpages import zpages
from berth.service.shards.description import describe
from berth.service.ui.files import ROOT, Files
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker

SIMULATION_WORKER: Final = (sys.executable, "-m", simulation_worker.__name__)


NO_FLAGS: Final[Mapping[str, str]] = MappingProxyType({})


def scheduler_application(
    service: SchedulerService, *, flags: Mapping[str, str] = NO_FLAGS, serves_page: bool = False
) -> FastAPI:
    """Return all endpoints of *service*; to be served on the event loop that runs it.

    *flags* are those that the process was started with, for /flagz. With *serves_page* the page is
    beside them.
    """
    application = Application(about=PAGE if serves_page else NO_PAGE)
    explainer = Explainer(service.view)
    take = LiveSnapshots(service.core, service.view.pods).take_in_turns
    policies = LivePolicies(service.client, clock=service.clock).read
    routers = [
        health_endpoints(_probes(service)),
        zpages(
            configuration=service.current_config,
            flags=flags,
            paths=lambda: sorted(application.paths),
            clock=service.clock,
            effective=service.version,
            gates=service.gates,
        ),
        explain_endpoints(explainer, why_missing=MissingPods(service.client).why),
        debug_endpoints(_debugged(service, explainer)),
        overview_endpoints(service.overview),
        snapshot_endpoints(take, is_synced=lambda: service.is_synced, policies=policies),
        simulate_endpoints(
            take,
            SimulationProcesses(SIMULATION_WORKER, more=lambda: service.plugins.as_flags).simulate,
            is_synced=lambda: service.is_synced,
            policies=policies,
        ),
        _metrics(service),
    ]
    if service.current_config().enable_profiling:
        routers.append(profiling_endpoints(set_verbosity=set_verbosity))
    for router in routers:
        application.include_router(router)
    ResponseModel.build_all()
    if serves_page:
        page = Files()
        application.router.routes += [Route(path, page) for path in (ROOT, f"{ROOT}/{{file:path}}")]
        application.paths.add(f"{ROOT}/")
    return application


def extender_port_application(service: SchedulerService, *, max_body_bytes: int) -> FastAPI:
    """Return what the extender port serves. Make one only: it registers metrics."""
    endpoints = ExtenderEndpoints(
        service.extender_service.verbs,
        is_ready=lambda: service.is_synced,
        metrics=ExtenderServerMetrics(service.registry),
        clock=service.clock,
        max_body_bytes=max_body_bytes,
    )
    return extender_application(
        endpoints.router(),
        _metrics(service),
        probes=extender_probes(
            is_synced=lambda: service.is_synced,
            is_terminating=lambda: service.is_terminating,
        ),
    )


def _metrics(service: SchedulerService) -> APIRouter:
    """Return what Prometheus reads of *service*."""
    return metrics_endpoints(
        service.registry,
        pods=service.pods.store.values,
        is_leading=lambda: service.is_leading,
        reset=service.metrics.reset,
        clock=service.clock,
    )


def _probes(service: SchedulerService) -> Probes:
    return scheduler_probes(
        elects=service.elector is not None,
        is_synced=lambda: service.is_synced,
        is_terminating=lambda: service.is_terminating,
        progress=SchedulingProgress(
            is_busy=lambda: (
                service.is_synced
                and service.is_leading
                and service.scheduler.binding_cycle.has_room
                and service.queue.sub_queues.pending_counts()["active"] > 0
            ),
            mark=lambda: service.scheduler.decisions.made,
            clock=service.clock,
        ),
        watches=service.staleness,
    )


def _shards(service: SchedulerService) -> Describe | None:
    if service.keeper is None or service.shard_parts is None:
        return None
    return partial(describe, service.keeper, service.shard_parts, service.pods.store)


def _debugged(service: SchedulerService, explainer: Explainer) -> DebugState:
    return DebugState(
        view=service.view,
        explainer=explainer,
        comparison=ClusterComparison(
            service.client,
            service.cache,
            clock=service.clock,
        ),
        shadow=service.shadow,
        shards=_shards(service),
        devices=devices_of(service.core),
        configuration=configuration_of(service.core, lambda: service.plugins),
        reflectors=service.watches.reflectors,
        is_ready=lambda: service.is_synced,
    )


def devices_of(core: SchedulerCore) -> Devices:
    """Return where the devices are that *core* knows."""
    listers = core.outside.listers
    has_taint_rules = DRA_DEVICE_TAINT_RULES in features_of(core.live.current)
    return Devices(
        slices=lambda: (
            resource_slice_tracker(listers) if has_taint_rules else listers.resource_slices
        ),
        claims=lambda: listers.shared(ResourceClaimTracker),
    )


def configuration_of(
    core: SchedulerCore, plugins: Callable[[], KnownPlugins]
) -> Callable[[], EffectiveConfiguration]:
    """Return what tells the configuration of *core*, which may have *plugins*."""
    configurations = Configurations()
    return lambda: configurations.effective(
        core.live.current,
        plugins().registry,
        generation=core.live.generation,
        loaded_at=core.live.loaded_at,
    )
