"""``/debug/devices``: what drivers publish, with who has it."""

import pytest

from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation, ResourceClaimTracker
from tests.builders import pod, taint
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    exactly,
    got,
    resource_slice,
    version,
)
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import Object, all_pages, get


@pytest.fixture
def harness() -> Harness:
    """Devices a to c of n1, of which a is taken and b shared; one that all nodes reach."""
    made = Harness()
    made.put(
        resource_slice(
            "near",
            device(
                "a",
                attributes={"model": "x1", "driverVersion": version("1.2.3"), "index": 0},
                capacity={"memory": "40Gi"},
                taints=[taint("broken", "yes")],
            ),
            device("b", shared=True),
            device("c"),
            node="n1",
        ),
        resource_slice("far", device("a"), driver="nic.example.com", pool="p", all_nodes=True),
        claim("one", exactly(), allocated=allocation("a"), users=["w"]),
        claim(
            "share",
            exactly(),
            allocated=allocation(got("b", share="s1", consumed={"memory": "10Gi"})),
        ),
        claim("waits", exactly()),
        pod("w"),
    )
    return made


def held(name: str, **fields: object) -> Object:
    """An allocation of claim default/*name*, which is all alone unless *fields* say otherwise."""
    return {
        "claim": f"default/{name}",
        "request": "r0",
        "adminAccess": False,
        "shareId": "",
        "consumedCapacity": {},
        "isWritten": True,
        "pods": [],
        **fields,
    }


async def test_a_device_with_everything(harness: Harness) -> None:
    told = await get(harness, "/debug/devices?device=a&driver=" + DRIVER)
    (item,) = told["items"]
    assert item == {
        "driver": DRIVER,
        "pool": "n1",
        "device": "a",
        "resourceSlice": "near",
        "node": "n1",
        "attributes": {"model": "x1", "driverVersion": "1.2.3", "index": 0},
        "capacity": {"memory": "40Gi"},
        "taints": ["broken=yes:NoSchedule"],
        "allowMultipleAllocations": False,
        "allocations": [held("one", pods=["default/w"])],
    }
    assert told["counts"] == {"slices": 2, "devices": 4, "allocated": 2}


async def test_a_share_of_a_device(harness: Harness) -> None:
    (item,) = (await get(harness, "/debug/devices?claim=default/share"))["items"]
    shares = held("share", shareId="s1", consumedCapacity={"memory": "10Gi"})
    assert (item["device"], item["allocations"]) == ("b", [shares])


async def test_a_device_that_is_promised_and_not_written_yet(harness: Harness) -> None:
    tracker = harness.listers.shared(ResourceClaimTracker)
    (waits,) = (each for each in tracker if each.metadata.name == "waits")
    pending = PendingAllocation(allocation("c"))
    tracker.signal_claim_pending_allocation(waits.metadata.uid, pending)

    (item,) = (await get(harness, "/debug/devices?device=c"))["items"]
    assert item["allocations"] == [held("waits", isWritten=False)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["a n1", "b n1", "c n1", "a p"], id="all, by driver, pool and name"),
        pytest.param("driver=nic.example.com", ["a p"], id="of a driver"),
        pytest.param("pool=n1&allocated=true", ["a n1", "b n1"], id="of a pool, in use"),
        pytest.param("allocated=false", ["c n1", "a p"], id="that are free"),
        pytest.param("node=n1", ["a n1", "b n1", "c n1"], id="of a node"),
        pytest.param("node=n2", [], id="of no such node"),
        pytest.param("name=n1/b", ["b n1"], id="by a part of the name"),
        pytest.param("claim=default/waits", [], id="of a claim that has none"),
    ],
)
async def test_filters(harness: Harness, query: str, names: list[str]) -> None:
    found = await all_pages(harness, f"/debug/devices?{query}", limit=2)
    assert [f"{each['device']} {each['pool']}" for each in found] == names
