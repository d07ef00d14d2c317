"""``berth run`` as a process, asked over its secure port."""

import asyncio
import random
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
import yaml

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import RealClock
from tests.e2e.replicas import berth

pytestmark = [pytest.mark.wall, pytest.mark.slow]


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as found:
        port: int = found.getsockname()[1]
        return port


async def until_ready(ask: Callable[[str], Awaitable[httpx.Response]]) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                if (await ask("/readyz")).status_code == 200:
                    return
            except (httpx.ConnectError, FileNotFoundError):
                pass
            await asyncio.sleep(0.1)


async def test_who_is_answered_and_how_it_ends(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(clock=RealClock(), rng=random.Random(1))
    await cluster.start(0)
    kubeconfig, certificates = tmp_path / "kubeconfig", tmp_path / "certificates"
    cluster.write_kubeconfig(kubeconfig)
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    port = free_port()
    flags = (
        "run",
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
    )

    async def ask(path: str, token: str = "") -> httpx.Response:
        trusted = ssl.create_default_context(cafile=certificates / "kube-scheduler.crt")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(verify=trusted) as client:
            return await client.get(f"https://localhost:{port}{path}", headers=headers)

    try:
        async with berth(*flags, log=tmp_path / "first.log") as first:
            await until_ready(ask)
            nobody, known = await ask("/metrics"), await ask("/flagz", token)
            async with berth(*flags, log=tmp_path / "second.log") as second:
                assert await second.exit_status() == 2
                assert second.output.startswith(
                    f"berth run: --secure-port {port}: Address already in"
                )
            first.send(signal.SIGTERM)
            assert await first.exit_status() == 0
            assert "serving securely" in first.output
            assert token not in first.output
    finally:
        await cluster.stop()

    assert nobody.status_code == 403
    assert (known.status_code, f"secure-port={port}" in known.text) == (200, True)
