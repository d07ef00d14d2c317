"""The process of ``berth run``: the scheduler, alone or as one of several replicas."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from berth.insight.recording.writer import RecordingWriter
from berth.kube.client.from_thread import ContactFromThread, ObserverFromThread
from berth.runtime.clock import BootClock, RealClock
from berth.runtime.loop_thread import LoopThread
from berth.runtime.release import EffectiveVersion
from berth.runtime.terminal import naming_file
from berth.runtime.termination import exit_when_continued
from berth.scheduler.config.feature_gates import version_of
from berth.scheduler.config.options import MetricsOptions, Options
from berth.scheduler.metrics.selection import Selection
from berth.scheduler.shards.slots import Slots
from berth.service.api_connection import ApiConnection
from berth.service.configuration import ConfigurationSource, Loaded
from berth.service.deferred_application import DeferredApplication
from berth.service.extender_port_settings import ExtenderPortSettings
from berth.service.leaderelection.build import make_elector, make_membership
from berth.service.leaderelection.elector import LeaderElector, LeadershipLostError
from berth.service.leaderelection.membership import Membership
from berth.service.running import run_until_terminated
from berth.service.scheduler_service import SchedulerService
from berth.service.shards.checks import check_shards

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)


async def run_scheduler(
    options: Options,
    source: ConfigurationSource,
    loaded: Loaded,
    *,
    extender: ExtenderPortSettings | None,
    schedules: bool = True,
    shadows: bool = False,
    serves_page: bool = False,
    recording: RecordingWriter | None = None,
    shards: Slots | None = None,
    pool: str = "",
) -> int:
    """Schedule until a signal or the loss of the lease; return the exit status (spec §7.4).

    *loaded* is what *source* has now. All endpoints are served all the time, also while this
    process does not lead. The status is 0 when a signal ended it and the lease was released; 1 when
    the lease was lost, and, as with kube-scheduler, whenever it ends without leader election.
    Without *schedules* it only serves, and takes no part in leader election; nor does one that
    *shadows* another scheduler, which writes nothing. With *serves_page* the page is
    beside the endpoints. All steps are told to *recording*, if there is one. With *shards*, all
    replicas schedule at once, and share those slots; with *pool*, this one has the slot of that
    alone. ConfigError if that cannot be.
    """
    config, plugins = loaded
    if shards is not None:
        check_shards(config, is_recorded=recording is not None)
    api = ApiConnection.of(config.client_connection, master=options.master)
    clock, rng, loop = RealClock(), random.Random(), asyncio.get_running_loop()
    status = 0
    async with AsyncExitStack() as cleanup:
        client = await cleanup.enter_async_context(api.client("shadow" if shadows else "scheduler"))
        elector: LeaderElector | Membership | None = None
        lease_client = None
        registry = _registry(options.metrics, version_of(config))
        schedules = schedules and not shadows
        if schedules and config.leader_election.leader_elect:
            # A thread and a client of its own, so that renewals wait neither for this loop nor with
            # the binds for the rate limit.
            thread = cleanup.enter_context(LoopThread("leader election"))
            lease_client = await cleanup.enter_async_context(
                thread.entered(api.client("leader-election"))
            )
            # a renewal shows that the server is back
            lease_client.contact = ContactFromThread(client.contact, loop, clock)
            make = (
                make_elector
                if shards is None
                else partial(make_membership, slots=shards, pool=pool)
            )
            elector = make(
                lease_client,
                config,
                registry=registry,
                clock=BootClock(),
                rng=random.Random(),
                thread=thread,
            )
            exit_when_continued(elector.is_overdue)
        service = SchedulerService(
            client,
            config,
            clock=clock,
            rng=rng,
            elector=elector,
            registry=registry,
            max_in_unschedulable=options.deprecated.pod_max_in_unschedulable_pods_duration.seconds,
            plugins=plugins,
            schedules=schedules,
            shadows=shadows,
            recording=recording,
            shards=shards,
        )
        if lease_client is not None:
            lease_client.observer = ObserverFromThread(service.metrics.requests, loop)
        background: dict[str, Callable[[], Awaitable[None]]] = {}
        if options.secure_serving.secure_port:
            # Here, and below: what serves HTTP takes long to import. `berth run` has done so.
            from berth.service.secure_port import secure_port

            server = await cleanup.enter_async_context(
                secure_port(
                    DeferredApplication(
                        lambda: _application(service, options, serves_page=serves_page)
                    ),
                    api,
                    serving=options.secure_serving,
                    authentication=options.authentication,
                    authorization=options.authorization,
                )
            )
            service.add_server("secure", server)
            background["secure server"] = server.run
        if extender is not None:
            from berth.service.extender_port import extender_port

            port = await cleanup.enter_async_context(
                extender_port(service, extender, api, clock=clock)
            )
            background["extender port"] = port.run
            background["extender server"] = service.extender_service.run
        try:
            run = service.run_shadow if shadows else service.run
            await run_until_terminated(run, service, source, background=background)
        except* LeadershipLostError as lost:
            log.error("leader election lost", extra={"error": str(_first(lost))})
            status = 1
    if schedules and elector is None:
        log.error("finished without leader elect")
        status = 1
    return status


def _application(service: SchedulerService, options: Options, *, serves_page: bool) -> "ASGIApp":
    from berth.service.applications import scheduler_application
    from berth.service.server.scheduler.zpages import flag_values

    flags = flag_values(options)
    return scheduler_application(service, flags=flags, serves_page=serves_page)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _registry(options: MetricsOptions, version: EffectiveVersion) -> CollectorRegistry:
    manifest = options.allow_metric_labels_manifest
    return Selection.by_flags(
        version=version,
        with_hidden=bool(options.show_hidden_metrics_for_version),
        disabled=options.disabled_metrics,
        allow_labels=options.allow_metric_labels,
        manifest=_content("--allow-metric-labels-manifest", manifest) if manifest else None,
    )


def _content(flag: str, path: str) -> bytes:
    with naming_file(flag, path):
        return Path(path).read_bytes()
