"""``berth up``: embedded cluster, hollow nodes and scheduler in one process."""

import argparse
import logging
import random
from functools import partial
from typing import Final

from berth.cli.parsers.up import SAMPLE_NODES
from berth.cli.settings.configuration import configuration_source, known_plugins
from berth.cli.settings.embedded_cluster import (
    embedded_cluster,
    kubeconfig_out,
    kubelet_configuration,
    node_pools,
)
from berth.cli.settings.feature_gates import with_gates
from berth.cli.settings.recording import recording
from berth.cluster.kubelet.stages.load import load as load_stages
from berth.cluster.sources import gather
from berth.runtime import log
from berth.runtime.clock import RealClock
from berth.runtime.event_loop import in_loop, sparing_survivors
from berth.runtime.terminal import naming_port, say
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.service.running import run_and_reload
from berth.service.scheduler_service import SchedulerService
from berth.tools.up.up import Up, UpOptions

TOLD: Final = tuple((module, logging.INFO) for module in ("reload", "live_configuration", "dump"))
"""Modules whose lines answer a changed file or a signal; they are logged from info on."""


def run(given: argparse.Namespace) -> int:
    if given.scenario is not None:
        return _run_scenario(given)
    source = configuration_source(given, adjust=partial(with_gates, gates=given.feature_gates))
    config, plugins = source.load()

    async def schedule(service: SchedulerService) -> None:
        await run_and_reload(service.run, service, source)

    kubelets = kubelet_configuration(given.kubelet_config)
    groups = None
    if given.node_group:
        from berth.tools.autoscaler import node_groups  # here, and below: it takes 0.1 s to load

        groups = node_groups.read(given.node_group).with_kubelets(kubelets)
    options = UpOptions(
        pools=node_pools(given, default=0 if groups else SAMPLE_NODES),
        node_groups=groups,
        stages=load_stages(given.stages),
        configuration=kubelets,
        load=gather(given.load),
        namespace=given.namespace,
        sample=given.sample,
        port=given.port,
        debug_port=given.debug_port,
        ui_port=given.ui_port,
        kubeconfig=kubeconfig_out(given),
        exit_when_idle=given.exit_when_idle,
    )
    log.setup(logging.DEBUG if given.v >= 4 else logging.WARNING, by_module=TOLD)
    with naming_port(given.port, flag="--port"):
        service = Up(
            options,
            config,
            embedded_cluster(given, gates=config.feature_gates),
            plugins=plugins,
            schedule=schedule,
            recording=recording(given),
            clock=RealClock(),
            rng=random.Random(),
            say=say,
        )
        return in_loop(sparing_survivors(service.run(), RealClock()))


def _run_scenario(given: argparse.Namespace) -> int:
    """Run the file of ``--scenario``, which says itself what the cluster is."""
    from berth.tools.up.scenario.load import ScenarioFile
    from berth.tools.up.scenario.up import ServeOptions, run_scenario, speed_of

    plugins = known_plugins(given)
    file = ScenarioFile(given.scenario, plugins)
    log.setup(logging.DEBUG if given.v >= 4 else logging.ERROR)
    clock, rng = VirtualClock(RealClock().now()), random.Random(file.scenario.seed)
    speed = speed_of(given.speed, file)
    loops: list[VirtualTimeLoop] = []

    def new_event_loop() -> VirtualTimeLoop:
        loops.append(VirtualTimeLoop(clock, speed=speed))
        return loops[-1]

    async def run() -> int:
        result = await run_scenario(
            file,
            embedded_cluster(
                given,
                clock=clock,
                rng=rng,
                gates=file.feature_gates,
                options=file.controller_options(),
            ),
            plugins=plugins,
            clock=clock,
            rng=rng,
            say=say,
            served=ServeOptions(
                port=given.port,
                debug_port=given.debug_port,
                ui_port=given.ui_port,
                kubeconfig=kubeconfig_out(given),
                exits=given.exit,
            ),
            set_speed=lambda speed: loops[-1].set_speed(speed),
        )
        return 1 if result.failure else 0

    with naming_port(given.port, flag="--port"):
        return in_loop(sparing_survivors(run(), RealClock()), new_event_loop=new_event_loop)
