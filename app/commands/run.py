"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version as version_of

from prometheus_client import CollectorRegistry

from app import log as logs
from app.client.api_client import ApiClient
from app.client.connect import connect
from app.clock import BootClock, RealClock
from app.commands import version
from app.commands.terminal import in_loop, naming_port, port, say
from app.config import flags
from app.config.options import Options
from app.config.types import KubeSchedulerConfiguration
from app.http_server import LOOPBACK, HttpServer
from app.leaderelection.elector import LeadershipLostError
from app.main import SchedulerService, make_elector
from app.profile.build import args_models
from app.termination import exit_when_continued, until_terminated
from plugins.registry import IN_TREE

log = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    parser = flags.make_parser("berth run")
    parser.add_argument(
        "--debug-port", type=port, metavar="PORT",
        help="Answer berth explain on this port of loopback; 0 for any free one. Default: not.",
    )  # fmt: skip
    options = flags.parse(parser, argv)
    debug_port: int | None = parser.parse_args(flags.spelled(argv)).debug_port
    if options.version != "false":
        return version.main(())
    config = flags.configuration(options, args_models=args_models(IN_TREE))
    logs.setup(logging.DEBUG if options.v >= 4 else logging.INFO)
    return in_loop(
        serve(options, config, answering=lambda service: _answering(service, debug_port))
    )


@asynccontextmanager
async def _answering(service: SchedulerService, port: int | None) -> AsyncIterator[None]:
    """Serve the endpoints of *service* on loopback, if there is a port for it."""
    server = HttpServer(service.application())
    if port is not None:
        with naming_port(port, flag="--debug-port"):
            await server.start(LOOPBACK, port)
        say(f"scheduler at {server.url}")
    try:
        yield
    finally:
        await server.stop()


async def serve(
    options: Options,
    config: KubeSchedulerConfiguration,
    *,
    answering: Callable[[SchedulerService], AbstractAsyncContextManager[None]],
) -> int:
    """Schedule until a signal or the loss of the lease; return the exit status (spec §7.4).

    *answering* serves what the scheduler has to say, also while it does not lead. The status is 0
    when a signal ended it and the lease was given back; 1 when the lease was lost, and, as with
    kube-scheduler, whenever it ends without leader election.
    """
    status = 0
    async with AsyncExitStack() as cleanup:
        client = await _connect(options, config, purpose="scheduler")
        cleanup.push_async_callback(client.close)
        elector, lease_client = None, None
        rng = random.Random()
        registry = CollectorRegistry()
        if config.leader_election.leader_elect:
            # A client of its own, so that renewals do not wait with the binds for the rate limit.
            lease_client = await _connect(options, config, purpose="leader-election")
            cleanup.push_async_callback(lease_client.close)
            elector = make_elector(
                lease_client, config, registry=registry, clock=BootClock(), rng=rng
            )
            exit_when_continued(elector.is_overdue)
        service = SchedulerService(
            client, config, clock=RealClock(), rng=rng, elector=elector, registry=registry
        )
        if lease_client is not None:
            lease_client.observer = service.metrics.requests
        await cleanup.enter_async_context(answering(service))
        try:
            await until_terminated(service.run())
        except* LeadershipLostError as lost:
            log.error("leader election lost", extra={"error": str(lost.exceptions[0])})
            status = 1
    if elector is None:
        log.error("finished without leader elect")
        status = 1
    return status


async def _connect(
    options: Options, config: KubeSchedulerConfiguration, *, purpose: str
) -> ApiClient:
    connection = config.client_connection
    return await connect(
        kubeconfig=connection.kubeconfig or None,
        master=options.master or None,
        qps=connection.qps,
        burst=connection.burst,
        user_agent=f"berth/{version_of('berth')} {purpose}",
    )
