"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from berth import log as logs
from berth.client.api_client import ApiClient
from berth.client.connect import connect
from berth.clock import BootClock, RealClock
from berth.commands import extender_serving, plugin_flags, version
from berth.commands.extender_serving import ExtenderPort, Serving
from berth.commands.reloading import run_by_file
from berth.commands.serving import securely_serving
from berth.commands.terminal import in_loop, naming_file
from berth.config import flags
from berth.config.configz import to_yaml
from berth.config.feature_gates import effective_gates
from berth.config.options import Options
from berth.config.types import KubeSchedulerConfiguration
from berth.endpoints import extender_port_application, scheduler_application
from berth.files import write_file
from berth.leaderelection.build import make_elector
from berth.leaderelection.elector import LeadershipLostError
from berth.main import SchedulerService
from berth.metrics.selection import Selection
from berth.plugin_sources import KnownPlugins
from berth.release import version as version_of
from berth.server.access.secure_serving import SecureServer
from berth.server.scheduler.zpages import flag_values
from berth.tasks import forever
from berth.termination import exit_when_continued, until_terminated

log = logging.getLogger(__name__)

EXTENDER: Final = "extender-"
"""How the flags of the extender port begin."""


def main(argv: Sequence[str]) -> int:
    parser = flags.make_parser("berth run")
    extender_serving.add_flags(parser, prefix=EXTENDER, default=None)
    plugin_flags.add_flags(parser)
    plugin_flags.add_preset_flag(parser)
    parser.add_argument(
        "--no-scheduling", action="store_true",
        help="Schedule nothing, write nothing, elect no leader: only answer what is asked, such as"
        " /simulate.",
    )  # fmt: skip
    options = flags.parse(parser, argv)
    given = parser.parse_args(flags.spelled(argv))
    extender = extender_serving.serving(given, prefix=EXTENDER)
    if options.version != "false":
        return version.main(("--raw",) if options.version == "raw" else ())
    logs.setup_by_flags(
        options.v,
        format=options.logging_format,
        vmodule=options.vmodule,
        split_stream=options.log_text_split_stream or options.log_json_split_stream,
    )
    if options.config and options.kubeconfig:
        log.warning(  # as with kube-scheduler, which says nothing
            "--kubeconfig is ignored beside --config; its clientConnection.kubeconfig counts",
            extra={"config": options.config, "kubeconfig": options.kubeconfig},
        )
    find_plugins = partial(plugin_flags.known_plugins, given)
    config, plugins = plugin_flags.configuration(
        options, find_plugins(), chosen_preset=given.preset
    )
    if options.write_config_to:
        with naming_file("--write-config-to", options.write_config_to):
            write_file(Path(options.write_config_to), to_yaml(config))
        return 0
    return in_loop(
        serve(
            options,
            config,
            plugins,
            extender=extender,
            find_plugins=find_plugins,
            schedules=not given.no_scheduling,
        )
    )


async def serve(
    options: Options,
    config: KubeSchedulerConfiguration,
    plugins: KnownPlugins,
    *,
    extender: Serving,
    find_plugins: Callable[[], KnownPlugins],
    schedules: bool = True,
) -> int:
    """Schedule until a signal or the loss of the lease; return the exit status (spec §7.4).

    What the scheduler has to say is served all the time, also while it does not lead. The status is
    0 when a signal ended it and the lease was given back; 1 when the lease was lost, and, as with
    kube-scheduler, whenever it ends without leader election. Without *schedules* nothing but the
    answering is done, and nobody is elected.
    """
    status = 0
    async with AsyncExitStack() as cleanup:
        client = await _connect(options, config, purpose="scheduler")
        cleanup.push_async_callback(client.close)
        elector, lease_client = None, None
        rng = random.Random()
        registry = _registry(options)
        if schedules and config.leader_election.leader_elect:
            # A client of its own, so that renewals do not wait with the binds for the rate limit.
            lease_client = await _connect(options, config, purpose="leader-election")
            cleanup.push_async_callback(lease_client.close)
            lease_client.contact = client.contact  # a renewal tells the watches of the server
            elector = make_elector(
                lease_client, config, registry=registry, clock=BootClock(), rng=rng
            )
            exit_when_continued(elector.is_overdue)
        service = SchedulerService(
            client,
            config,
            clock=RealClock(),
            rng=rng,
            elector=elector,
            registry=registry,
            gates=effective_gates(options.feature_gates),
            max_in_unschedulable=options.pod_max_in_unschedulable_pods_duration.seconds,
            plugins=plugins,
            schedules=schedules,
        )
        if lease_client is not None:
            lease_client.observer = service.metrics.requests
        application = scheduler_application(service, flags=flag_values(options))
        server = await cleanup.enter_async_context(securely_serving(application, options, config))
        if server is not None:
            service.add_server("secure", server)
        extender_port = None
        if extender.port is not None:
            # A client of its own: whoever comes with a wrong token must not hold up the binds.
            reviews = await _connect(options, config, purpose="reviews")
            cleanup.push_async_callback(reviews.close)
            extender_port = await cleanup.enter_async_context(
                extender_serving.listening(
                    extender,
                    extender_port_application(service, max_body_bytes=extender.max_body_bytes),
                    prefix=EXTENDER,
                    reviews=reviews,
                    clock=RealClock(),
                )
            )
            service.add_server("extender", extender_port)
        try:
            await until_terminated(
                _run(service, options, server, extender_port, find_plugins),
                on_request=service.begin_termination,
            )
        except* LeadershipLostError as lost:
            log.error("leader election lost", extra={"error": str(_first(lost))})
            status = 1
    if schedules and elector is None:
        log.error("finished without leader elect")
        status = 1
    return status


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


async def _run(
    service: SchedulerService,
    options: Options,
    server: SecureServer | None,
    extender_port: ExtenderPort | None,
    find_plugins: Callable[[], KnownPlugins],
) -> None:
    """Run *service* and the servers that there are."""
    async with asyncio.TaskGroup() as tasks:
        if extender_port is not None:
            for name, run in (
                ("extender port", extender_port.run),
                ("extender server", service.extender_service.run),
            ):
                tasks.create_task(forever(name, run), name=name)
        if server is not None:
            tasks.create_task(forever("secure server", server.run), name="secure server")
        await run_by_file(service.run, service, options, find_plugins=find_plugins)


def _registry(options: Options) -> CollectorRegistry:
    manifest = options.allow_metric_labels_manifest
    return Selection.by_flags(
        disabled=options.disabled_metrics,
        allow_labels=options.allow_metric_labels,
        manifest=_content("--allow-metric-labels-manifest", manifest) if manifest else None,
    )


def _content(flag: str, path: str) -> bytes:
    with naming_file(flag, path):
        return Path(path).read_bytes()


async def _connect(
    options: Options, config: KubeSchedulerConfiguration, *, purpose: str
) -> ApiClient:
    connection = config.client_connection
    return await connect(
        kubeconfig=connection.kubeconfig or None,
        master=options.master or None,
        qps=connection.qps,
        burst=connection.burst,
        user_agent=f"berth/{version_of()} {purpose}",
    )
