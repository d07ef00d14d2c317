"""The cluster that a scenario runs on: all parts in one process, without sockets between them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec

from berth.cluster.access.users import ADMIN, KUBELETS, SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.insight.recording.writer import RecordingWriter
from berth.kube.client.api import Api
from berth.kube.client.errors import NotFoundError
from berth.runtime.clock import Clock
from berth.runtime.tasks import Start, background
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth.tools.autoscaler.autoscaler import ClusterAutoscaler
from berth.tools.autoscaler.node_groups import NodeGroups
from berth.tools.autoscaler.planning_thread import InTurn
from berth.tools.up.autoscaling import cluster_autoscaler
from berth.tools.up.scenario.actions import NodeGroup

NewRecording = Callable[[], RecordingWriter | None]
"""Makes what the steps of a scheduler are told to; None: they are not recorded."""

LOOK_SECONDS = 0.1
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
"""Made by a controller; pods need it."""


class Simulation:
    """A running cluster. Made by :func:`running`."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        config: KubeSchedulerConfiguration,
        *,
        kubelets: Settings,
        groups: NodeGroups,
        plugins: KnownPlugins,
        clock: Clock,
        rng: random.Random,
        start: Start,
        new_recording: NewRecording,
    ) -> None:
        """*start* begins what runs until the end."""
        self.api = cluster.in_process("berth-scenario", user=ADMIN)
        self.clock = clock
        self.scheduler: SchedulerService | None = None
        """The one that runs; None while none does."""
        self._cluster = cluster
        self._config = config
        self._plugins = plugins
        self._rng = rng
        self._start = start
        self._new_recording = new_recording
        self._is_autoscaling = False
        """Whether the machines that node groups begin with have been started."""
        self._scheduling: list[asyncio.Task[None]] = []
        self._kubelets = HollowKubelets(
            cluster.in_process("kubelet", user=KUBELETS),
            kubelets,
            clock=clock,
            rng=rng,
        )
        cluster.add_containers(self._kubelets.containers)
        self._autoscaler = None
        if groups:
            self._autoscaler = cluster_autoscaler(
                cluster,
                self._running_scheduler,
                groups,
                self._kubelets,
                clock=clock,
                rng=rng,
                beside=InTurn(),
            )
        self._start("controllers", cluster.run_controllers)
        self._start("kubelets", self._kubelets.run)

    async def start_scheduler(self) -> None:
        """Start a scheduler, with an empty memory, unless one runs; and what asks it."""
        if self.scheduler is not None:
            return
        api = self._cluster.in_process("berth-scheduler", user=SCHEDULER)
        self.scheduler = SchedulerService(
            api,
            self._config,
            clock=self.clock,
            rng=self._rng,
            plugins=self._plugins,
            recording=self._new_recording(),
        )
        self._scheduling.append(self._start("scheduler", self.scheduler.run))
        if self._autoscaler is not None:
            if not self._is_autoscaling:
                await self._autoscaler.restore()
                self._is_autoscaling = True
            run = partial(self._autoscale, self._autoscaler)
            self._scheduling.append(self._start("autoscaler", run))

    async def _autoscale(self, autoscaler: ClusterAutoscaler) -> None:
        while not self._running_scheduler().is_synced:
            await self.clock.sleep(LOOK_SECONDS)
        await autoscaler.run()

    def _running_scheduler(self) -> SchedulerService:
        if self.scheduler is None:
            raise RuntimeError("no scheduler runs")
        return self.scheduler

    async def stop_scheduler(self) -> None:
        """Kill the scheduler: what it has begun stays as it is."""
        ending, self._scheduling, self.scheduler = self._scheduling, [], None
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def configure_scheduler(self, config: KubeSchedulerConfiguration) -> None:
        """Have the scheduler, and those to come, schedule by *config*. Raises ConfigError."""
        if self.scheduler is not None:
            self.scheduler.reconfigure(config)
        self._config = config

    async def add_nodes(self, group: NodeGroup) -> None:
        """Start machines, and return when their nodes are ready."""
        for index, name in enumerate(group.names):
            self._kubelets.add_node(_template(group, index), name)
        await self._kubelets.ready.wait()

    async def remove_node(self, name: str) -> None:
        """Take a machine away, and delete its Node."""
        self._kubelets.remove_node(name)
        with suppress(NotFoundError):
            await self.api.request("DELETE", f"/api/v1/nodes/{name}")

    async def until_there(self, path: str) -> None:
        """Return when there is an object at *path*."""
        while not await _is_there(self.api, path):
            await self.clock.sleep(LOOK_SECONDS)


@asynccontextmanager
async def running(
    cluster: EmbeddedCluster,
    config: KubeSchedulerConfiguration,
    nodes: tuple[NodeGroup, ...],
    *,
    kubelets: Settings,
    groups: NodeGroups,
    plugins: KnownPlugins,
    clock: Clock,
    rng: random.Random,
    new_recording: NewRecording = lambda: None,
) -> AsyncIterator[Simulation]:
    """Run controllers, kubelets and a scheduler on *cluster*, which was started, for the block.

    It begins when *nodes* are ready and pods can be created.
    """
    async with background() as start:
        simulation = Simulation(
            cluster,
            config,
            kubelets=kubelets,
            groups=groups,
            plugins=plugins,
            clock=clock,
            rng=rng,
            start=start,
            new_recording=new_recording,
        )
        for group in nodes:
            await simulation.add_nodes(group)
        await simulation.until_there(ACCOUNT)
        await simulation.start_scheduler()
        yield simulation


async def _is_there(api: Api, path: str) -> bool:
    try:
        msgspec.json.decode(await api.request("GET", path))
    except NotFoundError:
        return False
    return True


def _template(group: NodeGroup, index: int) -> NodeTemplate:
    labels = dict(group.labels)
    if group.zones:
        labels.setdefault("topology.kubernetes.io/zone", f"zone-{index % group.zones + 1}")
    return NodeTemplate(
        resources=group.allocatable, zones=0, labels=labels, taints=tuple(group.taints)
    )
