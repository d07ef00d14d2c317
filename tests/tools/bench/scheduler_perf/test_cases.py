"""Each test case runs to its end on an API server that takes only what it knows."""

import asyncio
from collections import Counter
from typing import Any, cast

import msgspec
import pytest

from berth.cluster.kinds.builtin import RESOURCES
from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import from_status
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.tools.bench.binds import Binds
from berth.tools.bench.process import Measured
from berth.tools.bench.scheduler_perf.cases import CASES
from berth.tools.bench.scheduler_perf.run import Run
from berth.tools.bench.scheduler_perf.templates import HIGH
from berth.tools.bench.usage import Usage
from tests.cluster.serving import Serving

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class StrictClient:
    """Speaks to an API server in this process; errors are raised, for unknown fields, too."""

    def __init__(self, serving: Serving) -> None:
        self._http = serving.http
        self.created: Counter[str] = Counter()
        """By the name of the resource."""
        self.churned: Counter[str] = Counter()
        """Of these, what churn has created."""
        self.deleted: Counter[str] = Counter()

    async def request(
        self, method: str, path: str, *, body: bytes = b"", content_type: str = "application/json"
    ) -> bytes:
        strict = {"fieldValidation": "Strict"} if method in ("POST", "PATCH") else {}
        headers = {"content-type": content_type}
        answer = await self._http.request(
            method, path, content=body, params=strict, headers=headers
        )
        if answer.is_error:
            raise from_status(answer.content, status=answer.status_code)
        *_, last, name = path.split("/")
        if method == "POST":
            self.created[name] += 1
            self.churned[name] += b"churn" in answer.content
        elif method == "DELETE":
            self.deleted[last] += 1
        return answer.content


class AllBound(dict[str, float]):
    """Says of every pod that it is bound."""

    def __contains__(self, _pod: object) -> bool:
        return True


class NoBinds:
    """What a run is told of pods: they are bound when somebody asks."""

    times = AllBound()
    refused: frozenset[str] = frozenset()

    async def until_true(self, is_done: Any, _scheduler: Measured) -> None:
        assert is_done()


class Idle:
    """A scheduler process that does nothing."""

    def used(self) -> Usage:
        return Usage(0.0, None)

    def cpu_seconds(self) -> float:
        return 0.0


def run(name: str, params: tuple[int, ...]) -> tuple[Run, StrictClient]:
    """Run a test case, and let 2.9 more seconds pass."""
    clock = VirtualClock()

    async def main() -> tuple[Run, StrictClient]:
        client = StrictClient(Serving(clock=clock, resources=RESOURCES))
        high = msgspec.json.encode({"metadata": {"name": HIGH}, "value": 10})
        await client.request("POST", PRIORITY_CLASSES, body=high)
        started = Run.started(
            cast(ApiClient, client), cast(Binds, NoBinds()), cast(Measured, Idle()), clock=clock
        )
        async with started as run:
            for operation in CASES[name].operations(*params):
                await operation.run(run)
            await clock.sleep(2.9)
        return run, client

    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(main())


