"""DynamicResources: which claims a pod means, and which nodes have devices for them."""

import msgspec
import pytest

from berth.kube.objects.devices import (
    DeviceRequest,
    ResourceClaim,
)
from berth.kube.objects.pod import Pod, PodResourceClaim
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation, ResourceClaimTracker
from tests.builders import pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    exactly,
    first_available,
    resource_slice,
    with_claims,
    with_template_claim,
)
from tests.plugins.dynamic_resources.device_world import ELSEWHERE, NO, SLICES, Objects, World

POD = pod("p", uid="me")
MINE = with_claims(POD, "c")


# Which claims a pod means.


@pytest.mark.parametrize(
    ("a_pod", "claims", "want"),
    [
        pytest.param(MINE, [], 'could not find ResourceClaim "default/c"', id="not there"),
        pytest.param(
            MINE,
            [claim("c", deleted="2026-01-01T00:00:00Z")],
            'resourceclaim "c" is being deleted',
            id="going away",
        ),
        pytest.param(
            with_template_claim(POD, "t", known=False),
            [],
            'pod "default/p": ResourceClaim not created yet',
            id="not made from its template yet",
        ),
        pytest.param(
            with_template_claim(POD, "t", made="c"),
            [claim("c", owner="other")],
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="made for another pod",
        ),
    ],
)
def test_claims_that_cannot_be_used(a_pod: Pod, claims: Objects, want: str) -> None:
    world = World(*claims)
    refusal = Status.unresolvable(want)
    assert world.plugin.pre_enqueue(PodInfo(a_pod)) == refusal
    assert world.pre_filter(a_pod) == refusal
    assert world.post_filter(a_pod) == Status.unschedulable("no new claims to deallocate")


def test_a_reference_of_an_unknown_form() -> None:
    spec = msgspec.structs.replace(POD.spec, resource_claims=(PodResourceClaim(name="x"),))
    status = World().pre_filter(msgspec.structs.replace(POD, spec=spec))
    assert status == Status.unresolvable(
        'pod "default/p", spec.resourceClaim "x": none of the supported fields are set'
    )


@pytest.mark.parametrize(
    "a_pod",
    [
        pytest.param(POD, id="no claims"),
        pytest.param(with_template_claim(POD, "t"), id="a claim that turned out not to be needed"),
    ],
)
def test_pods_without_claims_are_not_looked_at(a_pod: Pod) -> None:
    world = World()
    assert world.plugin.pre_enqueue(PodInfo(a_pod)) is None
    assert world.pre_filter(a_pod) == SKIP
    assert world.plugin.score(world.state, PodInfo(a_pod), world.nodes).tolist() == [0] * 4
    assert world.plugin.pre_bind_pre_flight(world.state, PodInfo(a_pod), "n1") == SKIP


@pytest.mark.parametrize(
    ("a_claim", "want"),
    [
        pytest.param(
            claim("c", exactly(of="tpu")),
            "request r0: device class tpu does not exist",
            id="no such class",
        ),
        pytest.param(
            claim("c", first_available("r", x=exactly(of="tpu"))),
            "request r/x: device class tpu does not exist",
            id="no such class for an alternative",
        ),
        pytest.param(
            claim("c", DeviceRequest(name="r")),
            "request r: unsupported request type",
            id="a form that we do not know",
        ),
    ],
)
def test_requests_that_cannot_be_served(a_claim: ResourceClaim, want: str) -> None:
    assert World(a_claim).pre_filter(MINE) == Status.unresolvable(want)


def test_a_claim_that_is_being_allocated_for_another_pod() -> None:
    world = World(claim("c"))
    tracker = world.cluster.listers.shared(ResourceClaimTracker)
    tracker.signal_claim_pending_allocation(
        claim("c").metadata.uid, PendingAllocation(allocation("a"))
    )
    assert world.pre_filter(MINE) == Status.unresolvable(
        "resource claim default/c is in the process of being allocated"
    )


# Filter.

INVALID = Status.unresolvable("invalid resource pools were encountered")


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param(
            [claim("c", exactly(2)), *SLICES], {"n1": None, "n2": NO, "n3": NO}, id="two devices"
        ),
        pytest.param(
            [claim("c", allocated=allocation("a", node="n2")), *SLICES],
            {"n1": ELSEWHERE, "n2": None, "n3": ELSEWHERE},
            id="allocated on a node",
        ),
        pytest.param(
            [claim("c", allocated=allocation("a"))],
            {"n1": None, "n2": None, "n3": None},
            id="allocated for everywhere",
        ),
        pytest.param(
            [claim("c"), resource_slice("s", device("a"), device("a"), node="n1")],
            {
                "n1": Status.unresolvable("invalid resource pools were encountered"),
                "n2": NO,
                "n3": NO,
            },
            id="an invalid pool",
        ),
        pytest.param(
            [claim("c", exactly(where=["1 / 0 == 1"])), *SLICES],
            {
                name: Status.error(
                    f"claim default/c: selector #0 on device gpu.example.com/{name}/a:"
                    " CEL runtime error: divide by zero"
                )
                for name in ("n1", "n2")
            }
            | {"n3": NO},
            id="a selector that fails",
        ),
    ],
)
def test_filter(objects: Objects, want: dict[str, Status | None]) -> None:
    assert World(*objects).filter(MINE) == want


def test_where_nothing_is_found_it_does_not_matter_that_a_claim_is_elsewhere() -> None:
    world = World(
        claim("c", exactly(2)), claim("d", allocated=allocation("z", pool="x", node="n2")), *SLICES
    )
    assert world.filter(with_claims(POD, "c", "d")) == {"n1": ELSEWHERE, "n2": NO, "n3": NO}
    assert world.post_filter(POD) == Status.unschedulable("deallocation of ResourceClaim completed")


def test_rows_that_others_rejected_are_not_searched() -> None:
    world = World(claim("c"), *SLICES)
    world.state.feasible[world.nodes.row_of["n1"]] = False
    world.filter(MINE)
    assert world.found == {"n2": ["a"]}


def test_answers_are_kept_while_nothing_changes_for_the_node() -> None:
    world = World(claim("c"), claim("d"), *SLICES)
    world.filter(MINE)
    world.cluster.resource_claims.put(claim("o", allocated=allocation("a", pool="n1")))
    assert world.filter(with_claims(POD, "d"))["n1"] is None
    assert world.found == {"n1": ["b"], "n2": ["a"]}
    world.cluster.listers.resource_slices.on_delete(SLICES[1])
    assert world.filter(MINE)["n2"] == NO
