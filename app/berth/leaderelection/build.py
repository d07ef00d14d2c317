"""Makes the elector that a configuration asks for."""

import random
import socket
import uuid

from prometheus_client import CollectorRegistry

from berth.client.api_client import ApiClient
from berth.clock import Clock
from berth.config.types import KubeSchedulerConfiguration
from berth.leaderelection.candidate import Timing
from berth.leaderelection.elector import LeaderElector
from berth.leaderelection.lease_lock import LeaseLock
from berth.metrics.recorders import LeaderMetrics


def make_elector(
    client: ApiClient,
    config: KubeSchedulerConfiguration,
    *,
    registry: CollectorRegistry,
    clock: Clock,
    rng: random.Random,
) -> LeaderElector:
    """Make the elector of this process (spec §10); its *client* should be used for nothing else.

    Otherwise renewals would wait behind the scheduler's requests for the rate limit.
    """
    election, timing = config.leader_election, Timing.of(config.leader_election)
    lock = LeaseLock(
        client,
        namespace=election.resource_namespace,
        name=election.resource_name,
        component=config.profiles[0].scheduler_name,
        clock=clock,
    )
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    metrics = LeaderMetrics(election.resource_name, registry)
    return LeaderElector(
        lock,
        identity=identity,
        timing=timing,
        clock=clock,
        rng=rng,
        on_master=metrics.on_master,
        on_slow_path=metrics.on_slow_path,
    )
