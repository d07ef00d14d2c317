"""The embedded cluster, put together: store, API server, controllers, hollow kubelets."""

import asyncio
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from app.client.api_client import ApiClient
from app.client.connect import connect
from app.clock import Clock
from app.cluster.admission import Admission
from app.cluster.bootstrap import bootstrap
from app.cluster.controllers.run import Controllers
from app.cluster.kubelet.node_template import NodeTemplate
from app.cluster.registry import RESOURCES
from app.cluster.server import ApiServer
from app.cluster.store import Store
from app.manifests import ManifestError
from app.objects.node import Node
from app.tasks import forever

LOOPBACK = "127.0.0.1"


class EmbeddedCluster:
    """A Kubernetes API on loopback, with controllers. It has no nodes of its own."""

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._server = ApiServer(RESOURCES, Store(), admission=Admission(), clock=clock, rng=rng)
        self.url = ""
        """Where the API is, once :meth:`start` has returned."""

    async def start(self, port: int) -> None:
        """Create what every cluster has and listen; OSError when *port* cannot be had."""
        bootstrap(self._server.writes)
        self.url = f"http://{LOOPBACK}:{await self._server.start(LOOPBACK, port)}"

    async def connect(self, user_agent: str) -> ApiClient:
        """Return a client of this cluster, without rate limit."""
        return await connect(kubeconfig=None, master=self.url, qps=0, user_agent=user_agent)

    async def run_controllers(self) -> None:
        """Run the controllers, and watch over the API server; ends only by cancellation."""
        client = await self.connect("berth-controllers")
        controllers = Controllers(client, clock=self._clock, rng=self._rng)
        try:
            async with asyncio.TaskGroup() as tasks:
                for name, run in (
                    ("API server", self._server.run),
                    ("controllers", controllers.run),
                ):
                    tasks.create_task(forever(name, run), name=name)
        finally:
            await client.close()

    async def stop(self) -> None:
        await self._server.stop()


def write_kubeconfig(path: Path, url: str) -> None:
    """Write a kubeconfig for the cluster at *url*, for kubectl and everybody else."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "berth", "cluster": {"server": url}}],
        "users": [{"name": "berth", "user": {}}],
        "contexts": [{"name": "berth", "context": {"cluster": "berth", "user": "berth"}}],
        "current-context": "berth",
    }
    # All at once: whoever waits for the file must not read half of it.
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    written.replace(path)


def template_from(manifest: Mapping[str, Any], *, source: str) -> NodeTemplate:
    """Make the template of hollow nodes from a Node manifest.

    Taken are its labels, taints, and allocatable (or else capacity). Raises ManifestError when it
    is malformed; *source* names it there.
    """
    try:
        node = msgspec.convert(manifest, Node)
    except msgspec.ValidationError as exc:
        raise ManifestError(f"{source}: {exc}") from exc
    amounts = {k: str(v) for k, v in (node.status.allocatable or node.status.capacity).items()}
    base = NodeTemplate()
    prefix = node.metadata.name or base.prefix
    return NodeTemplate(
        prefix=prefix if prefix.endswith("-") else f"{prefix}-",
        resources=amounts,
        labels=node.metadata.labels,
        taints=tuple(
            {"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints
        ),
    )
