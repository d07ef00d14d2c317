"""Metrics that there are with a feature gate only."""

import random

import pytest

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import from_object
from berth.scheduler.metrics.scheduler_metrics import AsyncCallMetrics
from berth.scheduler.profile.build import args_models
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.metrics.reading import counted

ASYNC_CALLS = {
    "scheduler_async_api_call_execution",
    "scheduler_async_api_call_execution_duration_seconds",
    "scheduler_pending_async_api_calls",
}


def config(**gates: bool) -> dict[str, object]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": gates,
    }


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
async def test_async_api_calls(is_on: bool) -> None:
    clock = FakeClock()
    endpoint = Endpoint("http://127.0.0.1:1")
    client = client_of(endpoint, qps=0, burst=1, user_agent="test", clock=clock)
    loaded = from_object(
        config(SchedulerAsyncAPICalls=is_on), source="test", args_models=args_models(IN_TREE)
    )
    service = SchedulerService(client, loaded, clock=clock, rng=random.Random(0))
    await client.close()
    exported = {family.name for family in service.registry.collect()}
    assert ASYNC_CALLS & exported == (ASYNC_CALLS if is_on else set())


def test_the_numbers_of_async_api_calls() -> None:
    metrics = AsyncCallMetrics()
    metrics.waits("pod_binding", 1)
    metrics.waits("pod_binding", 1)
    metrics.waits("pod_binding", -1)
    metrics.executed("pod_binding", failed=True, seconds=0.5)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }
    assert samples["scheduler_pending_async_api_calls", "pod_binding"] == 1
    name = "scheduler_async_api_call_execution"
    assert samples[f"{name}_total", "pod_binding", "error"] == 1
    assert samples[f"{name}_duration_seconds_sum", "pod_binding", "error"] == 0.5


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
async def test_batch_attempts_are_counted_with_opportunistic_batching(is_on: bool) -> None:
    harness = Harness(config=config(OpportunisticBatching=is_on))
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()
    for name, label in (("attempts", "no_hint"), ("cache_flushed", "empty_list")):
        want = {("default-scheduler", label): 1} if is_on else {}
        assert counted(harness.registry, f"scheduler_batch_{name}_total") == want
