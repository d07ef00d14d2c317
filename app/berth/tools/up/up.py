"""``berth up``: embedded cluster, hollow nodes and scheduler in one process, with a workload."""

import asyncio
import random
import resource
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from berth.cluster.access.users import ADMIN, KUBELETS, SCHEDULER, User
from berth.cluster.bootstrap import default_storage_class
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool
from berth.cluster.kubelet.stages.types import Stages
from berth.cluster.loading import DEFAULT_NAMESPACE, Loader, Refused
from berth.cluster.sources import Gathered
from berth.insight.recording.writer import RecordingWriter
from berth.kube import manifests
from berth.kube.client.api import Api
from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.runtime.tables import Screen, shown_live
from berth.runtime.tasks import forever
from berth.runtime.terminal import typed
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.framework.words import counted
from berth.scheduler.profile.build import kinds_of_plugins
from berth.scheduler.queue.sub_queues import SubQueue
from berth.service.deferred_application import DeferredApplication
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth.service.ui.local_page import local_page
from berth.tools.up.access_rights import listed_to_explain, read_by_plugins
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.progress import Observer, Progress, ProgressNews, count_states
from berth.tools.up.scheduler_port import scheduler_port
from berth.tools.up.verify import Verification, verify
from berth.tools.up.view import render

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from berth.tools.autoscaler.autoscaler import ClusterAutoscaler
    from berth.tools.autoscaler.node_groups import NodeGroups

# Shows the progress of ``berth up``: live on a terminal, else line by line.


LINES_EVERY: Final = 8
"""Without a terminal, what changed is written every so many looks."""

Title = Callable[[], Sequence[str]]


class Display:
    """Made by :func:`display`."""

    def __init__(self, screen: Screen | None, *, title: Title, say: Callable[[str], None]) -> None:
        self._screen = screen
        self._title = title
        self._say = say
        self._told = ProgressNews()
        self._looks = 0
        self._last: Progress | None = None

    @property
    def rows(self) -> int:
        """How many lines there is room for; 0 without a terminal."""
        return self._screen.height if self._screen else 0

    def show(self, progress: Progress) -> None:
        """Show the next look."""
        if self._screen is not None:
            width, height = self._screen.width, self._screen.height
            self._screen.show(render(progress, title=self._title(), width=width, height=height))
        elif self._looks % LINES_EVERY == 0:
            self._write(progress)
        self._looks += 1
        self._last = progress

    def finish(self) -> None:
        """Without a terminal, write what changed since the last line."""
        if self._screen is None and self._last is not None:
            self._write(self._last)

    def _write(self, progress: Progress) -> None:
        for line in self._told.lines(progress):
            self._say(line)


@contextmanager
def display(*, title: Title, say: Callable[[str], None]) -> Iterator[Display]:
    """Yield a display on standard output; *say* prints a line where that is no terminal.

    *title* is asked for the first lines at each look.
    """
    with shown_live() as screen:
        made = Display(screen, title=title, say=say)
        yield made
    made.finish()


LOOK_INTERVAL: Final = 0.25
"""Seconds between two looks at the progress, at least."""
LOOK_SHARE: Final = 0.02
"""Of the time, what looking may take: with 50,000 pods one look takes 20 ms."""
LONGEST_LOOK_INTERVAL: Final = 2.0
"""Seconds between two looks, at most, where others take longer than looking."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What to start, and when to stop."""

    pools: Sequence[NodePool] = ()
    """The nodes there are from the beginning."""
    stages: Stages = field(default_factory=Stages)
    """How pods live."""
    configuration: KubeletConfiguration = field(default_factory=KubeletConfiguration)
    """Of the nodes."""
    node_groups: "NodeGroups | None" = None
    """Further nodes, which come and go as pods need them."""
    load: Gathered = field(default_factory=Gathered)
    namespace: str = DEFAULT_NAMESPACE
    """Of the objects to load that do not say theirs."""
    sample: bool = False
    port: int = 0
    """0: any free one."""
    debug_port: int = 0
    """Where the scheduler answers questions; any free port if it is taken."""
    ui_port: int = 0
    """Where the page is; any free port if it is taken."""
    kubeconfig: KubeconfigOut = field(default_factory=KubeconfigOut)
    exit_when_idle: bool = False


