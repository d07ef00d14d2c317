"""What kubectl users do one command after the other, which controllers must keep up with."""

import asyncio
import shutil

import pytest

from tests.cluster.controllers.live import WEB, Cluster, running

pytestmark = [
    pytest.mark.wall,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl"),
]


async def kubectl(cluster: Cluster, *arguments: str) -> str:
    """Run kubectl, which must succeed; return what it says."""
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        "--kubeconfig=/dev/null",
        f"--server={cluster.url}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode().strip()


async def test_undo_right_after_a_change() -> None:
    async with running() as cluster:
        await kubectl(cluster, "create", "deployment", "web", "--image=nginx")
        for value in ("one", "two", "three"):
            await kubectl(cluster, "set", "env", "deployment/web", f"NAME={value}")
            said = await kubectl(cluster, "rollout", "undo", "deployment/web")
            assert said == "deployment.apps/web rolled back"
            deployment = await cluster.ask("GET", WEB)
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            assert "env" not in container
