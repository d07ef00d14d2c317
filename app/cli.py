"""The ``berth`` command: arguments in, exit status out; the one module that prints."""

import argparse
import asyncio
import logging
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import uvloop

from app import explain_command, log, manifests, run_command
from app.bench import engine, preemption, throughput
from app.bench.process import BenchError
from app.client.connect import ConnectError, connect
from app.client.errors import ApiError
from app.clock import RealClock
from app.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from app.cluster.kubelet.node_template import NodeTemplate
from app.config import flags
from app.config.errors import ConfigError
from app.config.types import KubeSchedulerConfiguration
from app.embedded import EmbeddedCluster, template_from, write_kubeconfig
from app.explain_command import ExplainError
from app.main import SchedulerService
from app.memory import keep_heap
from app.offline.files import FileError, answer_all
from app.offline.simulate import simulate
from app.profile.build import args_models
from app.server.listening import DEFAULT_PORT, LoopbackServer
from app.up import SAMPLE_NODES, Up, UpOptions
from plugins.registry import IN_TREE

USAGE = """\
usage: berth COMMAND [flags]

  run       schedule pods of a Kubernetes cluster
  up        start an embedded cluster with hollow nodes and a scheduler, on this machine
  cluster   start an embedded cluster only, without nodes and scheduler
  kubelets  give hollow nodes to any API server
  explain   tell why a pod is pending, or why it is where it is
  simulate  schedule recorded sequences of pods, one after the other
  bench     measure what decisions cost on this machine
  version   print the version

`berth COMMAND --help` tells the flags of a command.
"""

INTERRUPTED = 130


class UsageError(Exception):
    """What the user asked for cannot be done; the message says why."""


