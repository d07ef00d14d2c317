"""Makes the elector that a configuration asks for."""

import asyncio
import random
import socket
import uuid
from functools import partial

from prometheus_client import CollectorRegistry

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock, cpu_time_of_this_thread
from berth.runtime.loop_thread import LoopThread, call_soon
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.metrics.recorders import LeaderMetrics
from berth.service.leaderelection.candidate import Timing
from berth.service.leaderelection.elector import LeaderElector
from berth.service.leaderelection.lease_lock import LeaseLock
from berth.service.leaderelection.loop_watch import LoopWatch


def make_elector(
    client: ApiClient,
    config: KubeSchedulerConfiguration,
    *,
    registry: CollectorRegistry,
    clock: Clock,
    rng: random.Random,
    thread: LoopThread | None = None,
) -> LeaderElector:
    """Make the elector of this process (spec §10.2); its *client* should be used for nothing else.

    Otherwise renewals would wait behind the scheduler's requests for the rate limit. With a
    *thread*, in whose loop *client* was made, they do not wait for the loop that this is called in,
    either; unless that is stuck.
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
    elector = partial(
        LeaderElector, lock, identity=identity, timing=timing, clock=clock, rng=rng, thread=thread
    )
    if thread is None:
        return elector(on_master=metrics.on_master, on_slow_path=metrics.on_slow_path)
    loop, cpu = asyncio.get_running_loop(), cpu_time_of_this_thread()
    return elector(
        on_master=partial(call_soon, loop, metrics.on_master),
        on_slow_path=partial(call_soon, loop, metrics.on_slow_path),
        why_unfit=LoopWatch(loop, timing=timing, clock=clock, cpu=cpu).why_stuck,
    )
