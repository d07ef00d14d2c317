"""The watches of dynamic resources: what they feed, and whom their changes wake."""

import msgspec
import pytest

from berth.framework.listers import Listers
from berth.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.objects.meta import KubeStruct
from berth.scheduler.device_watches import device_watches
from tests.builders import node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    with_claims,
)
from tests.harness import Harness

GROUP = "/apis/resource.k8s.io/v1"


def test_what_is_watched() -> None:
    harness = Harness()
    paths = [watch.path for watch in device_watches(Listers(), harness.queue)]
    assert paths == [
        f"{GROUP}/resourceclaims",
        f"{GROUP}/resourceslices",
        f"{GROUP}/deviceclasses",
    ]


@pytest.mark.parametrize(
    ("position", "obj"),
    [
        pytest.param(0, claim("c"), id="claims"),
        pytest.param(1, resource_slice("s", device("a"), node="n1"), id="slices"),
        pytest.param(2, device_class("gpu"), id="classes"),
    ],
)
def test_what_is_decoded_is_known(position: int, obj: KubeStruct) -> None:
    listers, harness = Listers(), Harness()
    watch = device_watches(listers, harness.queue)[position]
    data = msgspec.json.encode(obj)
    decoded = watch.decode(data)
    watch.handler.on_add(decoded)
    if isinstance(decoded, ResourceClaim):
        assert decoded.raw == data
        assert listers.resource_claims.get("default", "c") is decoded
    watch.handler.on_update(decoded, decoded)
    watch.handler.on_delete(decoded)
    assert listers.resource_claims.get("default", "c") is None
    assert listers.device_classes.get("", "gpu") is None
    assert list(listers.resource_slices) == []


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(resource_slice("s", device("a"), node="n1"), id="a slice"),
        pytest.param(device_class("gpu"), id="a class"),
    ],
)
async def test_a_waiting_pod_is_woken_by_what_it_lacked(
    missing: ResourceSlice | DeviceClass,
) -> None:
    harness = Harness()
    everything: list[ResourceSlice | DeviceClass] = [
        device_class("gpu"),
        resource_slice("s", device("a"), node="n1"),
    ]
    harness.put(node("n1"), claim("c", exactly()))
    harness.put(*(obj for obj in everything if type(obj) is not type(missing)))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {}
    harness.put(*(obj for obj in everything if type(obj) is type(missing)))
    harness.clock.advance(10)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}
