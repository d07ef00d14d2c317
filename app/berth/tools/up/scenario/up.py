"""``berth up --scenario``: a scenario's cluster, served to kubectl while and after it runs."""

import asyncio
import math
import random
import resource
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.cluster.bootstrap import default_storage_class
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.clock import Clock, RealClock
from berth.runtime.duration import Duration
from berth.runtime.terminal import typed
from berth.scheduler.profile.build import kinds_of_plugins
from berth.service.applications import scheduler_application
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth.service.ui.local_page import local_page
from berth.tools.up.access_rights import listed_to_explain, read_by_plugins
from berth.tools.up.autoscaling import access_rights
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.scenario.load import ScenarioFile
from berth.tools.up.scenario.runner import Result, Runner
from berth.tools.up.scenario.simulation import NewRecording, Simulation, running
from berth.tools.up.scheduler_port import scheduler_port

REAL_TIME: Final = 1.0
"""The speed after the last step, when people look around."""

SetSpeed = Callable[[float], None]
"""Sets how many times as fast as real time the clock may run."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where a scenario's cluster is served, and until when."""

    port: int = 0
    """0: any free one."""
    debug_port: int = 0
    """Where the scheduler answers questions; any free port if it is taken."""
    ui_port: int = 0
    """Where the page is; any free port if it is taken."""
    kubeconfig: KubeconfigOut = field(default_factory=KubeconfigOut)
    exits: bool = False
    """End with the scenario; else run on until interrupted."""


async def run_scenario(
    file: ScenarioFile,
    cluster: EmbeddedCluster,
    *,
    plugins: KnownPlugins,
    clock: Clock,
    rng: random.Random,
    say: Callable[[str], None],
    served: ServeOptions | None = None,
    set_speed: SetSpeed = lambda _speed: None,
    new_recording: NewRecording = lambda: None,
) -> Result:
    """Run a scenario on *cluster*, which is new, and return what came of it.

    *served* also gives kubectl and others access to it. Raises OSError when that fails.
    """
    scenario = file.scenario
    config = file.configuration(scenario.cluster.scheduler_configuration)
    async with AsyncExitStack() as cleanup:
        port = served.port if served else 0
        groups = file.node_groups()
        rights = read_by_plugins(kinds_of_plugins(config, plugins.registry))
        rights += access_rights() if groups else []
        await cluster.start(port, objects=[default_storage_class(), *listed_to_explain(), *rights])
        cleanup.push_async_callback(cluster.stop)
        simulation = await cleanup.enter_async_context(
            running(
                cluster,
                config,
                scenario.cluster.nodes,
                kubelets=file.kubelets(),
                groups=groups,
                plugins=plugins,
                clock=clock,
                rng=rng,
                new_recording=new_recording,
            )
        )
        if served is not None:
            await _serve(cluster, simulation, served, cleanup=cleanup, clock=clock, say=say)
        say(f"scenario {file.name}: {' '.join(scenario.description.split())}".rstrip(": "))
        began, cpu_before = RealClock().monotonic(), _cpu_seconds()
        result = await Runner(file, simulation, rng=rng, say=say).run()
        took, cpu = RealClock().monotonic() - began, _cpu_seconds() - cpu_before
        outcome = "failed" if result.failure else "passed"
        say(
            f"{outcome}: {result.steps} of {len(scenario.steps)} steps,"
            f" {result.expectations} expectations met;"
            f" {Duration.of(round(result.seconds, 1))} passed in {took:.1f} s ({cpu:.1f} s of CPU)"
        )
        if served is not None and not served.exits:
            set_speed(REAL_TIME)
            say("the cluster runs on in real time; end it with Ctrl-C")
            await asyncio.Event().wait()
        return result


async def _serve(
    cluster: EmbeddedCluster,
    simulation: Simulation,
    served: ServeOptions,
    *,
    cleanup: AsyncExitStack,
    clock: Clock,
    say: Callable[[str], None],
) -> None:
    """Serve the scheduler beside the API, and write kubeconfigs, until *cleanup*."""
    scheduler = CurrentScheduler(simulation)
    port = await cleanup.enter_async_context(
        scheduler_port(scheduler, cluster, port=served.debug_port, clock=clock, say=say)
    )
    flags = cleanup.enter_context(served.kubeconfig.written(cluster, scheduler=port.url))
    say(f"API server at {cluster.url}; try: kubectl {flags} get pods -A")
    say(f"scheduler at {port.url}; try: {typed('explain')} {flags} POD")
    await cleanup.enter_async_context(
        local_page(scheduler, port=served.ui_port, program="berth up", say=say)
    )


class CurrentScheduler:
    """The endpoints of whichever scheduler runs: an ASGI application."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._made: tuple[SchedulerService, ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._simulation.scheduler
        if service is None:
            await PlainTextResponse("no scheduler runs", 503)(scope, receive, send)
            return
        if self._made is None or self._made[0] is not service:
            self._made = service, scheduler_application(service)
        await self._made[1](scope, receive, send)


def speed_of(given: float | None, file: ScenarioFile) -> float:
    """Return how fast to run: as *given* on the command line, or else as *file* says; 0: inf."""
    speed = file.scenario.speed if given is None else given
    return speed or math.inf


def _cpu_seconds() -> float:
    """Return how much CPU time this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
