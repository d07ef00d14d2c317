"""What ``docker compose up`` runs, as processes: the same command lines, on ports that are free."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import yaml

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect

REPOSITORY = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (REPOSITORY / "docker-compose.yml").read_bytes()
)["services"]
SCHEDULERS = ("scheduler-a", "scheduler-b")
PODS = "/api/v1/namespaces/default/pods"
SECONDS = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Project:
    """The default services, in the folder *home* instead of volumes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self.ports = {name: free_port() for name in ("cluster", *SCHEDULERS)}

    def arguments(self, words: list[str]) -> list[str]:
        """Return a command line with what differs from a container: folders, host, ports."""
        api = f"127.0.0.1:{self.ports['cluster']}"
        found = []
        for word in words:
            moved = word.replace("/var/lib/berth", os.fspath(self._home))
            moved = moved.replace("cluster:6443", api).replace("127.0.0.1:6443", api)
            if moved == "--port=6443":
                moved = f"--port={self.ports['cluster']}"
            found.append(moved)
        return found

    async def start(self, name: str) -> None:
        arguments = self.arguments(SERVICES[name]["command"])
        if name in SCHEDULERS:
            arguments.append(f"--secure-port={self.ports[name]}")
        with (self._home / f"{name}.log").open("wb") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "berth", *arguments, stdout=log, stderr=log, cwd=REPOSITORY
            )

    async def until_healthy(self, name: str) -> None:
        """Run the health check of the compose file until it succeeds."""
        _, command, *arguments = self.arguments(SERVICES[name]["healthcheck"]["test"])
        assert command == "berth"
        if name in SCHEDULERS:
            arguments.append(f"--url=https://127.0.0.1:{self.ports[name]}/readyz")
        async with asyncio.timeout(SECONDS):
            while True:
                check = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "berth", *arguments, cwd=REPOSITORY,
                    stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
                )  # fmt: skip
                if await check.wait() == 0:
                    return
                assert self._processes[name].returncode is None, self.log(name)

    async def stop(self, name: str) -> int:
        process = self._processes.pop(name)
        process.terminate()
        return await process.wait()

    async def stop_all(self) -> None:
        for name in reversed(list(self._processes)):
            await self.stop(name)

    def log(self, name: str) -> str:
        return (self._home / f"{name}.log").read_text(encoding="utf-8")

    async def leads(self, name: str) -> bool:
        """Ask for the metrics as Prometheus does, with the token that compose mounts for it."""
        token = (self._home / "credentials" / "monitoring" / "token").read_text()
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(verify=False, headers=headers) as client:
            answer = await client.get(f"https://127.0.0.1:{self.ports[name]}/metrics")
        assert answer.status_code == 200, answer.text
        return 'leader_election_master_status{name="kube-scheduler"} 1.0' in answer.text


@asynccontextmanager
async def up(home: Path) -> AsyncIterator[tuple[Project, ApiClient]]:
    """Start everything as compose does, dependencies first."""
    (home / "admin").mkdir()
    project = Project(home)
    async with AsyncExitStack() as cleanup:
        cleanup.push_async_callback(project.stop_all)
        await project.start("cluster")
        await project.until_healthy("cluster")
        for name in ("kubelets", *SCHEDULERS):
            assert SERVICES[name]["depends_on"]["cluster"]["condition"] == "service_healthy"
            await project.start(name)
        client = await connect(kubeconfig=str(home / "admin" / "berth.kubeconfig"), qps=0)
        cleanup.push_async_callback(client.close)
        yield project, client


async def until_running(client: ApiClient, pod: str) -> None:
    """Create *pod* and wait until its kubelet has started it."""
    body = {"metadata": {"name": pod}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    await client.request("POST", PODS, body=msgspec.json.encode(body))
    async with asyncio.timeout(SECONDS):
        phase = "Pending"
        while phase != "Running":
            await asyncio.sleep(0.1)
            answer = msgspec.json.decode(await client.request("GET", f"{PODS}/{pod}"))
            phase = answer["status"].get("phase", "")
            assert phase in ("Pending", "Running")


@pytest.mark.wall
@pytest.mark.slow
async def test_pods_run_and_the_other_scheduler_takes_over(tmp_path: Path) -> None:
    async with up(tmp_path) as (project, client):
        for name in SCHEDULERS:
            await project.until_healthy(name)
        await until_running(client, "first")

        (leader,) = [name for name in SCHEDULERS if await project.leads(name)]
        (standby,) = {*SCHEDULERS} - {leader}
        assert await project.stop(leader) == 0
        await until_running(client, "second")
        assert await project.leads(standby)

        nodes = msgspec.json.decode(await client.request("GET", "/api/v1/nodes"))["items"]
        assert len(nodes) == 20
