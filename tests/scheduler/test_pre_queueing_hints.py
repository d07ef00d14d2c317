"""Which events of claims help some waiting pods only, counted (1.37 spec N12.1)."""

import pytest

from berth.kube.objects.devices import ResourceClaim
from tests.builders import node, pod
from tests.device_builders import allocation, claim, with_claims
from tests.harness import Harness
from tests.scheduler.metrics.reading import counted

FAMILY = "scheduler_pre_queueing_hint_evaluations_total"
TAKEN = allocation("gpu-0")


def scheduler(**gates: bool) -> Harness:
    return Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": gates,
        }
    )


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, claim("c"), "narrowed", id="a new claim"),
        pytest.param(claim("c"), claim("c", allocated=TAKEN), "narrowed", id="it was allocated"),
        pytest.param(claim("c", allocated=TAKEN), claim("c"), "all_pods", id="it was deallocated"),
    ],
)
async def test_events_are_counted_with_the_gate(
    old: ResourceClaim | None, new: ResourceClaim, want: str
) -> None:
    harness = scheduler(SchedulerPreQueueingHints=True)
    if old is not None:
        harness.put(old)
    before = counted(harness.registry, FAMILY)
    harness.put(new)
    after = counted(harness.registry, FAMILY)
    key = ("DynamicResources", want)
    assert {key: after[key] - before.get(key, 0)} == {key: 1}
    assert sum(after.values()) - sum(before.values()) == 1


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
async def test_the_gate_decides_nothing_else(is_on: bool) -> None:
    harness = scheduler(SchedulerPreQueueingHints=is_on)
    harness.put(node("n1"), with_claims(pod("p"), "c"), with_claims(pod("q"), "d"))
    await harness.until_idle()
    harness.put(claim("c", allocated=allocation("gpu-0")))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}
    assert bool(counted(harness.registry, FAMILY)) is is_on
