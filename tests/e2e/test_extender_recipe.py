"""docs/extender.md followed to the letter by what asks as a stock kube-scheduler does.

The certificates are made by the commands of the page, berth reads its ``policies.yaml`` and the
scheduler its ``scheduler.yaml``. The cluster has room for all pods and for none more, so every
mistake shows: as a refusal for want of room, or as a node that has too many.
"""

import asyncio
import signal
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
import yaml
from aiohttp import web

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.runtime.addresses import LOOPBACK
from berth.scheduler.config.load import load
from berth.scheduler.config.types import Extender
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE
from tests.docs.pages import DOCS, Page
from tests.e2e.kube_scheduler import BindCall, GoClient, KubeScheduler, scheduling
from tests.e2e.replicas import PODS, Bind, Process, Proxy, berth, clock, until

pytestmark = [pytest.mark.wall, pytest.mark.slow]

NODES: Final = 20
PODS_PER_NODE: Final = 15
NUM_PODS: Final = NODES * PODS_PER_NODE
UNDER_WAY_SECONDS: Final = 1.0
"""What may pass between giving up and being seen to have, and between leaving and arriving."""
PAGE: Final = Page(DOCS / "extender.md")


def file(name: str) -> str:
    (block,) = (each for each in PAGE.blocks() if each.file == name)
    return block.text


def make_certificates(folder: Path) -> None:
    """Run the commands of step 4 that make files."""
    made = [
        command.line
        for block in PAGE.blocks()
        if block.language == "console"
        for command in block.commands()
        if command.line.startswith("openssl") or command.line.endswith(".ext")
    ]
    assert made
    script = "\n".join(["set -e", *made])
    subprocess.run(["bash", "-c", script], cwd=folder, check=True, capture_output=True)


