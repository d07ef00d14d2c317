"""``berth up``: embedded cluster, hollow nodes and scheduler in one process, with a workload."""

import asyncio
import logging
import random
import resource
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp

from berth.addresses import LOOPBACK, UP_PORT
from berth.assembly.applications import scheduler_application
from berth.certificates import server_context
from berth.client.api_client import ApiClient
from berth.clock import Clock
from berth.cluster.access.users import KUBELETS, SCHEDULER
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.config.options import DelegatingAuthenticationOptions, DelegatingAuthorizationOptions
from berth.config.types import KubeSchedulerConfiguration
from berth.embedded.cluster import EmbeddedCluster
from berth.embedded.loading import Loader, Refused
from berth.embedded.progress import Observer, Progress, Told
from berth.embedded.verify import Verification, verify
from berth.embedded.view import render
from berth.http_server import HttpServer
from berth.main import SchedulerService
from berth.plugin_sources import KnownPlugins
from berth.queue.sub_queues import SubQueue
from berth.same_machine import SameMachine
from berth.server.access.secure_serving import with_delegated_access
from berth.tables import shown_live
from berth.tasks import forever

log = logging.getLogger(__name__)

SAMPLE_NODES = 20
LOOK_INTERVAL = 0.25
LINES_EVERY = 8
"""Without a terminal, what changed is written every so many looks."""
QUIET_LOOKS = 3
"""Idle for so many looks in a row: idle."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What to start, and when to stop."""

    nodes: int
    template: NodeTemplate = field(default_factory=NodeTemplate)
    load: Sequence[Path] = ()
    sample: bool = False
    port: int = 0
    """0: any free one."""
    debug_port: int = 0
    """Where the scheduler answers questions; any free port if it is taken."""
    kubeconfig: Path = Path("berth.kubeconfig")
    exit_when_idle: bool = False


