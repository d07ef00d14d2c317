"""A running cluster for tests: API server, controllers and hollow nodes in a thread."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from berth.cluster.access.users import KUBELETS, SCHEDULER
from berth.cluster.bootstrap import default_storage_class
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool
from berth.cluster.kubelet.template_manifest import pool_from
from berth.cluster.loading import Loader
from berth.cluster.resources import Object
from berth.cluster.sources import Gathered, gather
from berth.kube import manifests
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.runtime.clock import RealClock
from berth.runtime.errors import UserError
from berth.runtime.loop_thread import LoopThread
from berth.runtime.release import RELEASE, RELEASES
from berth.runtime.tasks import forever

Manifests = str | Path | Object
"""A file or folder, YAML or JSON text, or an object."""

SCHEDULER_FLAGS: Final = ("--leader-elect=false", "--secure-port=0")
"""It is alone with its cluster, and several of them share a machine."""
STOP_SECONDS: Final = 10.0
"""For a scheduler to end after it was told to."""
SHOWN_LINES: Final = 5
"""Of what a scheduler wrote before it ended."""


class ClusterError(UserError):
    """A cluster that cannot be had as it was asked for, or that has lost its scheduler."""


class Cluster:
    """A Kubernetes API that runs from ``with`` or ``async with`` to the end of the block.

    It is an API server on a free port of this machine, with the controllers of Kubernetes, in a
    thread of this process. Nothing of it is left afterwards. Several can run at once.

    *nodes* is a number of hollow nodes, which say that they run pods, or Node manifests, each the
    template of one node; the annotation ``berth.dev/count`` asks for more. They are Ready when the
    block begins.

    *load* is what to create before the block: a manifest, or several. A ``Path`` is a file or a
    folder, and so is a ``str`` in one line; other ``str`` are YAML or JSON text; a dict is an
    object.

    *scheduler* runs berth with its default configuration in a process of its own, which takes a
    second to begin. Without it, pods stay pending unless they name their node.

    *kubernetes_version* is the release that the API server, the nodes and the scheduler are like:
    ``1.37`` or ``1.36``. Another raises ValueError.

    Entering raises ClusterError for nodes and manifests that are not good; it says where they come
    from, and names the field and its value. Leaving raises it when the scheduler has failed.
    """

    def __init__(
        self,
        *,
        nodes: int | Sequence[Object] = 0,
        load: Manifests | Sequence[Manifests] = (),
        scheduler: bool = False,
        kubernetes_version: str = RELEASE,
    ) -> None:
        if kubernetes_version not in RELEASES:
            known = " or ".join(RELEASES)
            raise ValueError(f"kubernetes_version: {kubernetes_version!r}: must be {known}")
        self._nodes = nodes
        self._load: Sequence[Manifests] = [load] if isinstance(load, str | Path | dict) else load
        self._scheduler = scheduler
        self._release = kubernetes_version
        self._running = ExitStack()
        self.address = ""
        """The URL of the API."""
        self.kubeconfig = Path()
        """A file for kubectl and everybody else, whose user may do everything."""

    def __enter__(self) -> Self:
        try:
            pools, gathered = _pools(self._nodes), _gathered(self._load)
        except manifests.ManifestError as exc:
            raise ClusterError(str(exc)) from exc
        if gathered.problems:
            raise ClusterError("\n".join(gathered.problems))
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="berth-cluster-")))
            thread = stack.enter_context(LoopThread("berth cluster"))
            inside = AsyncExitStack()
            stack.callback(lambda: thread.wait_for(inside.aclose()))
            thread.wait_for(self._start(inside, folder, pools, gathered))
            if self._scheduler:
                stack.enter_context(_scheduler(folder, release=self._release))
            self._running = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self.__enter__))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await asyncio.to_thread(self._running.close)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    async def _start(
        self, stack: AsyncExitStack, folder: Path, pools: Sequence[NodePool], gathered: Gathered
    ) -> None:
        """Start everything but the scheduler; *stack* stops it."""
        clock, rng = RealClock(), random.Random()
        cluster = EmbeddedCluster(clock=clock, rng=rng, release=self._release)
        stack.push_async_callback(cluster.stop)
        await cluster.start(0, objects=[default_storage_class()])
        self.address, self.kubeconfig = cluster.url, folder / "kubeconfig"
        cluster.write_kubeconfig(self.kubeconfig)
        cluster.write_kubeconfig(folder / "scheduler", user=SCHEDULER)
        _run(stack, "controllers", cluster.run_controllers)
        client = await cluster.connect("berth-load")
        stack.push_async_callback(client.close)
        if pools:
            await _check_nodes(pools, client, now=clock.now())
            kubelets = HollowKubelets(
                cluster.in_process("kubelet", user=KUBELETS),
                Settings(pools, features=cluster.features, release=cluster.release),
                clock=clock,
                rng=rng,
            )
            cluster.add_containers(kubelets.containers)
            _run(stack, "kubelets", kubelets.run)
            await kubelets.ready.wait()
        said: list[str] = []
        loader = Loader(client, clock=clock, say=said.append)
        await loader.load(gathered)
        if loader.refused.objects:
            raise ClusterError("\n".join(said))


def _run(stack: AsyncExitStack, name: str, run: Callable[[], Any]) -> None:
    task = asyncio.create_task(forever(name, run), name=name)

    async def end() -> None:
        task.cancel()
        await asyncio.wait([task])

    stack.push_async_callback(end)


def _pools(nodes: int | Sequence[Object]) -> list[NodePool]:
    """Return what *nodes* asks for. Raises ManifestError."""
    if isinstance(nodes, int):
        if nodes < 0:
            raise ClusterError(f"nodes: {nodes}: must not be negative")
        return [NodePool(nodes)] if nodes else []
    pools: list[NodePool] = []
    for index, node in enumerate(nodes):
        source = f"nodes[{index}]"
        for obj in manifests.objects(node, source=source):
            if obj["kind"] != "Node":
                raise ClusterError(f"{source}: kind: {obj['kind']!r}: must be 'Node'")
            pools.append(pool_from(obj, count=1, source=source))
    return [pool for pool in pools if pool.count]


async def _check_nodes(pools: Sequence[NodePool], client: Api, *, now: float) -> None:
    """Ask the API whether it would take the nodes: kubelets try for ever.

    Raises ClusterError if it would not, or if two pools have nodes of the same name.
    """
    names: set[str] = set()
    for pool in pools:
        found = pool.names()
        if same := names.intersection(found):
            raise ClusterError(f"nodes: metadata.name: {min(same)!r}: two nodes have this name")
        names.update(found)
        node = pool.template.node(found[0], index=0, now=now)
        try:
            await client.request(
                "POST", "/api/v1/nodes", params={"dryRun": "All"}, body=msgspec.json.encode(node)
            )
        except ApiError as exc:
            raise ClusterError(f"nodes: {exc.message}") from exc


def _gathered(load: Sequence[Manifests]) -> Gathered:
    gathered = Gathered()
    for index, each in enumerate(load):
        source = f"load[{index}]"
        if isinstance(each, dict):
            gathered.add(source, partial(manifests.objects, each, source=source))
        elif isinstance(each, str) and ("\n" in each or each.startswith("{")):
            gathered.add(source, partial(manifests.parse, each, source=source))
        else:
            found = gather([str(Path(each))])
            gathered.objects += found.objects
            gathered.problems += found.problems
    return gathered


@contextmanager
def _scheduler(folder: Path, *, release: str) -> Iterator[None]:
    """Run berth beside the block. Raises ClusterError when it ended before the block did."""
    log = folder / "scheduler.log"
    command = [sys.executable, "-m", "berth", "run", f"--kubeconfig={folder / 'scheduler'}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *SCHEDULER_FLAGS, f"--emulated-version={release}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    except BaseException as exc:
        if failed := _failure(process, log):
            exc.add_note(failed)
        raise
    else:
        failed = _failure(process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if failed:
        raise ClusterError(failed)


def _failure(process: subprocess.Popen[bytes], log: Path) -> str:
    """Say how a scheduler ended that should still run; empty if it does."""
    status = process.poll()
    if status is None:
        return ""
    lines = log.read_text("utf-8", errors="replace").splitlines()[-SHOWN_LINES:]
    return "\n".join([f"the scheduler ended with status {status}", *lines])
