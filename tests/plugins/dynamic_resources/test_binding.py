"""DynamicResources from Reserve to the API: scenarios on a fake cluster."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.features import DEFAULT
from berth_plugins.dynamic_resources.pools import shared_pools
from tests.builders import node, pod
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    device_class,
    exactly,
    first_available,
    resource_slice,
    said,
    with_claims,
)
from tests.fake_claims import Write
from tests.harness import Harness
from tests.scheduler.metrics.reading import counted, summed

GPU = "example.com/gpu"


def a_world(
    *claims: ResourceClaim, conditions: Sequence[str] = (), binding_timeout: str = "600s"
) -> Harness:
    """Two nodes with two devices each."""
    args = {"bindingTimeout": binding_timeout}
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": args}]}],
        }
    )
    harness.put(device_class(), device_class("ext", extended_resource=GPU))
    for name in ("n1", "n2"):
        devices = [device(f"{name}-{i}", conditions=conditions, failures=["Bad"]) for i in range(2)]
        harness.put(node(name), resource_slice(name, *devices, node=name))
    harness.put(*claims)
    return harness


def holders(harness: Harness, name: str) -> tuple[list[str], list[str]]:
    """Return the devices of a claim on the server, and who uses it."""
    status = harness.cluster.resource_claims.claim(name).status
    results = status.allocation.devices.results if status.allocation else ()
    return [got.device for got in results], [user.name for user in status.reserved_for]


async def test_a_pod_gets_its_devices_and_then_its_node() -> None:
    harness = a_world(claim("c", exactly(2)))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    on = harness.placements()["p"]
    assert holders(harness, "c") == ([f"{on}-0", f"{on}-1"], ["p"])
    assert harness.cluster.resource_claims.writes == [
        Write("update", "c"),
        Write("update status", "c"),
    ]


async def test_pods_do_not_get_the_same_devices() -> None:
    harness = a_world(*(claim(f"c{i}") for i in range(5)))
    harness.put(*(with_claims(pod(f"p{i}"), f"c{i}") for i in range(5)))
    await harness.until_idle()
    devices = [holders(harness, f"c{i}")[0] for i in range(5)]
    assert sorted(map(len, devices)) == [0, 1, 1, 1, 1]
    assert len({name for got in devices for name in got}) == 4
    assert len(harness.placements()) == 4


async def test_pods_share_a_claim_on_its_node() -> None:
    harness = a_world(claim("c"))
    harness.put(with_claims(pod("p1"), "c"), with_claims(pod("p2"), "c"))
    await harness.until_idle()
    placements = harness.placements()
    assert placements["p1"] == placements["p2"]
    assert holders(harness, "c") == ([f"{placements['p1']}-0"], ["p1", "p2"])


async def test_a_pod_waits_for_its_claim_and_for_devices() -> None:
    harness = a_world()
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert (harness.placements(), harness.cluster.conditions) == ({}, {})  # gated
    taken = [
        claim("o0", exactly(2), allocated=allocation("n1-0", "n1-1", pool="n1")),
        claim("o1", exactly(2), allocated=allocation("n2-0", "n2-1", pool="n2")),
    ]
    harness.put(*taken, claim("c"))
    await harness.until_idle()
    assert harness.cluster.conditions["default/p"].message.startswith(
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption:"
    )
    harness.put(claim("o1"))
    harness.clock.advance(10)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {"p": "n2"}


async def test_a_failed_binding_gives_the_claim_back() -> None:
    harness = a_world(claim("c"))
    harness.cluster.bind_error = OSError("no route")
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    devices, users = holders(harness, "c")
    assert (len(devices), users) == (1, [])
    assert harness.placements() == {}
    assert harness.cluster.resource_claims.writes[-1] == Write("patch status", "c")


async def test_a_claim_that_cannot_be_written_leaves_its_devices_to_others() -> None:
    harness = a_world(claim("c", exactly(2)))
    harness.cluster.resource_claims.error = OSError("no route")
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    condition = harness.cluster.conditions["default/p"]
    assert (condition.reason, condition.message) == (
        "SchedulerError",
        'running PreBind plugin "DynamicResources": add finalizer to claim default/c: no route',
    )
    in_use = harness.cluster.listers.shared(ResourceClaimTracker).in_use
    assert not any(
        in_use.is_allocated(found.id)
        for pool in shared_pools(harness.cluster.listers, DEFAULT).pools_of(node("n1"))
        for found in pool.devices
    )


async def test_devices_stay_taken_while_the_watch_lags() -> None:
    harness = a_world(claim("c1", exactly(2)), claim("c2", exactly(2)), claim("c3", exactly(2)))
    harness.cluster.resource_claims.lags = True
    harness.put(*(with_claims(pod(f"p{i}"), f"c{i}") for i in (1, 2, 3)))
    await harness.until_idle()
    assert len(harness.placements()) == 2
    harness.cluster.resource_claims.refresh()
    await harness.until_idle()
    assert len(harness.placements()) == 2


async def test_an_unused_claim_elsewhere_is_moved() -> None:
    harness = a_world(claim("c", allocated=allocation("gone-0", pool="gone", node="gone")))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    harness.clock.advance(10)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert list(harness.placements()) == ["p"]


async def test_earlier_alternatives_decide_the_node() -> None:
    harness = a_world(
        claim("c", first_available("r", two=exactly(2), one=exactly(1))),
        claim("o", allocated=allocation("n1-0", pool="n1")),
    )
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n2"}


# Extended resources.


def asking(name: str, amount: int) -> Pod:
    return pod(name, requests={GPU: amount})


@pytest.mark.parametrize("lags", [False, True])
async def test_extended_resources_get_a_claim_of_their_own(lags: bool) -> None:
    harness = a_world()
    server = harness.cluster.resource_claims
    server.lags = lags
    harness.put(asking("p", 2))
    if lags:
        idle = asyncio.ensure_future(harness.until_idle())
        for _ in range(20):
            await asyncio.sleep(0)
        server.refresh()
        harness.clock.advance(1)
        await idle
    else:
        await harness.until_idle()
    on = harness.placements()["p"]
    (name,) = server.names()
    assert name.startswith("p-extended-resources-")
    assert holders(harness, name) == ([f"{on}-0", f"{on}-1"], ["p"])
    status = harness.cluster.pods["default/p"].status.extended_resource_claim_status
    assert status is not None
    assert status.resource_claim_name == name
    in_use = harness.cluster.listers.shared(ResourceClaimTracker).in_use
    (pool,) = shared_pools(harness.cluster.listers, DEFAULT).pools_of(node(on))
    assert [in_use.is_dedicated(found.id) for found in pool.devices] == [True, True]


async def test_a_claim_made_in_vain_is_deleted() -> None:
    harness = a_world()
    harness.cluster.bind_error = OSError("no route")
    harness.put(asking("p", 1))
    await harness.until_idle()
    assert harness.cluster.resource_claims.names() == []
    harness.cluster.bind_error = None
    harness.clock.advance(10)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert list(harness.placements()) == ["p"]


# Binding conditions.

PENDING = "waiting for binding conditions for device on node "


async def ready_or_not(*conditions: str, advance: float) -> Harness:
    """Bind a pod whose device has to get *conditions*, which its driver tells after 5 s."""
    harness = a_world(claim("c"), conditions=["Up"])
    harness.put(with_claims(pod("p"), "c"))
    idle = asyncio.ensure_future(harness.until_idle())
    for _ in range(20):
        await asyncio.sleep(0)
    assert harness.placements() == {}
    (event,) = harness.cluster.events
    assert event.note.startswith(PENDING)
    assert event[:3] == ("default/p", "Normal", "BindingConditionsPending")
    written = harness.cluster.resource_claims.claim("c")
    assert written.status.allocation is not None
    (result,) = written.status.allocation.devices.results
    told = said(result.device, *conditions, pool=result.pool)
    harness.put(
        claim("c", allocated=written.status.allocation, users=["pod-default-p"], devices=[told])
    )
    harness.clock.advance(advance)
    await idle
    return harness


def waits(harness: Harness) -> dict[tuple[str, ...], float]:
    """Return how long was waited, by driver, profile and status; each must have been once."""
    name = "scheduler_dra_bindingconditions_wait_duration_seconds"
    counts = counted(harness.registry, "scheduler_dra_bindingconditions_allocations_total")
    assert counts == counted(harness.registry, name)
    assert set(counts.values()) <= {1}
    return summed(harness.registry, name) if counts else {}


async def test_a_pod_is_bound_when_its_devices_are_ready() -> None:
    harness = await ready_or_not("Up", advance=5)
    assert list(harness.placements()) == ["p"]
    assert waits(harness) == {(DRIVER, "default-scheduler", "success"): 5}


async def test_a_pod_whose_devices_need_not_get_ready_does_not_wait() -> None:
    harness = a_world(claim("c"))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert waits(harness) == {}


async def waiting() -> tuple[Harness, asyncio.Future[None]]:
    """Return a harness with a pod whose device has to get ready, and its becoming idle."""
    harness = a_world(claim("c"), conditions=["Up"])
    harness.put(with_claims(pod("p"), "c"))
    idle = asyncio.ensure_future(harness.until_idle())
    for _ in range(20):
        await asyncio.sleep(0)
    return harness, idle


def message(harness: Harness) -> str:
    """Return why the pod was not scheduled, which must be an error."""
    condition = harness.cluster.conditions["default/p"]
    assert condition.reason == "SchedulerError"
    return condition.message


async def test_a_wait_ends_when_the_claim_is_gone() -> None:
    harness, idle = await waiting()
    harness.cluster.resource_claims.remove("c")
    harness.clock.advance(5)
    await idle
    assert harness.placements() == {}
    assert waits(harness) == {(DRIVER, "default-scheduler", "error"): 5}
    want = 'running PreBind plugin "DynamicResources": could not find ResourceClaim "default/c"'
    assert message(harness) == want


def deallocated(written: ResourceClaim) -> ResourceClaim:
    return claim("c")


def released(written: ResourceClaim) -> ResourceClaim:
    assert written.status.allocation is not None
    device = written.status.allocation.devices.results[0]
    told = said(device.device, "Up", pool=device.pool)
    return claim("c", allocated=written.status.allocation, devices=[told])


def terminating(written: ResourceClaim) -> ResourceClaim:
    return claim(
        "c",
        allocated=written.status.allocation,
        users=["pod-default-p"],
        deleted="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize("changed", [deallocated, released, terminating])
async def test_a_claim_that_lost_what_the_pod_needs_is_never_ready(
    changed: Callable[[ResourceClaim], ResourceClaim],
) -> None:
    harness, idle = await waiting()
    harness.put(changed(harness.cluster.resource_claims.claim("c")))
    for _ in range(119):
        harness.clock.advance(5)
        for _ in range(20):
            await asyncio.sleep(0)
    assert not idle.done()
    assert harness.placements() == {}
    harness.clock.advance(5)
    await idle
    assert message(harness).endswith("device binding timeout: context deadline exceeded")


async def test_the_time_runs_out_between_two_looks() -> None:
    harness = a_world(claim("c"), conditions=["Up"], binding_timeout="7s")
    harness.put(with_claims(pod("p"), "c"))
    idle = asyncio.ensure_future(harness.until_idle())
    for _ in range(20):
        await asyncio.sleep(0)
    harness.clock.advance(5)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not idle.done()
    harness.clock.advance(2)
    await idle
    assert waits(harness) == {(DRIVER, "default-scheduler", "timeout"): 7}


@pytest.mark.parametrize(
    ("conditions", "advance", "want", "status"),
    [
        pytest.param(
            ["Bad"],
            5.0,
            'device binding failed: claim=c, reason=, message=""',
            "failure",
            id="failed",
        ),
        pytest.param(
            [],
            600.0,
            "device binding timeout: context deadline exceeded",
            "timeout",
            id="took too long",
        ),
    ],
)
async def test_a_pod_is_not_bound_when_its_devices_do_not_get_ready(
    conditions: list[str], advance: float, want: str, status: str
) -> None:
    harness = await ready_or_not(*conditions, advance=advance)
    assert harness.placements() == {}
    assert waits(harness) == {(DRIVER, "default-scheduler", status): advance}
    assert message(harness) == f'running PreBind plugin "DynamicResources": {want}'
    assert holders(harness, "c")[1] == []
