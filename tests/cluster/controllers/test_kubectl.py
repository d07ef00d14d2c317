"""What kubectl users do one command after the other, which controllers must keep up with."""

import asyncio
import shutil

import pytest

from tests.cluster.controllers.live import Cluster, running

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
    """As soon as the controller has seen it, without waiting for any pod."""
    async with running() as cluster:
        await kubectl(cluster, "create", "deployment", "web", "--image=nginx")
        for value in ("one", "two", "three"):
            await kubectl(cluster, "set", "env", "deployment/web", f"NAME={value}")
            await cluster.until_observed()
            said = await kubectl(cluster, "rollout", "undo", "deployment/web")
            assert said == "deployment.apps/web rolled back"
            deployment = await cluster.until_observed()
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            assert "env" not in container


async def test_a_job_is_made_from_a_cron_job() -> None:
    container = {"name": "c", "image": "i"}
    pod = {"restartPolicy": "Never", "nodeName": "node-0", "containers": [container]}
    spec = {
        "schedule": "@yearly",
        "suspend": True,
        "jobTemplate": {"spec": {"template": {"spec": pod}}},
    }
    async with running() as cluster:
        cron_jobs = "/apis/batch/v1/namespaces/default/cronjobs"
        await cluster.ask("POST", cron_jobs, {"metadata": {"name": "c"}, "spec": spec})
        said = [
            await kubectl(cluster, "create", "job", "j", "--from=cronjob/c"),
            await kubectl(cluster, "wait", "--for=condition=complete", "job/j", "--timeout=15s"),
            await kubectl(cluster, "get", "jobs", "--no-headers", "-o", "wide"),
            await kubectl(cluster, "describe", "job", "j"),
        ]
    assert said[:2] == ["job.batch/j created", "job.batch/j condition met"]
    assert said[2].split()[:3] == ["j", "Complete", "1/1"]
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in said[3]
    assert "job-controller  Job completed" in said[3]
