"""The chart installed in an embedded cluster: its objects, and its command as a process.

The process runs with the arguments of the Deployment, as the service account of the chart; only
paths, port and address are those of this machine.
"""

import asyncio
import random
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import yaml

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Decision
from berth.cluster.access.users import KUBELETS, User, service_account_user
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.kubelet.pod_lifecycles import Timings
from berth.kube.client.api_client import ApiClient
from berth.kube.client.discovery import Discovery
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import RealClock
from tests.e2e.replicas import Process, berth
from tests.helm.rendering import NAMESPACE, Object, Values, deployment, of_kind, render

PODS: Final = "/api/v1/namespaces/default/pods"
LOOK_SECONDS: Final = 0.05
LIMIT_SECONDS: Final = 50
NODE: Final = NodeTemplate(resources={"cpu": "4", "memory": "8Gi", "pods": "110"})
INSTALLED: Final = (
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)


class Observed:
    """What one user asked for, and whether it was let."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.used: set[Attributes] = set()
        self.refused: list[Attributes] = []

    def __call__(self, user: User, wanted: Attributes, decision: Decision) -> None:
        if user.name == self.user:
            if decision.allowed:
                self.used.add(wanted)
            else:
                self.refused.append(wanted)


class Installation:
    """A running release; what a user of its cluster can do. Made by :func:`installed`."""

    def __init__(
        self, api: ApiClient, observed: Observed, process: Process, *, url: str, config: Path
    ) -> None:
        self.observed = observed
        self.process = process
        self.config = config
        """The file that it is configured by."""
        self.url = url
        self._api = api

    async def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        """Ask the API server, as an administrator."""
        encoded = None if body is None else msgspec.json.encode(body)
        answer: Object = msgspec.json.decode(await self._api.request(method, path, body=encoded))
        return answer

    async def create(self, path: str, *objects: Object) -> None:
        for obj in objects:
            await self.ask("POST", path, obj)

    async def items(self, path: str) -> dict[str, Object]:
        found = (await self.ask("GET", path))["items"]
        return {each["metadata"]["name"]: each for each in found}

    async def until(self, path: str, is_so: Callable[[dict[str, Object]], bool]) -> None:
        """Look at *path* until *is_so* of its items, by name."""

        async def look() -> bool:
            return is_so(await self.items(path))

        await self._until(look)

    async def until_bound(self, *names: str) -> None:
        await self.until(PODS, lambda pods: all("nodeName" in pods[name]["spec"] for name in names))

    async def until_used(self, verb: str, resource: str) -> None:
        """Wait until the release has asked for that."""

        async def look() -> bool:
            used = ((each.verb, each.full_resource) for each in self.observed.used)
            return (verb, resource) in used

        await self._until(look)

    async def until_shadowed(self, token: str, *, waiting: int) -> list[Object]:
        """Wait until a shadow knows of so many pods that wait; return its comparisons."""
        found: Object = {}

        async def look() -> bool:
            answer = await self.serving("GET", "/debug/shadow", token=token)
            found.update(answer.json())
            summary = found.get("summary", {})
            return bool(summary) and summary["waiting"] == waiting and not summary["behind"]

        await self._until(look)
        items: list[Object] = found["items"]
        return items

    async def until_replaced(self) -> None:
        """Wait until it goes by another configuration."""

        async def look() -> bool:
            return "configuration replaced" in self.process.output

        await self._until(look)

    async def until_ready(self) -> None:
        async def look() -> bool:
            try:
                return (await self.serving("GET", "/readyz")).is_success
            except httpx.ConnectError:
                return False

        await self._until(look)

    async def _until(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Look, until what was looked for is seen; what the release may not do fails at once."""
        while True:
            assert self.observed.refused == []
            if await look():
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def token_of(self, namespace: str, account: str) -> str:
        return await token_of(self._api, namespace, account)

    async def serving(
        self, method: str, path: str, *, token: str = "", **said: Any
    ) -> httpx.Response:
        """Ask the release itself."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(base_url=self.url, verify=False) as client:
            return await client.request(method, path, headers=headers, timeout=20, **said)


async def passes_helm_test(release: Installation, objects: list[Object]) -> bool:
    """Run the command of the pod of `helm test` here, against *release*."""
    [container] = of_kind(objects, "Pod")[0]["spec"]["containers"]
    _, *flags = container["command"]
    *arguments, url = container["args"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *flags, *arguments, f"{release.url}/{url.rpartition('/')[-1]}"
    )
    return await process.wait() == 0


@asynccontextmanager
async def installed(values: Values, folder: Path, *, nodes: int) -> AsyncIterator[Installation]:
    """Install the chart in a cluster of that many hollow nodes, and run it until the end.

    A scenario that does not come to its end fails after ``LIMIT_SECONDS``.
    """
    objects = render(values)
    account = deployment(objects)["spec"]["template"]["spec"]["serviceAccountName"]
    observed = Observed(service_account_user(NAMESPACE, account))
    clock, rng = RealClock(), random.Random(1)
    cluster = EmbeddedCluster(clock=clock, rng=rng, observer=observed)
    await cluster.start(0)
    tasks: list[asyncio.Task[None]] = []
    async with AsyncExitStack() as cleanup:
        cleanup.push_async_callback(cluster.stop)
        api = await cluster.connect("administrator")
        cleanup.push_async_callback(api.close)
        kubelet_client = await cluster.connect("kubelets", user=KUBELETS)
        cleanup.push_async_callback(kubelet_client.close)
        cleanup.push_async_callback(_cancel, tasks)
        kubelets = HollowKubelets(
            kubelet_client,
            Settings(
                [
                    NodePool(
                        nodes, NodeTemplate(resources={"cpu": "4", "memory": "8Gi", "pods": "110"})
                    )
                ],
                timings=Timings(stop_seconds=0.1),
            ),
            clock=clock,
            rng=rng,
        )
        for name, run in (("controllers", cluster.run_controllers), ("kubelets", kubelets.run)):
            tasks.append(asyncio.create_task(run(), name=name))
        async with asyncio.timeout(LIMIT_SECONDS):
            await kubelets.ready.wait()
            await _create(api, objects)
            kubeconfig = folder / "kubeconfig"
            cluster.write_kubeconfig(kubeconfig)
            _become(kubeconfig, await token_of(api, NAMESPACE, account))
            port = _free_port()
            config = folder / "config.yaml"
            config.write_text(configured(objects, kubeconfig), encoding="utf-8")
            process = await cleanup.enter_async_context(
                berth(*_arguments(objects, config, port), log=folder / "berth.log")
            )
            [serving] = of_kind(objects, "Service")[0]["spec"]["ports"]
            url = f"{serving['name']}://{LOOPBACK}:{port}"
            release = Installation(api, observed, process, url=url, config=config)
            await release.until_ready()
            yield release


def configured(objects: list[Object], kubeconfig: Path) -> str:
    """Return the configuration of the release, with the way to the API server."""
    [text] = [
        each["data"]["config.yaml"]
        for each in of_kind(objects, "ConfigMap")
        if "config.yaml" in each["data"]
    ]
    config = yaml.safe_load(text)
    config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    return yaml.safe_dump(config)


async def token_of(api: ApiClient, namespace: str, account: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = msgspec.json.decode(await api.request("POST", path, body=b"{}"))
    token: str = answer["status"]["token"]
    return token


async def _create(api: ApiClient, objects: Iterable[Object]) -> None:
    namespace = {"metadata": {"name": NAMESPACE}}
    await api.request("POST", "/api/v1/namespaces", body=msgspec.json.encode(namespace))
    discovery = Discovery(api)
    for obj in objects:
        if obj["kind"] in INSTALLED:
            path = await discovery.collection_of(obj)
            await api.request("POST", path, body=msgspec.json.encode(obj))


def _become(kubeconfig: Path, token: str) -> None:
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": token}
    kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")


def _arguments(objects: list[Object], config: Path, port: int) -> list[str]:
    [container] = deployment(objects)["spec"]["template"]["spec"]["containers"]
    changed = {
        "--config": str(config),
        "--secure-port": str(port),
        "--port": str(port),
        "--bind-address": LOOPBACK,
    }
    arguments = []
    for argument in container["args"]:
        name, equals, value = argument.partition("=")
        arguments.append(f"{name}={changed.get(name, value)}" if equals else name)
    return arguments


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as found:
        port: int = found.getsockname()[1]
        return port


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