class Up:
    """One run of ``berth up``, on *cluster*. *say* prints a line for people.

    *plugins* are those that *config* may enable; the in-tree ones by default. *schedule* runs the
    scheduler until it is cancelled, and reloads files meanwhile. Its steps are told to *recording*.
    """

    def __init__(
        self,
        options: UpOptions,
        config: KubeSchedulerConfiguration,
        cluster: EmbeddedCluster,
        *,
        plugins: KnownPlugins | None = None,
        schedule: Callable[[SchedulerService], Awaitable[None]] = SchedulerService.run,
        recording: RecordingWriter | None = None,
        clock: Clock,
        rng: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._options = options
        self._config = config
        self._cluster = cluster
        self._plugins = plugins
        self._schedule = schedule
        self._recording = recording
        self._clock = clock
        self._rng = rng
        self._say = say

    async def run(self) -> int:
        """Run until interrupted, or until idle if so asked; return the exit status.

        With exit_when_idle 0 means: every pod without a scheduling gate has a node, and no node has
        more than it can take; else 1. A pod that was refused has no node, nor have those of a
        refused workload, or of a file that could not be read. Other objects do not matter.
        Raises JournalError when the cluster cannot be kept.
        """
        return await self._cluster.while_kept(self._run())

    async def _run(self) -> int:
        cluster, clock, rng = self._cluster, self._clock, self._rng
        async with AsyncExitStack() as cleanup:

            async def connect(user_agent: str, user: User = ADMIN) -> ApiClient:
                client = await cluster.connect(user_agent, user=user)
                cleanup.push_async_callback(client.close)
                return client

            groups = self._options.node_groups
            registry = (self._plugins or KnownPlugins()).registry
            rights = read_by_plugins(kinds_of_plugins(self._config, registry))
            if groups:
                from berth.tools.up import autoscaling  # here: it takes 0.1 s to load

                rights += autoscaling.access_rights()
            objects = [default_storage_class(), *listed_to_explain(), *rights]
            await cluster.start(self._options.port, objects=objects)
            cleanup.push_async_callback(cluster.stop)
            client = await connect("berth-up")
            service = SchedulerService(
                await connect("berth-scheduler", SCHEDULER),
                self._config,
                clock=clock,
                rng=rng,
                plugins=self._plugins,
                recording=self._recording,
            )
            endpoints = DeferredApplication(lambda: _application(service))
            port = await cleanup.enter_async_context(
                scheduler_port(
                    endpoints,
                    cluster,
                    port=self._options.debug_port,
                    clock=clock,
                    say=self._say,
                )
            )
            flags = cleanup.enter_context(
                self._options.kubeconfig.written(cluster, scheduler=port.url)
            )
            self._say(f"API server at {cluster.url}; try: kubectl {flags} get pods -A")
            self._say(cluster.how_kept)
            self._say(f"scheduler at {port.url}; try: {typed('explain')} {flags} POD")
            page = await cleanup.enter_async_context(
                local_page(endpoints, port=self._options.ui_port, program="berth up", say=self._say)
            )
            service.add_server("secure", port)

            def title() -> Sequence[str]:
                """Return what one needs at any time, and what lines above would scroll away."""
                return (f"berth up  {cluster.url}  {flags}", f"page  {page.link}")

            kubelets = HollowKubelets(
                cluster.in_process("kubelet", user=KUBELETS),
                Settings(
                    self._options.pools,
                    stages=self._options.stages,
                    configuration=self._options.configuration,
                    features=cluster.features,
                    release=cluster.release,
                ),
                clock=clock,
                rng=rng,
            )
            cluster.add_containers(kubelets.containers)
            autoscaler = None
            if groups:
                autoscaler = autoscaling.cluster_autoscaler(
                    cluster, lambda: service, groups, kubelets, clock=clock, rng=rng
                )
                await autoscaler.restore()
            loader = Loader(
                client,
                clock=clock,
                say=self._say,
                namespace=self._options.namespace,
                is_kept=cluster.is_restored,
            )
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(forever(name, run), name=name)
                    for name, run in (
                        ("controllers", cluster.run_controllers),
                        ("kubelets", kubelets.run),
                        ("scheduler", partial(self._schedule, service)),
                        ("scheduler's endpoints", port.run),
                        ("page", page.server.run),
                    )
                ]
                loading = tasks.create_task(
                    self._load(loader, client, kubelets), name="load manifests"
                )
                background.append(loading)
                if autoscaler is not None:
                    name = "autoscaler"
                    run = partial(self._autoscale, service, autoscaler)
                    background.append(tasks.create_task(forever(name, run), name=name))
                await self._watch(service, client, loading, title, autoscaler)
                verification = await verify(client)
                self._summary(service, loader.refused, verification)
                for task in background:
                    task.cancel()
        return 0 if verification.is_good and not loader.refused.lacks_pods else 1

    async def _load(self, loader: Loader, client: ApiClient, kubelets: HollowKubelets) -> None:
        await kubelets.ready.wait()
        if self._options.sample:
            names = [name for pool in self._options.pools for name in pool.names()]
            await load_sample(loader, client, nodes=names)
        await loader.load(self._options.load)

    async def _autoscale(self, service: SchedulerService, autoscaler: "ClusterAutoscaler") -> None:
        """Begin when the scheduler knows the cluster, which it is asked about."""
        while not service.is_synced:
            await self._clock.sleep(LOOK_INTERVAL)
        await autoscaler.run()

    async def _watch(
        self,
        service: SchedulerService,
        client: ApiClient,
        loading: asyncio.Task[None],
        title: Title,
        autoscaler: "ClusterAutoscaler | None",
    ) -> None:
        """Show progress until idle, for ever if not asked to exit then."""
        observer = Observer(service.view)
        idleness = Idleness(service, client)
        with display(title=title, say=self._say) as shown:
            pause = LOOK_INTERVAL
            while not idleness.is_reached:
                await self._clock.sleep(pause)
                started = self._clock.monotonic()
                states = await count_states(service.pods.store.values())
                progress = self._look(observer, service, states, nodes=shown.rows)
                waiting = service.queue.sub_queues.pods(SubQueue.UNSCHEDULABLE)
                if autoscaler is not None:
                    progress = replace(progress, node_groups=autoscaler.sizes())
                shown.show(progress)
                took = self._clock.monotonic() - started
                pause = min(max(LOOK_INTERVAL, took / LOOK_SHARE), LONGEST_LOOK_INTERVAL)
                settled = autoscaler is None or autoscaler.settled_for(
                    [queued.key for queued in waiting]
                )
                if self._options.exit_when_idle and loading.done() and settled:
                    await idleness.look(progress)

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._say(line)

    def _look(
        self, observer: Observer, service: SchedulerService, states: Counter[str], *, nodes: int
    ) -> Progress:
        """Look at the scheduler, and at the *nodes* that are fullest."""
        reasons: dict[str, str] = {}
        for waiting in (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF):
            for queued in service.queue.sub_queues.pods(waiting):
                current = service.pods.store.get(queued.key, queued.pod)
                for condition in current.status.conditions:
                    if condition.type == "PodScheduled" and condition.message:
                        reasons[queued.key] = condition.message
        return observer.look(
            states,
            scheduled=service.scheduler.binding_cycle.scheduled,
            reasons=reasons,
            most_nodes=nodes,
            now=self._clock.monotonic(),
        )

    def _summary(
        self, service: SchedulerService, refused: Refused, verification: Verification
    ) -> None:
        binding = service.scheduler.binding_cycle
        took = binding.last_bound_at - binding.first_bound_at
        rate = f"{(binding.scheduled - 1) / took:.0f} pods/s" if took > 0 else "at once"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        bound = counted(binding.scheduled, "pod")
        self._say(f"{bound} bound in {took:.1f} s ({rate}), peak {peak:.0f} MiB")
        self._say_all([*refused.lines(), *verification.lines()])