def run(argv: Sequence[str]) -> int:
    """Run one command; return its exit status (2: wrong usage or configuration)."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "run": _run,
        "up": _up,
        "cluster": _cluster,
        "kubelets": _kubelets,
        "explain": _explain,
        "simulate": _simulate,
        "bench": _bench,
        "version": _version,
    }
    name, *rest = argv or ("--help",)
    if name in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if name not in commands:
        print(f"berth: {name!r} is not a command\n\n{USAGE}", end="", file=sys.stderr)
        return 2
    try:
        return commands[name](rest)
    except (
        ConfigError, ConnectError, ExplainError, FileError, UsageError, manifests.ManifestError
    ) as exc:  # fmt: skip
        print(f"berth {name}: {exc}", file=sys.stderr)
        return 2
    except (ApiError, BenchError) as exc:
        print(f"berth {name}: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _run(argv: Sequence[str]) -> int:
    parser = flags.make_parser("berth run")
    parser.add_argument(
        "--debug-port", type=_port, metavar="PORT",
        help="Answer berth explain on this port of loopback; 0 for any free one. Default: not.",
    )  # fmt: skip
    options = flags.parse(parser, argv)
    debug_port: int | None = parser.parse_args(flags.spelled(argv)).debug_port
    if options.version != "false":
        return _version(())
    config = flags.configuration(options, args_models=args_models(IN_TREE))
    log.setup(logging.DEBUG if options.v >= 4 else logging.INFO)
    return _in_loop(
        run_command.serve(
            options, config, answering=lambda service: _answering(service, debug_port)
        )
    )


def _up(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth up", allow_abbrev=False)
    _add_node_flags(parser, nodes=SAMPLE_NODES)
    parser.add_argument(
        "--load", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="create the objects of these manifests (YAML, several documents)",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="create a sample workload")
    _add_cluster_flags(parser)
    parser.add_argument(
        "--debug-port", type=_port, default=DEFAULT_PORT, metavar="PORT",
        help="port of the scheduler on loopback, for berth explain; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--config", default="", help="a KubeSchedulerConfiguration file")
    parser.add_argument(
        "--exit-when-idle", action="store_true",
        help="stop when every pod has a node or cannot have one; 0 if all were placed",
    )  # fmt: skip
    parser.add_argument("-v", type=int, default=0, help="4 and more: log debug messages")
    given = parser.parse_args(argv)
    config = _configuration(given.config)
    options = UpOptions(
        nodes=given.nodes,
        template=_template(given.node_template),
        load=given.load,
        sample=given.sample,
        port=given.port,
        debug_port=given.debug_port,
        kubeconfig=given.kubeconfig_out,
        exit_when_idle=given.exit_when_idle,
    )
    log.setup(logging.DEBUG if given.v >= 4 else logging.WARNING)
    with _port_errors(given.port):
        service = Up(options, config, clock=RealClock(), rng=random.Random(), say=_say)
        return _in_loop(service.run())


def _cluster(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth cluster", allow_abbrev=False)
    _add_cluster_flags(parser)
    given = parser.parse_args(argv)
    log.setup(logging.WARNING)

    async def serving() -> int:
        cluster = EmbeddedCluster(clock=RealClock(), rng=random.Random())
        await cluster.start(given.port)
        path = given.kubeconfig_out.absolute()
        write_kubeconfig(path, cluster.url)
        _say(f"API server at {cluster.url}; try: kubectl --kubeconfig {path} get all -A")
        try:
            await cluster.run_controllers()
        finally:
            await cluster.stop()
        return 0

    with _port_errors(given.port):
        return _in_loop(serving())


def _kubelets(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth kubelets", allow_abbrev=False)
    _add_node_flags(parser, nodes=1)
    parser.add_argument("--kubeconfig", help="how to reach the API server")
    parser.add_argument("--master", help="the API server's address; wins over the kubeconfig's")
    given = parser.parse_args(argv)
    log.setup(logging.INFO)
    settings = Settings(given.nodes, _template(given.node_template))

    async def serving() -> int:
        client = await connect(
            kubeconfig=given.kubeconfig, master=given.master, qps=0, user_agent="berth-kubelets"
        )
        try:
            await HollowKubelets(client, settings, clock=RealClock(), rng=random.Random()).run()
        finally:
            await client.close()
        return 0

    return _in_loop(serving())


def _explain(argv: Sequence[str]) -> int:
    log.setup(logging.ERROR)
    return explain_command.run(argv, say=_say)


def _simulate(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth simulate", allow_abbrev=False)
    parser.add_argument(
        "-f", dest="source", type=Path, required=True, metavar="IN",
        help="scenarios with a list of pods, as JSON lines, .gz too",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="target", type=Path, required=True, metavar="OUT",
        help="where the assignments go, a JSON line each",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int,
        help="draw one of several best nodes, the same with every run; default: the smallest name",
    )  # fmt: skip
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    problems = answer_all(
        given.source, given.target, lambda found: simulate(found, IN_TREE, seed=given.seed)
    )
    if problems:
        raise UsageError("\n".join(problems))
    return 0


def _bench(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth bench", allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    one = kinds.add_parser("engine", allow_abbrev=False, help="decisions, in this process")
    one.add_argument("--nodes", type=_positive, default=5_000)
    one.add_argument("--pods", type=int, default=10_000, help="pods that run already")
    one.add_argument("--repetitions", type=_positive, default=300)
    many = kinds.add_parser(
        "throughput", allow_abbrev=False, help="a scheduler process on an API server"
    )
    many.add_argument("--nodes", type=_positive, default=5_000)
    many.add_argument("--pods", type=_positive, default=3_000, help="pods that wait for nodes")
    many.add_argument("--workload", choices=[*throughput.WORKLOADS, "all"], default="plain")
    many.add_argument(
        "--kubeconfig", type=Path, metavar="FILE",
        help="an API server without node controllers; its own embedded one if not given",
    )  # fmt: skip
    many.add_argument(
        "--cmd", default="", metavar="COMMAND",
        help="another scheduler to measure; {kubeconfig} in it is replaced",
    )  # fmt: skip
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    return _bench_engine(given) if given.what == "engine" else _bench_throughput(given)


def _bench_engine(given: argparse.Namespace) -> int:
    keep_heap()
    _say(f"{engine.machine()}; {given.nodes} nodes, all evaluated, {given.pods} running pods")
    _say(f"{'µs per decision':<38} {'mean':>8} {'median':>8} {'worst':>8} {'placed':>9}")
    results = chain(
        engine.run(
            IN_TREE,
            clock=RealClock(),
            num_nodes=given.nodes,
            num_pods=given.pods,
            repetitions=given.repetitions,
        ),
        preemption.run(
            IN_TREE, clock=RealClock(), num_nodes=given.nodes, repetitions=given.repetitions
        ),
    )
    for result in results:
        _say(
            f"{result.workload:<38} {result.mean:8.0f} {result.median:8.0f} {result.worst:8.0f}"
            f" {result.placed:>4}/{given.repetitions}"
        )
    return 0


def _bench_throughput(given: argparse.Namespace) -> int:
    settings = throughput.Settings(given.nodes, given.pods, given.kubeconfig, given.cmd)
    names = [*throughput.WORKLOADS] if given.workload == "all" else [given.workload]

    async def measuring() -> int:
        _say(f"{engine.machine()}; {given.nodes} nodes, {given.pods} pending pods")
        _say(f"{'ms of CPU per bound pod':<24} {'steady':>8} {'all':>8} {'pods/s':>8}"
             f" {'MiB':>6} {'bound':>11} {'events':>7}")  # fmt: skip
        for name in names:
            result = await throughput.measure(name, settings, clock=RealClock())
            _say(
                f"{name:<24} {result.cpu_per_pod * 1e3:8.2f}"
                f" {result.cpu_per_pod_with_start * 1e3:8.2f} {result.pods_per_second:8.0f}"
                f" {result.peak_memory / 2**20:6.0f} {result.bound:>5}/{result.pods}"
                f" {result.events:>7}"
            )
        return 0

    return _in_loop(measuring())


def _version(_argv: Sequence[str]) -> int:
    _say(f"berth {version('berth')}")
    return 0


def _add_node_flags(parser: argparse.ArgumentParser, *, nodes: int) -> None:
    parser.add_argument("--nodes", type=_positive, default=nodes, help="how many hollow nodes")
    parser.add_argument(
        "--node-template", type=Path, metavar="FILE", help="a Node manifest that all nodes follow"
    )


def _add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=_port, default=0, help="port of the API server on loopback; 0: any free one"
    )
    parser.add_argument(
        "--kubeconfig-out", type=Path, default=Path("berth.kubeconfig"), metavar="FILE",
        help="where to write the kubeconfig",
    )  # fmt: skip


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 65535")
    return number


def _template(path: Path | None) -> NodeTemplate:
    if path is None:
        return NodeTemplate()
    found = list(manifests.read(path))
    if len(found) != 1 or found[0]["kind"] != "Node":
        kinds = [obj["kind"] for obj in found]
        raise UsageError(f"{path}: exactly one Node is needed, got {kinds}")
    return template_from(found[0], source=str(path))


def _configuration(path: str) -> KubeSchedulerConfiguration:
    options = flags.parse(flags.make_parser("berth"), [f"--config={path}"] if path else [])
    return flags.configuration(options, args_models=args_models(IN_TREE))


@asynccontextmanager
async def _answering(service: SchedulerService, port: int | None) -> AsyncIterator[None]:
    """Serve the endpoints of *service* on loopback, if there is a port for it."""
    server = LoopbackServer(service.application())
    if port is not None:
        with _port_errors(port, flag="--debug-port"):
            await server.start(port)
        _say(f"scheduler at {server.url}")
    try:
        yield
    finally:
        await server.stop()


@contextmanager
def _port_errors(port: int, *, flag: str = "--port") -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        # A file that cannot be written names itself; a port does not.
        raise UsageError(f"{exc.filename or f'{flag} {port}'}: {exc.strerror}") from exc


def _in_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run *work* on a fast event loop; Ctrl-C ends it cleanly."""
    keep_heap()
    with (
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(work)
    return INTERRUPTED