class HeldProxy(Proxy):
    """Lets no bind through for as long as it is told to."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.arrived: list[tuple[float, str]] = []
        self.lets_through = asyncio.Event()
        self.lets_through.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/binding"):
            self.arrived.append((clock.monotonic(), request.path.split("/")[-2]))
            await self.lets_through.wait()
        return await super()._handle(request)


class World:
    """An API server, a proxy before it, and berth as the extender of a scheduler."""

    def __init__(
        self, folder: Path, api: ApiClient, proxy: HeldProxy, *, port: int, config: Extender
    ) -> None:
        self.folder = folder
        self.api = api
        self.proxy = proxy
        self.config = config
        self._port = port
        tls = ssl.create_default_context(cafile=folder / "ca.crt")
        tls.load_cert_chain(folder / "client.crt", folder / "client.key")
        self._tls = tls
        self.scheduler = KubeScheduler(
            GoClient(
                config.url_prefix,
                address=(LOOPBACK, port),
                tls=tls,
                timeout=config.http_timeout.seconds,
            ),
            config,
            room={f"n{i:02}": PODS_PER_NODE for i in range(NODES)},
        )

    @asynccontextmanager
    async def extender(self, name: str) -> AsyncIterator[Process]:
        """Run berth as the page says, and wait until it is ready."""
        async with berth(
            "extender",
            f"--port={self._port}",
            *(f"--client-ca-file={self.folder}/ca.crt", f"--config={self.folder}/policies.yaml"),
            f"--tls-cert-file={self.folder}/server.crt",
            f"--tls-private-key-file={self.folder}/server.key",
            f"--master={self.proxy.url}",
            log=self.folder / f"{name}.log",
        ) as process:
            yield process

    async def until_ready(self) -> None:
        async with (
            asyncio.timeout(30),
            httpx.AsyncClient(
                base_url=f"https://{LOOPBACK}:{self._port}", verify=self._tls
            ) as http,
        ):
            while True:
                try:
                    if (await http.get("/readyz")).status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.1)

    async def create_nodes(self) -> None:
        amounts = {"cpu": str(PODS_PER_NODE), "memory": "1Ti", "pods": "1000"}
        for name in self.scheduler.room:
            node = {"metadata": {"name": name}, "status": {"allocatable": amounts}}
            await self.api.request("POST", "/api/v1/nodes", body=msgspec.json.encode(node))

    async def create_pods(self, first: int, count: int) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        for i in range(first, first + count):
            pod = {
                "metadata": {"name": f"p{i:03}"},
                # nobody says that the nodes are ready
                "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
            }
            await self.api.request("POST", PODS, body=msgspec.json.encode(pod))

    async def all_bound(self) -> None:
        await until(lambda: len(self.scheduler.bound) == NUM_PODS, "all are bound", seconds=80)

    def check(self) -> None:
        """All are bound, no node has too many, and no bind left that nobody waited for."""
        assert Counter(self.scheduler.bound.values()) == self.scheduler.room
        assert not unwanted(self.proxy.arrived, self.scheduler.binds)
        assert set(Counter(bind.pod for bind in made(self.proxy.binds)).values()) == {1}


def made(binds: list[Bind]) -> list[Bind]:
    return [bind for bind in binds if bind.status < 300]


def unwanted(arrived: list[tuple[float, str]], calls: list[BindCall]) -> list[tuple[float, str]]:
    """Return the requests to bind that came when no call for that pod waited."""
    return [
        (at, pod)
        for at, pod in arrived
        if not any(
            call.pod == pod and call.began <= at <= call.ended + UNDER_WAY_SECONDS for call in calls
        )
    ]


@asynccontextmanager
async def world(folder: Path, *, num_pods: int = NUM_PODS) -> AsyncIterator[World]:
    make_certificates(folder)
    (folder / "policies.yaml").write_text(file("policies.yaml"), encoding="utf-8")
    configured = load(file("scheduler.yaml"), source="page", args_models=args_models(IN_TREE))
    (config,) = configured.extenders
    kubeconfig = folder / "kubeconfig"
    with socket.create_server((LOOPBACK, 0)) as found:
        port: int = found.getsockname()[1]
    async with AsyncExitStack() as cleanup:
        await cleanup.enter_async_context(
            berth(
                "cluster",
                "--insecure",  # the proxy looks into what passes through it
                f"--kubeconfig-out={kubeconfig}",
                log=folder / "cluster.log",
            )
        )
        await until(kubeconfig.exists, "the API server is up")
        written: Any = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        url = written["clusters"][0]["cluster"]["server"]
        api = await connect(kubeconfig=None, master=url, qps=0, user_agent="test")
        cleanup.push_async_callback(api.close)
        proxy = HeldProxy(url)
        await cleanup.enter_async_context(proxy.serving())
        made = World(folder, api, proxy, port=port, config=config)
        await made.create_nodes()
        await made.create_pods(0, num_pods)
        yield made


async def test_a_burst_fills_the_cluster_without_one_failure(tmp_path: Path) -> None:
    async with world(tmp_path) as made, made.extender("berth"):
        await made.until_ready()
        async with scheduling(made.scheduler, made.api):
            await made.all_bound()
            await until(lambda: not made.scheduler.binding, "all binds are answered")

        assert made.scheduler.events == []
        made.check()


@pytest.mark.parametrize(
    "num_last",
    [pytest.param(NUM_PODS, id="nothing is bound yet"), pytest.param(12, id="all others are")],
)
async def test_binds_that_are_given_up_are_not_made_and_take_no_room(
    tmp_path: Path, num_last: int
) -> None:
    """The API server is slow for longer than kube-scheduler waits."""
    num_first = NUM_PODS - num_last
    async with world(tmp_path, num_pods=num_first) as made, made.extender("berth"):
        await made.until_ready()
        scheduler = made.scheduler
        async with scheduling(scheduler, made.api):
            await until(lambda: len(scheduler.bound) == num_first, "the first are bound")
            made.proxy.lets_through.clear()
            await made.create_pods(num_first, num_last)
            await until(lambda: len(scheduler.events) >= num_last, "binds are given up")
            await until(lambda: len(scheduler.binding) > num_last // 4, "binds are asked for again")
            held = {pod for _, pod in made.proxy.arrived if pod not in scheduler.bound}
            made.proxy.lets_through.set()
            await made.all_bound()

        made.check()
        # What has left cannot be taken back, and the scheduler counts on the room until it asks
        # again. Two pods may be told of what is left there before either comes to be bound.
        in_doubt = {scheduler.bound[pod] for pod in held}
        assert 0 < len(in_doubt) < NODES // 4
        assert set(scheduler.events) <= {
            "binding rejected: context deadline exceeded",
            *(f"binding rejected: node {n} no longer fits: Insufficient cpu" for n in in_doubt),
        }


async def test_an_extender_that_is_killed_and_started_again(tmp_path: Path) -> None:
    async with world(tmp_path) as made, AsyncExitStack() as second:
        async with made.extender("first") as first:
            await made.until_ready()
            async with scheduling(made.scheduler, made.api):
                await until(lambda: len(made.scheduler.bound) > NUM_PODS // 4, "some are bound")
                first.send(signal.SIGKILL)
                await first.exit_status()
                await until(lambda: made.scheduler.events, "its end is noticed")
                await second.enter_async_context(made.extender("second"))
                await made.all_bound()

        assert {event for event in made.scheduler.events if not is_of_the_end(event)} == set()
        made.check()


def is_of_the_end(event: str) -> bool:
    """Say whether *event* tells that there is no extender, or that it knows nothing yet."""
    return event.removeprefix("binding rejected: ").startswith(("connection: ", "code 503"))