class Up:
    """One run of ``berth up``, on *cluster*. *say* prints a line for people.

    *plugins* are those that *config* may enable; the in-tree ones by default. *schedule* runs the
    scheduler until it is cancelled; whoever has files to read again meanwhile does so there.
    """

    def __init__(
        self,
        options: UpOptions,
        config: KubeSchedulerConfiguration,
        cluster: EmbeddedCluster,
        *,
        plugins: KnownPlugins | None = None,
        schedule: Callable[[SchedulerService], Awaitable[None]] = SchedulerService.run,
        clock: Clock,
        rng: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._options = options
        self._config = config
        self._cluster = cluster
        self._plugins = plugins
        self._schedule = schedule
        self._clock = clock
        self._rng = rng
        self._say = say
        self._loaded = asyncio.Event()

    async def run(self) -> int:
        """Run until interrupted, or until idle if so asked; return the exit status.

        With exit_when_idle 0 means: every pod without a scheduling gate has a node, and no node has
        more than it can take; else 1. A pod that was refused has no node, nor have those of a
        refused workload, or of a file that could not be read. Other objects do not matter.
        """
        cluster = self._cluster
        async with AsyncExitStack() as cleanup:
            await cluster.start(self._options.port)
            cleanup.push_async_callback(cluster.stop)
            client = await cluster.connect("berth-up")
            cleanup.push_async_callback(client.close)
            scheduler_client = await cluster.connect("berth-scheduler", user=SCHEDULER)
            cleanup.push_async_callback(scheduler_client.close)
            nodes_client = await cluster.connect("berth-kubelets", user=KUBELETS)
            cleanup.push_async_callback(nodes_client.close)

            path = self._options.kubeconfig.absolute()
            cluster.write_kubeconfig(path)
            self._say(f"API server at {cluster.url}; try: kubectl --kubeconfig {path} get pods -A")
            service = SchedulerService(
                scheduler_client,
                self._config,
                clock=self._clock,
                rng=self._rng,
                plugins=self._plugins,
            )
            review_client = await cluster.connect("berth-reviews", user=SCHEDULER)
            cleanup.push_async_callback(review_client.close)
            answering = self._server(scheduler_application(service), review_client)
            cleanup.push_async_callback(answering.stop)
            await self._answer(answering)
            service.add_server("secure", answering)
            kubelets = HollowKubelets(
                nodes_client,
                Settings(self._options.nodes, self._options.template),
                clock=self._clock,
                rng=self._rng,
            )
            loader = Loader(client, say=self._say)
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(forever(name, run), name=name)
                    for name, run in (
                        ("controllers", cluster.run_controllers),
                        ("kubelets", kubelets.run),
                        ("scheduler", partial(self._schedule, service)),
                        ("scheduler's endpoints", answering.run),
                    )
                ]
                background.append(
                    tasks.create_task(self._load(loader, kubelets), name="load manifests")
                )
                await self._watch(service, client)
                verification = await verify(client)
                self._summary(service, loader.refused, verification)
                for task in background:
                    task.cancel()
        return 0 if verification.is_good and not loader.refused.lacks_pods else 1

    def _server(self, application: ASGIApp, reviews: ApiClient) -> HttpServer:
        """Return a server for those whom the cluster's own rules let use it.

        It has the cluster's certificate, so that the kubeconfig is good for both.
        """
        pair = self._cluster.certificate
        if pair is None:
            return HttpServer(SameMachine(application))
        access = with_delegated_access(
            application,
            DelegatingAuthenticationOptions(),
            DelegatingAuthorizationOptions(),
            tokens=reviews,
            permissions=reviews,
            clock=self._clock,
        )
        return HttpServer(access, tls=server_context(pair))

    async def _answer(self, server: HttpServer) -> None:
        """Have the scheduler's endpoints served, and say how to ask them."""
        try:
            await server.start(LOOPBACK, self._options.debug_port)
        except OSError as exc:
            self._say(f"--debug-port {self._options.debug_port}: {exc.strerror}; using another")
            await server.start(LOOPBACK, 0)
        is_default = server.url.endswith(f":{UP_PORT}")
        where = f"--kubeconfig {self._options.kubeconfig.absolute()}"
        where += "" if is_default else f" --server {server.url}"
        self._say(f"scheduler at {server.url}; try: berth explain {where} POD")

    async def _load(self, loader: Loader, kubelets: HollowKubelets) -> None:
        await kubelets.registered.wait()
        if self._options.sample:
            await loader.load_sample(nodes=self._options.template.names(self._options.nodes))
        for path in self._options.load:
            await loader.load(path)
        self._loaded.set()

    async def _watch(self, service: SchedulerService, client: ApiClient) -> None:
        """Show progress until idle, for ever if not asked to exit then."""
        observer = Observer(cache=service.cache, queue=service.queue)
        title = f"berth up  {self._cluster.url}  --kubeconfig {self._options.kubeconfig}"
        told = Told()
        quiet = looks = 0
        with shown_live() as screen:
            while quiet < QUIET_LOOKS or not self._options.exit_when_idle:
                await self._clock.sleep(LOOK_INTERVAL)
                progress = self._look(observer, service, nodes=screen.height if screen else 0)
                if screen is not None:
                    size = (screen.width, screen.height)
                    screen.show(render(progress, title=title, width=size[0], height=size[1]))
                elif looks % LINES_EVERY == 0:
                    self._say_all(told.lines(progress))
                looks += 1
                settled = (
                    self._loaded.is_set()
                    and service.is_idle
                    and not progress.states["starting"]
                    and not progress.states["stopping"]
                )
                if settled and self._options.exit_when_idle:
                    settled = await _controllers_are_done(client)
                quiet = quiet + 1 if settled else 0
        if screen is None:
            self._say_all(told.lines(progress))

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._say(line)

    def _look(self, observer: Observer, service: SchedulerService, *, nodes: int) -> Progress:
        """Look at the scheduler, and at the *nodes* that are fullest."""
        reasons: dict[str, str] = {}
        for waiting in (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF):
            for queued in service.queue.pods(waiting):
                current = service.pods.store.get(queued.key, queued.pod)
                for condition in current.status.conditions:
                    if condition.type == "PodScheduled" and condition.message:
                        reasons[queued.key] = condition.message
        return observer.look(
            service.pods.store,
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
        self._say(f"{binding.scheduled} pods bound in {took:.1f} s ({rate}), peak {peak:.0f} MiB")
        self._say_all([*refused.lines(), *verification.lines()])


class _Workload(msgspec.Struct):
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class _Workloads(msgspec.Struct):
    items: list[_Workload] = []


async def _controllers_are_done(client: ApiClient) -> bool:
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
