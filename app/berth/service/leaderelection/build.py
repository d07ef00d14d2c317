"""Makes the elector that a configuration asks for, or the membership of one of several shards."""

import asyncio
import random
import socket
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock, cpu_time_of_this_thread
from berth.runtime.loop_thread import LoopThread, call_soon
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.metrics.recorders import LeaderMetrics
from berth.scheduler.shards.assignment import for_pool
from berth.scheduler.shards.slots import Slots
from berth.service.leaderelection.candidate import Timing
from berth.service.leaderelection.elector import LeaderElector
from berth.service.leaderelection.lease_lock import LeaseLock
from berth.service.leaderelection.membership import Membership, member_lease


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
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    metrics = LeaderMetrics(config.leader_election.resource_name, registry)
    return _elector(
        client,
        config,
        name=config.leader_election.resource_name,
        identity=identity,
        clock=clock,
        rng=rng,
        thread=thread,
        on_master=metrics.on_master,
        on_slow_path=metrics.on_slow_path,
    )


def make_membership(
    client: ApiClient,
    config: KubeSchedulerConfiguration,
    *,
    slots: Slots,
    pool: str = "",
    registry: CollectorRegistry,
    clock: Clock,
    rng: random.Random,
    thread: LoopThread | None = None,
) -> Membership:
    """Make what :func:`make_elector` makes for one of several replicas that schedule at once.

    With a *pool* of *slots* it is to hold the slot of that alone.
    """
    election = config.leader_election
    identity = f"{socket.gethostname().lower()}-{uuid.uuid4().hex[:8]}"
    if pool:
        identity = for_pool(identity, slots.pools.index(pool))
    metrics = LeaderMetrics(election.resource_name, registry)
    elector = partial(_elector, client, config, clock=clock, rng=rng, thread=thread)
    membership = Membership(identity)
    membership.mode = elector(
        name=election.resource_name,
        identity=slots.mode,
        gives_back=lambda: False,
        on_master=metrics.on_master,
        on_slow_path=metrics.on_slow_path,
    )
    membership.member = elector(
        name=member_lease(election.resource_name, identity),
        identity=identity,
        gives_back=lambda: membership.has_left,
        recreates=False,  # whoever deletes it has expelled us
    )
    return membership


def _elector(
    client: ApiClient,
    config: KubeSchedulerConfiguration,
    *,
    name: str,
    identity: str,
    clock: Clock,
    rng: random.Random,
    thread: LoopThread | None,
    on_master: Callable[[bool], None] = lambda _leads: None,
    on_slow_path: Callable[[], None] = lambda: None,
    gives_back: Callable[[], bool] = lambda: True,
    recreates: bool = True,
) -> LeaderElector:
    timing = Timing.of(config.leader_election)
    lock = LeaseLock(
        client,
        namespace=config.leader_election.resource_namespace,
        name=name,
        component=config.profiles[0].scheduler_name,
        clock=clock,
    )
    elector = partial(
        LeaderElector,
        lock,
        identity=identity,
        timing=timing,
        clock=clock,
        rng=rng,
        thread=thread,
        gives_back=gives_back,
        recreates=recreates,
    )
    if thread is None:
        return elector(on_master=on_master, on_slow_path=on_slow_path)
    loop, cpu = asyncio.get_running_loop(), cpu_time_of_this_thread()
    return elector(
        on_master=partial(call_soon, loop, on_master),
        on_slow_path=partial(call_soon, loop, on_slow_path),
        why_unfit=LoopWatch(loop, timing=timing, clock=clock, cpu=cpu).why_stuck,
    )


# The watch over the scheduling event loop, from the thread that renews the lease.


MOST_COMPUTED: Final = 1.0
MOST_BLOCKED: Final = 4.0
"""In lease durations: how much CPU time one turn of the loop may take, and how long it may last.

A process that gets a twentieth of a core is late, but its turns take no more CPU time than others.
"""


class LoopWatch:
    """Watches *loop*, whose thread has taken *cpu* seconds of CPU time so far."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        timing: Timing,
        clock: Clock,
        cpu: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._timing = timing
        self._clock = clock
        self._cpu = cpu
        self._has_turned = True
        self._cpu_before = 0.0
        self._asked_at = 0.0
        self._waited = 0.0

    def why_stuck(self) -> str:
        """Return what is wrong with the loop, "" if nothing is; to be asked every retry period."""
        now = self._clock.monotonic()
        if self._has_turned:
            self._has_turned = False
            self._cpu_before, self._asked_at, self._waited = self._cpu(), now, 0.0
            call_soon(self._loop, self._turned)
            return ""
        # as in the watchdog, the time in which this process stood still does not count
        self._waited += min(now - self._asked_at, 2 * self._timing.retry_period)
        self._asked_at = now
        computed = self._cpu() - self._cpu_before
        if computed > MOST_COMPUTED * self._timing.lease_seconds:
            return f"the event loop has computed for {computed:.0f} s without a turn"
        if self._waited > MOST_BLOCKED * self._timing.lease_seconds:
            return f"the event loop has not turned for {self._waited:.0f} s"
        return ""

    def _turned(self) -> None:
        self._has_turned = True
