"""``berth up`` as a whole, with a user who may do everything in one namespace and nothing else."""

import asyncio
import gc
import io
import random
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import yaml

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.insight.explain.explanation import Explanation
from berth.insight.explain.tables import render
from berth.runtime import log as logs
from berth.runtime.clock import RealClock
from berth.runtime.tables import as_text
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.up import Up, UpOptions
from berth_plugins.registry import IN_TREE
from tests.hostile_requests import DEVICE_CLASS, NAMESPACE, Attack, Request

Object = dict[str, Any]

NODES: Final = 3
DEVICES_PER_NODE: Final = 100
POLL_SECONDS: Final = 0.02
CLEAR_SECONDS: Final = 100
"""For all that was made, on a machine that has other work too."""
PROBES: Final = 3
"""Health checks in a round."""
DRIVER: Final = "gpu.example.com"
PODS: Final = "/api/v1/namespaces/default/pods"
RESOURCES: Final = "/apis/resource.k8s.io/v1"
RBAC: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"


@dataclass
class World:
    """The running whole, and those who speak to it."""

    admin: httpx.AsyncClient
    guest: httpx.AsyncClient
    scheduler: httpx.AsyncClient
    """The admin, at the scheduler's own endpoints."""
    said: list[str]
    logged: io.StringIO
    trusted: ssl.SSLContext
    """Trusts the cluster."""
    probes: list[int | str] = field(default_factory=list)
    """What health checks got, one after the other: a status, or of a failure what was said."""

    async def probe(self) -> None:
        """Ask for the health of API server and scheduler, for ever."""
        while True:
            for client, path in (
                (self.scheduler, "/readyz"), (self.scheduler, "/livez"), (self.admin, "/readyz")
            ):  # fmt: skip
                answer = await client.get(path, params={"verbose": ""})
                code = answer.status_code
                failed = f"{code} {client.base_url}{path}: {answer.text}"
                self.probes.append(code if answer.is_success else failed)
            await asyncio.sleep(POLL_SECONDS)

    async def until_probed(self) -> None:
        """Wait for the answers to health checks that are made from now on."""
        wanted = len(self.probes) + 1 + PROBES  # one may be under way
        while True:
            if len(self.probes) >= wanted:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def until_well(self) -> None:
        """Wait until all health checks pass, and forget those before.

        Between two tests the event loop stands still, and its watchdog takes it for stuck.
        """
        while True:
            self.probes.clear()
            await self.until_probed()
            if set(self.probes) == {200}:
                return

    async def send(self, requests: Sequence[Request]) -> list[httpx.Response]:
        """Send the guest's requests; return the answers."""
        return [
            await self.guest.request(
                request.method,
                request.path,
                content=request.content(),
                headers={"Content-Type": request.content_type},
            )
            for request in requests
        ]

    async def undo(self, attack: Attack) -> None:
        """End what would go on for as long as the cluster runs."""
        await self.send(attack.undo)

    async def place(self, name: str, count: int) -> list[int]:
        """Create ordinary pods and wait until they are bound; return how often each was tried."""
        names = [f"{name}-{index}" for index in range(count)]
        for each in names:
            answer = await self.admin.post(PODS, json=ordinary(each))
            assert answer.is_success, answer.text
        for each in names:
            await self.until_bound(each)
        told = [await self.explain(f"default/{each}") for each in names]
        attempts = [explanation.history[0].attempt for explanation in told]
        for each in names:
            await self.admin.delete(f"{PODS}/{each}?gracePeriodSeconds=0")
        return attempts

    async def until_bound(self, name: str, *, every: float = POLL_SECONDS) -> None:
        while True:
            pod = (await self.admin.get(f"{PODS}/{name}")).json()
            if pod["spec"].get("nodeName"):
                return
            await asyncio.sleep(every)

    async def until_idle(self) -> None:
        """Wait until no pod waits to be tried for the first time, in three looks in a row."""
        quiet = 0
        while quiet < 3:
            answer = await self.scheduler.get("/debug/queue", params={"limit": "1"})
            quiet = quiet + 1 if answer.json()["counts"]["active"] == 0 else 0
            await asyncio.sleep(POLL_SECONDS)

    async def explain(self, key: str) -> Explanation:
        answer = await self.scheduler.get(f"/explain/pods/{key}", params={"nodes": "3"})
        assert answer.is_success, (key, answer.text)
        return Explanation.model_validate_json(answer.content)

    async def tables(self) -> list[str]:
        """Return what ``berth explain`` prints of each pod of the guest."""
        pods = (await self.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")).json()["items"]
        shown = []
        for pod in pods[:100]:
            path = f"/explain/pods/{NAMESPACE}/{pod['metadata']['name']}"
            answer = await self.scheduler.get(path, params={"nodes": "3"})
            if answer.is_success:
                told = Explanation.model_validate_json(answer.content)
                shown.append(as_text(render(told), width=200))
        return shown

    async def read_all(self) -> None:
        """Read what the guest made as others do: as lists, as kubectl's tables, by a watch."""
        for path in (
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            f"{RESOURCES}/namespaces/{NAMESPACE}/resourceclaims",
        ):
            for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                answer = await self.admin.get(path, headers={"Accept": accept})
                assert answer.is_success, answer.text
                assert msgspec.json.decode(answer.content)["kind"].endswith(("List", "Table"))
            events = await self.admin.get(
                path, params={"watch": "1", "resourceVersion": "0", "timeoutSeconds": "1"}
            )
            assert events.is_success, events.text
            for line in events.content.splitlines():
                # Controllers go on meanwhile.
                kind = msgspec.json.decode(line)["type"]
                assert kind in ("ADDED", "MODIFIED", "DELETED"), line[:300]

    async def clear(self) -> None:
        """Remove what the guest made, finalizers or not; fails for what cannot be removed.

        A controller may go on until the collector has taken what it acts for.
        """
        for path in (
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            f"{RESOURCES}/namespaces/{NAMESPACE}/resourceclaims",
        ):
            async with asyncio.timeout(CLEAR_SECONDS):
                while items := (await self.admin.get(path)).json()["items"]:
                    for item in items:
                        await self._remove(path, item)

    async def _remove(self, path: str, item: Object) -> None:
        target = f"{path}/{item['metadata']['name']}"
        if item["metadata"].get("finalizers"):
            await self.admin.patch(
                target,
                content=b'{"metadata": {"finalizers": null}}',
                headers={"Content-Type": "application/merge-patch+json"},
            )
        await self.admin.delete(f"{target}?gracePeriodSeconds=0")


def ordinary(name: str) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def devices(node: str) -> Object:
    """A slice of the devices of *node*, each of a model of its own."""
    return {
        "metadata": {"name": f"gpus-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {
                        "model": {"string": f"model-{index % 4}"},
                        "unique": {"string": f"{node}-{index}"},
                    },
                }
                for index in range(DEVICES_PER_NODE)
            ],
        },
    }


