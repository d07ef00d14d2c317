"""Pods and devices that a DeviceTaintRule taints (spec G15.1)."""

from typing import Any

import pytest

from berth.kube.objects.devices import (
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
)
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.node import Taint
from tests.builders import node, pod
from tests.device_builders import (
    DRIVER,
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    with_claims,
)
from tests.harness import Harness

GATE = "DRADeviceTaintRules"


def broken(effect: str = "NoSchedule", *, name: str = "gpu-0") -> DeviceTaintRule:
    return DeviceTaintRule(
        spec=DeviceTaintRuleSpec(
            taint=Taint(key="example.com/broken", effect=effect),
            device_selector=DeviceTaintSelector(driver=DRIVER, device=name),
        ),
        metadata=ObjectMeta(name="broken"),
    )


def scheduler(*, is_on: bool = True) -> Harness:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {GATE: is_on},
    }
    harness = Harness(config=config)
    harness.put(node("n1"), device_class("gpu"), resource_slice("s", device("gpu-0"), node="n1"))
    return harness


async def test_a_pod_waits_until_the_rule_is_gone() -> None:
    harness = scheduler()
    harness.put(broken(), claim("c"), with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert "cannot allocate all claims" in harness.cluster.conditions["default/p"].message

    harness.delete(broken())
    await harness.pass_time(10)  # the backoff; nothing else would wake it before five minutes
    assert harness.placements() == {"p": "n1"}


@pytest.mark.parametrize(
    ("effect", "tolerated", "want"),
    [
        pytest.param("NoSchedule", "example.com/broken", {"p": "n1"}, id="tolerated"),
        pytest.param("NoExecute", "other", {}, id="something else is tolerated"),
        pytest.param("None", "", {"p": "n1"}, id="an effect that only tells"),
    ],
)
async def test_effects(effect: str, tolerated: str, want: dict[str, str]) -> None:
    harness = scheduler()
    tolerations = [DeviceToleration(key=tolerated, operator="Exists")] if tolerated else []
    harness.put(broken(effect), claim("c", exactly(tolerations=tolerations)))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == want


async def test_with_the_gate_off_rules_mean_nothing() -> None:
    harness = scheduler(is_on=False)
    harness.listers.device_taint_rules.on_add(broken())
    harness.put(claim("c"), with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}
    watched = {kind.resource for kind in harness.core.handlers}
    assert "devicetaintrules" not in watched
