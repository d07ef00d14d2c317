"""The ``berth`` command: arguments in, exit status out; the one module that prints."""

import argparse
import asyncio
import gzip
import json
import logging
import random
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, cast

import uvloop

from app import log, manifests
from app.bench import engine
from app.client.connect import ConnectError, connect
from app.clock import RealClock
from app.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from app.cluster.kubelet.node_template import NodeTemplate
from app.config import flags
from app.config.errors import ConfigError
from app.config.types import KubeSchedulerConfiguration
from app.embedded import EmbeddedCluster, template_from, write_kubeconfig
from app.main import SchedulerService
from app.memory import keep_heap
from app.offline.explain import explain
from app.offline.scenario import ScenarioError
from app.profile.build import args_models
from app.up import SAMPLE_NODES, Up, UpOptions
from plugins.registry import IN_TREE

USAGE = """\
usage: berth COMMAND [flags]

  run       schedule pods of a Kubernetes cluster
  up        start an embedded cluster with hollow nodes and a scheduler, on this machine
  cluster   start an embedded cluster only, without nodes and scheduler
  kubelets  give hollow nodes to any API server
  explain   decide for recorded scenarios, and tell why
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
    except (ConfigError, ConnectError, ScenarioError, UsageError, manifests.ManifestError) as exc:
        print(f"berth {name}: {exc}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


def _say(line: str) -> None:
    print(line, flush=True)


def _run(argv: Sequence[str]) -> int:
    parser = flags.make_parser("berth run")
    options = flags.parse(parser, argv)
    if options.version != "false":
        return _version(())
    config = flags.configuration(options, args_models=args_models(IN_TREE))
    log.setup(logging.DEBUG if options.v >= 4 else logging.INFO)
    connection = config.client_connection

    async def scheduling() -> int:
        client = await connect(
            kubeconfig=connection.kubeconfig or None,
            master=options.master or None,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=f"berth/{version('berth')} scheduler",
        )
        try:
            if config.leader_election.leader_elect:
                logging.getLogger(__name__).warning(
                    "there is no leader election yet: run one replica only"
                )
            await SchedulerService(client, config, clock=RealClock(), rng=random.Random()).run()
        finally:
            await client.close()
        return 0

    return _in_loop(scheduling())


def _up(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth up", allow_abbrev=False)
    _add_node_flags(parser, nodes=SAMPLE_NODES)
    parser.add_argument(
        "--load", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="create the objects of these manifests (YAML, several documents)",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="create a sample workload")
    _add_cluster_flags(parser)
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
    parser = argparse.ArgumentParser(prog="berth explain", allow_abbrev=False)
    parser.add_argument(
        "-f", dest="source", type=Path, required=True, metavar="IN",
        help="scenarios as JSON lines, .gz too",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="target", type=Path, required=True, metavar="OUT",
        help="where the decisions go, a JSON line each",
    )  # fmt: skip
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    with _opened(given.source, "rt") as lines, _opened(given.target, "wt") as answers:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{given.source}, line {number}"
            try:
                read = json.loads(line)
            except ValueError as exc:
                raise UsageError(f"{where}: not JSON: {exc}") from exc
            if not isinstance(read, dict):
                raise UsageError(f"{where}: an object is needed, got {type(read).__name__}")
            try:
                answer = explain(read.get("scenario", read), IN_TREE)
            except (ScenarioError, ConfigError) as exc:
                raise UsageError(f"{where}: {exc}") from exc
            answers.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return 0


def _bench(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth bench", allow_abbrev=False)
    parser.add_argument("what", choices=["engine"], help="what to measure")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=10_000, help="pods that run already")
    parser.add_argument("--repetitions", type=int, default=300)
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    keep_heap()
    _say(f"{engine.machine()}; {given.nodes} nodes, all evaluated, {given.pods} running pods")
    _say(f"{'µs per decision':<38} {'mean':>8} {'median':>8} {'worst':>8} {'placed':>9}")
    results = engine.run(
        IN_TREE,
        clock=RealClock(),
        num_nodes=given.nodes,
        num_pods=given.pods,
        repetitions=given.repetitions,
    )
    for result in results:
        _say(
            f"{result.workload:<38} {result.mean:8.0f} {result.median:8.0f} {result.worst:8.0f}"
            f" {result.placed:>4}/{given.repetitions}"
        )
    return 0


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
        "--port", type=int, default=0, help="port of the API server on loopback; 0: any free one"
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


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[IO[str]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        file = opener(path, mode, encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    with file:
        yield cast("IO[str]", file)


@contextmanager
def _port_errors(port: int) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise UsageError(f"--port {port}: {exc.strerror}") from exc


def _in_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run *work* on a fast event loop; Ctrl-C ends it cleanly."""
    keep_heap()
    with (
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(work)
    return INTERRUPTED
