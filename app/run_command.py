"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib.metadata import version

from prometheus_client import CollectorRegistry

from app.client.api_client import ApiClient
from app.client.connect import connect
from app.clock import BootClock, RealClock
from app.config.options import Options
from app.config.types import KubeSchedulerConfiguration
from app.leaderelection.elector import LeadershipLostError
from app.main import SchedulerService, make_elector
from app.termination import exit_when_continued, until_terminated

log = logging.getLogger(__name__)


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
        user_agent=f"berth/{version('berth')} {purpose}",
    )