@asynccontextmanager
async def world_with_guest(folder: Path) -> AsyncIterator[World]:
    """Run ``berth up``; log lines of all levels are kept, as text.

    What earlier tests have left is put out of the garbage collector's view: to look at all of it
    may take so long that the loop is called stuck.
    """
    gc.collect()
    gc.freeze()
    logged = io.StringIO()
    logs.setup_by_flags(4, stderr=logged)
    said: list[str] = []
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("scheduler at ") and not found.done():
            found.set_result(line.split()[2].rstrip(";"))

    clock, rng = RealClock(), random.Random(1)
    kubeconfig = folder / "kubeconfig"
    pool = NodePool(NODES, NodeTemplate(cpu="64", memory="256Gi", pods=2000))
    cluster = EmbeddedCluster(clock=clock, rng=rng)
    up = Up(
        UpOptions([pool], kubeconfig=KubeconfigOut(kubeconfig)),
        default_configuration(args_models(IN_TREE)),
        cluster,
        clock=clock,
        rng=rng,
        say=say,
    )
    running = asyncio.create_task(up.run(), name="up")
    try:
        async with AsyncExitStack() as cleanup:
            while not found.done():
                assert not running.done(), "berth up has ended"
                await asyncio.sleep(POLL_SECONDS)
            config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
            authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
            trusted = ssl.create_default_context(cadata=b64decode(authority).decode())

            async def client(url: str, token: str) -> httpx.AsyncClient:
                headers = {"Authorization": f"Bearer {token}"}
                made = httpx.AsyncClient(base_url=url, verify=trusted, headers=headers, timeout=30)
                return await cleanup.enter_async_context(made)

            token = config["users"][0]["user"]["token"]
            admin = await client(cluster.url, token)
            await _furnish(admin, pool.names())
            path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/guest/token"
            answer = await admin.post(path, json={"spec": {}})
            guest = await client(cluster.url, answer.json()["status"]["token"])
            scheduler = await client(found.result(), token)
            await _until_ready(scheduler)
            world = World(admin, guest, scheduler, said, logged, trusted)
            probing = asyncio.create_task(world.probe(), name="probes")
            try:
                yield world
            finally:
                probing.cancel()
                await asyncio.wait([probing])
    finally:
        running.cancel()
        await asyncio.wait([running])


async def _until_ready(scheduler: httpx.AsyncClient) -> None:
    while True:
        if (await scheduler.get("/readyz")).is_success:
            return
        await asyncio.sleep(POLL_SECONDS)


async def _furnish(admin: httpx.AsyncClient, nodes: Sequence[str]) -> None:
    """Give the guest his namespace and all rights in it, and the cluster its devices."""
    role = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    subject = {"kind": "ServiceAccount", "name": "guest", "namespace": NAMESPACE}
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
        (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "guest"}}),
        (f"{RBAC}/roles", {"metadata": {"name": "all"}, "rules": [role]}),
        (
            f"{RBAC}/rolebindings",
            {
                "metadata": {"name": "all"},
                "subjects": [subject],
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"
                },
            },
        ),
        (f"{RESOURCES}/deviceclasses", {"metadata": {"name": DEVICE_CLASS}, "spec": {}}),
        *((f"{RESOURCES}/resourceslices", devices(node)) for node in nodes),
    ):  # fmt: skip
        answer = await admin.post(path, content=msgspec.json.encode(body), headers={
            "Content-Type": "application/json"})  # fmt: skip
        assert answer.is_success, (path, answer.text)