def _application(service: SchedulerService) -> "ASGIApp":
    from berth.service.applications import scheduler_application  # here: it takes 0.5 s to load

    return scheduler_application(service)


# Idleness of a cluster: ``berth up --exit-when-idle``.


QUIET_LOOKS: Final = 3
"""Idle for so many looks in a row: idle."""


class Idleness:
    """Tells when the scheduler and the controllers have nothing left to do."""

    def __init__(self, service: SchedulerService, client: Api) -> None:
        self._service = service
        self._client = client
        self._quiet_looks = 0

    @property
    def is_reached(self) -> bool:
        return self._quiet_looks >= QUIET_LOOKS

    async def look(self, progress: Progress) -> None:
        """Look once more, after what *progress* saw."""
        is_quiet = (
            self._service.is_idle
            and not progress.states["starting"]
            and not progress.states["stopping"]
            and await controllers_are_done(self._client)
        )
        self._quiet_looks = self._quiet_looks + 1 if is_quiet else 0


class _Workload(msgspec.Struct):
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class _Workloads(msgspec.Struct):
    items: list[_Workload] = []


async def controllers_are_done(client: Api) -> bool:
    """Whether everything that makes pods all at once has as many as it should.

    A StatefulSet may wait for ever with its second pod until the first has a node.
    """
    for path in (
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/replicasets",
        "/api/v1/replicationcontrollers",
    ):
        answer = msgspec.json.decode(await client.request("GET", path), type=_Workloads)
        for workload in answer.items:
            status, wanted = workload.status, workload.spec.get("replicas", 1)
            if status.get("observedGeneration", 0) < workload.metadata.get("generation", 1):
                return False
            if status.get("replicas", 0) != wanted:
                return False
    return True


# The sample workload of ``berth up --sample``, and the GPU nodes that it needs.


GPU_NODES: Final = 3


async def load_sample(loader: Loader, client: Api, *, nodes: Iterable[str]) -> None:
    """Create the sample workload, and keep the last few of *nodes* for its GPU pods."""
    for name in list(nodes)[-GPU_NODES:]:
        await _dedicate(client, name)
    text = files("berth.tools.up").joinpath("sample_workload.yaml").read_text(encoding="utf-8")
    sample = Gathered()
    sample.add("sample", partial(manifests.parse, text, source="sample"))
    await loader.load(sample)


async def _dedicate(client: Api, node: str) -> None:
    """Label and taint a node, as ``kubectl label`` and ``kubectl taint`` would."""
    patch: dict[str, Any] = {
        "metadata": {"labels": {"pool": "gpu"}},
        "spec": {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]},
    }
    await client.request(
        "PATCH",
        f"/api/v1/nodes/{node}",
        body=msgspec.json.encode(patch),
        content_type="application/merge-patch+json",
    )
