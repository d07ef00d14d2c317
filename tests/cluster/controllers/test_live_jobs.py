"""Jobs and their pods in a running cluster, over a socket."""

import asyncio
from typing import Any

import pytest

from berth.cluster.resources import Object
from tests.cluster.controllers.live import Cluster, running

pytestmark = pytest.mark.wall

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def job(*, exit_code: int = 0, **spec: Any) -> Object:
    annotations = {"berth.dev/run-seconds": "0.05", "berth.dev/exit-code": str(exit_code)}
    container = {"name": "c", "image": "i"}
    pod = {"restartPolicy": "Never", "nodeName": "node-0", "containers": [container]}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


async def until(cluster: Cluster, condition: str) -> Object:
    """Return the status of the Job as soon as *condition* is true."""
    while True:
        status: Object = (await cluster.ask("GET", f"{JOBS}/j")).get("status") or {}
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        if conditions.get(condition) == "True":
            return status
        await asyncio.sleep(0.02)


async def test_an_indexed_job_completes_and_its_pods_go_with_it() -> None:
    async with running() as cluster:
        body = job(completions=5, parallelism=2, completionMode="Indexed")
        await cluster.ask("POST", JOBS, body)
        status = await until(cluster, "Complete")
        pods = (await cluster.ask("GET", PODS))["items"]
        await cluster.ask("DELETE", f"{JOBS}/j", {"propagationPolicy": "Background"})
        await cluster.until_count(PODS, 0)

    assert (status["succeeded"], status["completedIndexes"]) == (5, "0-4")
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}
    assert not any(pod["metadata"].get("finalizers") for pod in pods)
    assert {pod["spec"]["hostname"] for pod in pods} == {f"j-{index}" for index in range(5)}


async def test_pods_of_a_deleted_job_stay_unless_they_are_to_go() -> None:
    async with running() as cluster:
        await cluster.ask("POST", JOBS, job())
        await until(cluster, "Complete")
        await cluster.ask("DELETE", f"{JOBS}/j")
        await cluster.until_gone(f"{JOBS}/j")
        [pod] = (await cluster.ask("GET", PODS))["items"]

    assert not pod["metadata"].get("ownerReferences")
    assert not pod["metadata"].get("finalizers")


async def test_a_job_fails_and_is_cleared_away() -> None:
    async with running() as cluster:
        await cluster.ask("POST", JOBS, job(exit_code=1, backoffLimit=0))
        status = await until(cluster, "Failed")
        patch = {"spec": {"ttlSecondsAfterFinished": 0}}
        await cluster.ask("PATCH", f"{JOBS}/j", patch)
        await cluster.until_gone(f"{JOBS}/j")

    assert status["failed"] == 1
    assert status["conditions"][-1]["reason"] == "BackoffLimitExceeded"


async def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async with running() as cluster:
        await cluster.ask("POST", JOBS, job(suspend=True))
        await until(cluster, "Suspended")
        assert await cluster.count(PODS) == 0
        await cluster.ask("PATCH", f"{JOBS}/j", {"spec": {"suspend": False}})
        status = await until(cluster, "Complete")

    suspended = next(
        condition for condition in status["conditions"] if condition["type"] == "Suspended"
    )
    assert (suspended["status"], suspended["reason"]) == ("False", "JobResumed")
