"""``berth up``: embedded cluster, hollow nodes and scheduler in one process."""

import argparse
import logging
import math
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth.cli import importing
from berth.cli.flags.configuration import (
    add_plugin_flags,
    add_preset_flag,
    configuration_source,
    known_plugins,
)
from berth.cli.flags.embedded_cluster import (
    add_cluster_flags,
    add_node_flags,
    embedded_cluster,
    kubeconfig_out,
    kubelet_configuration,
    node_pools,
)
from berth.cli.flags.recording import add_recording_flags, recording
from berth.cli.flags.versions import add_emulated_version, with_versions
from berth.runtime import log
from berth.runtime.addresses import UI_PORT, UP_PORT
from berth.runtime.terminal import naming_port, port, program, say

if TYPE_CHECKING:
    from berth.service.scheduler_service import SchedulerService


SAMPLE_NODES: Final = 20
DEFAULT_NAMESPACE: Final = "default"
TOLD: Final = tuple((module, logging.INFO) for module in ("reload", "live_configuration", "dump"))
"""Modules whose lines answer a changed file or a signal; they are logged from info on."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("up"), allow_abbrev=False)
    add_node_flags(parser, nodes=SAMPLE_NODES, besides="--node-group")
    parser.add_argument(
        "--node-group", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="scale the node groups in these files: nodes are added for pods that fit nowhere, and"
        " removed when nobody needs them",
    )  # fmt: skip
    parser.add_argument(
        "--load", type=_source, nargs="+", action="extend", default=[], metavar="FILE",
        help="create the objects in these YAML or JSON manifests: files, folders with all that is"
        " below them, or - for standard input. What other objects need is created first",
    )  # fmt: skip
    parser.add_argument(
        "--namespace", default=DEFAULT_NAMESPACE, metavar="NAME",
        help="namespace of loaded objects without one, created if necessary; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="create a sample workload")
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE",
        help="run the steps of this file on its cluster, and say what came of them. The status is 1"
        " if an expectation is not met",
    )  # fmt: skip
    parser.add_argument(
        "--speed", type=_speed, metavar="N",
        help="with --scenario: run at most N times as fast as real time; 0: as fast as possible."
        " Default: what the file says",
    )  # fmt: skip
    parser.add_argument(
        "--exit", action="store_true", help="with --scenario: end with its last step"
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "--debug-port", type=port, default=UP_PORT, metavar="PORT",
        help="port of the scheduler on loopback, for berth explain; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--ui-port", type=port, default=UI_PORT, metavar="PORT",
        help="port of the page on loopback; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--config", default="",
        help="read the configuration from this file; reloaded on SIGHUP, and when it or a file"
        " in --plugin-dir changes",
    )  # fmt: skip
    add_preset_flag(parser)
    add_emulated_version(parser)
    add_plugin_flags(parser)
    add_recording_flags(parser)
    parser.add_argument(
        "--exit-when-idle", action="store_true",
        help="stop when every pod has a node or cannot have one; the status is 0 if all pods were"
        " placed, else 1. Pods that a scheduling gate holds back do not count. Refused objects are"
        " reported, and change the status only if they are pods or make pods",
    )  # fmt: skip
    parser.add_argument(
        "-v", type=int, default=0, help="log level; 4 and higher log debug messages"
    )
    given = parser.parse_args(argv)
    if given.scenario is not None:
        _check_scenario(parser, given)
    elif given.exit or given.speed is not None:
        parser.error("--speed and --exit require --scenario")
    return given


def _check_scenario(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse flags that say what the file of ``--scenario`` says."""
    for name in (
        "nodes", "node_group", "node_template", "kubelet_config", "stages", "load", "sample",
        "config", "preset", "exit_when_idle", "kubernetes_version",
    ):  # fmt: skip
        if getattr(given, name) != parser.get_default(name):
            flag = f"--{name.replace('_', '-')}"
            parser.error(f"{flag} cannot be combined with --scenario, which describes all of it")
    if given.data_dir is not None:
        parser.error("--data-dir cannot be combined with --scenario, which begins anew")


def _speed(text: str) -> float:
    """Read an argument that is a number and not negative."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 on")
    return number


def _source(text: str) -> str:
    """Read an argument of ``--load``."""
    if text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(
            f"{text}: manifests are not downloaded, so that what runs is what you have seen;"
            f" use `curl -L {text} | berth up --load -`, or run `kubectl apply -f {text}` later"
        )
    return text


def run(given: argparse.Namespace) -> int:
    if given.scenario is not None:
        return _run_scenario(given)
    with importing():
        from berth.cluster.kubelet.stages.load import load as load_stages
        from berth.cluster.sources import gather
        from berth.runtime.clock import RealClock
        from berth.runtime.event_loop import in_loop, sparing_survivors
        from berth.scheduler.config.feature_gates import server_features
        from berth.service.running import run_and_reload
        from berth.tools.up.up import Up, UpOptions

    versions = partial(with_versions, gates=given.feature_gates, emulated=given.emulated_version)
    source = configuration_source(given, adjust=versions)
    config, plugins = source.load()

    async def schedule(service: "SchedulerService") -> None:
        await run_and_reload(service.run, service, source)

    kubelets = kubelet_configuration(given.kubelet_config)
    groups = None
    if given.node_group:
        from berth.tools.autoscaler import node_groups  # it takes 0.1 s to load

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
            embedded_cluster(given, features=server_features(config, given.kubernetes_version)),
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
    with importing():
        from berth.runtime.clock import RealClock
        from berth.runtime.event_loop import in_loop, sparing_survivors
        from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
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
                features=file.features,
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
            new_recording=partial(recording, given),
        )
        return 1 if result.failure else 0

    with naming_port(given.port, flag="--port"):
        return in_loop(sparing_survivors(run(), RealClock()), new_event_loop=new_event_loop)
