"""A 1.36 scheduler with gates of devices off that are on by default (spec G17).

Later releases lock some of them (1.37 spec N4.2).
"""

from typing import Any

import pytest

from berth.scheduler.config.errors import ConfigError
from tests.builders import node, pod
from tests.device_builders import claim, device, device_class, resource_slice, with_claims
from tests.harness import Harness

GPU = "example.com/gpu"


def scheduler(*off: str, **args: str) -> Harness:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": dict.fromkeys(off, False),
        "emulatedVersion": "1.36",
    }
    if args:
        config["profiles"] = [{"pluginConfig": [{"name": "DynamicResources", "args": args}]}]
    return Harness(config=config)


@pytest.mark.parametrize(
    ("off", "want"),
    [
        pytest.param((), {"p": "n1"}, id="on"),
        pytest.param(("DRAExtendedResource",), {}, id="off"),
    ],
)
async def test_extended_resources(off: tuple[str, ...], want: dict[str, str]) -> None:
    harness = scheduler(*off)
    harness.put(node("n1"), device_class("gpu", extended_resource=GPU))
    harness.put(resource_slice("s", device("gpu-0"), node="n1"))
    harness.put(pod("p", requests={GPU: 1}))
    await harness.until_idle()
    assert harness.placements() == want
    if not want:
        message = harness.cluster.conditions["default/p"].message
        assert message.startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")


@pytest.mark.parametrize(
    "off",
    [
        ("DRAConsumableCapacity",),
        ("DRADeviceBindingConditions",),
        ("DRADeviceTaints",),
        ("DRAPartitionableDevices",),
        ("DRAPrioritizedList",),
        ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        ("DRASchedulerFilterTimeout",),
    ],
    ids=" ".join,
)
async def test_plain_claims_are_allocated_with_any_gate_off(off: tuple[str, ...]) -> None:
    harness = scheduler(*off)
    harness.put(node("n1"), device_class(), resource_slice("s", device("gpu-0"), node="n1"))
    harness.put(claim("c"), with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


@pytest.mark.parametrize(
    ("off", "arg", "want"),
    [
        pytest.param(
            "DRASchedulerFilterTimeout",
            {"filterTimeout": "5s"},
            "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
            id="filterTimeout",
        ),
        pytest.param(
            "DRADeviceBindingConditions",
            {"bindingTimeout": "5s"},
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
            " feature gate is disabled",
            id="bindingTimeout",
        ),
    ],
)
def test_arguments_without_effect_are_refused(off: str, arg: dict[str, str], want: str) -> None:
    with pytest.raises(ConfigError) as failure:
        scheduler(off, **arg)
    assert want in str(failure.value)
    scheduler(**arg)