SMALL: dict[str, tuple[tuple[int, ...], int, int, int]] = {
    "SchedulingBasic": ((2, 3, 4), 2, 7, 4),
    "SchedulingDaemonset": ((2, 3), 3, 3, 3),
    "PreemptionBasic": ((2, 8, 2), 2, 10, 2),
    "PreemptionAsync": ((2, 8, 2), 2, 10, 2),
    "Unschedulable": ((2, 1, 3), 2, 4, 3),
    "SchedulingWithMixedChurn": ((2, 3), 2, 3, 3),
    "SchedulingWhileGated": ((2, 3, 4), 1, 9, 4),
    "SchedulingDeletedPodsWithFinalizers": ((2, 3, 4), 2, 7, 4),
    "SchedulingWithExtendedResource": ((1, 2, 2), 3, 2, 2),
    "SchedulingPodAntiAffinity": ((3, 1, 2), 3, 3, 2),
    "SchedulingPodMatchingAntiAffinity": ((3, 1, 2), 3, 3, 2),
    "SchedulingPodAffinity": ((2, 1, 2), 2, 3, 2),
    "SchedulingPreferredPodAffinity": ((2, 1, 2), 2, 3, 2),
    "SchedulingPreferredPodAntiAffinity": ((2, 1, 2), 2, 3, 2),
    "SchedulingNodeAffinity": ((2, 1, 2), 2, 3, 2),
    "MixedSchedulingBasePod": ((2, 1, 3), 2, 8, 3),
    "SchedulingRequiredPodAntiAffinityWithNSSelector": ((9, 2, 3, 1), 9, 7, 1),
    "SchedulingPreferredAntiAffinityWithNSSelector": ((2, 2, 3, 1), 2, 7, 1),
    "SchedulingRequiredPodAffinityWithNSSelector": ((2, 2, 3, 1), 2, 7, 1),
    "SchedulingPreferredAffinityWithNSSelector": ((2, 2, 3, 1), 2, 7, 1),
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput": ((2, 3), 1, 5, 3),
    "TopologySpreading": ((3, 1, 2), 3, 3, 2),
    "PreferredTopologySpreading": ((3, 1, 2), 3, 3, 2),
    "DefaultTopologySpreading": ((3, 1, 2), 3, 3, 2),
    "SchedulingWithNodeInclusionPolicy": ((1, 2, 2), 3, 2, 2),
    "SchedulingSecrets": ((2, 1, 2), 2, 3, 2),
    "SchedulingInTreePVs": ((2, 1, 2), 2, 3, 2),
    "SchedulingMigratedInTreePVs": ((2, 1, 2), 2, 3, 2),
    "SchedulingCSIPVs": ((2, 1, 2), 2, 3, 2),
    "PreemptionPVs": ((1, 4, 1), 1, 5, 1),
    "EventHandlingPodDelete": ((1, 2, 3), 1, 20, 16),
    "EventHandlingPodUpdate": ((2, 3), 3, 19, 17),
    "EventHandlingNodeAdd": ((2, 3), 8, 18, 18),
    "EventHandlingPodAdd": ((2,), 2, 9, 4),
    "EventHandlingNodeUpdate": ((1, 2), 4, 12, 12),
    "HostPortConflict": ((2, 2), 2, 2, 2),
    "ResourceSaturation": ((2, 2), 2, 2, 2),
    "SchedulingWithResourceClaimTemplate": ((1, 1, 2, 3, 5), 2, 5, 3),
    "SchedulingWithResourceClaim": ((1, 1, 0, 0, 6, 2, 2), 2, 6, 6),
    "SteadyStateClusterResourceClaimTemplate": ((1, 1, 2, 20, 12), 2, 20, 20),
    "SteadyStateClusterResourceClaimTemplateFirstAvailable": ((1, 1, 0, 10, 10), 2, 10, 10),
    "SteadyStateClusterResourceClaimTemplatePartitionable": ((1, 1, 2, 2, 2, 3), 2, 6, 6),
    "SteadyStateClusterResourceClaimTemplatePartitionableBacktracking": ((1, 1, 1, 1, 2), 2, 2, 2),
    "SteadyStateClusterResourceClaimTemplateConsumableCapacity": ((1, 1, 1, 1, 2, 2), 2, 2, 2),
    "ExtendedResource": ((2, 1, 1, 1, 2, 3), 2, 3, 2),
    "ExtendedResource_25Classes": ((2, 1, 1, 1, 2, 3), 2, 3, 2),
    "ExtendedResource_50Classes": ((2, 1, 1, 1, 2, 3), 2, 3, 2),
}
"""The parameters of a small workload; its nodes, pods without churn, and measured pods."""


@pytest.mark.parametrize("name", CASES)
def test_a_test_case_creates_what_its_workload_says(name: str) -> None:
    params, nodes, pods, measured = SMALL[name]
    ran, client = run(name, params)
    assert len({pod for created in ran.pods.values() for pod in created}) == pods
    assert len(set(ran.measured)) == len(ran.measured) == measured
    assert client.created["nodes"] - client.churned["nodes"] == nodes
    assert client.created["pods"] - client.churned["pods"] == pods


@pytest.mark.parametrize("name", CASES)
def test_all_workloads_have_the_parameters_of_their_test_case(name: str) -> None:
    case = CASES[name]
    assert case.default in case.workloads
    for workload in case.workloads.values():
        assert [*case.params(workload).values()] == [*workload.params]


def test_churn_goes_on_until_the_end() -> None:
    _, client = run("Unschedulable", SMALL["Unschedulable"][0])
    assert +client.churned == {"pods": 15, "namespaces": 1, "serviceaccounts": 1}


def test_recreated_objects_are_deleted_before_the_next() -> None:
    _, client = run("SchedulingWithMixedChurn", SMALL["SchedulingWithMixedChurn"][0])
    kinds = ("nodes", "pods", "services")
    assert +client.churned == dict.fromkeys(kinds, 2) | {
        "namespaces": 1,
        "serviceaccounts": 1,
    }
    assert client.deleted == dict.fromkeys(kinds, 1)


def test_every_pod_with_a_volume_has_a_claim_of_its_own() -> None:
    _, client = run("SchedulingCSIPVs", (2, 1, 2))
    assert client.created["persistentvolumes"] == client.created["persistentvolumeclaims"] == 3
    assert client.created["csinodes"] == 2
