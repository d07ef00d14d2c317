"""Claims as the watch tells them, with what is assumed and what is in flight (spec §4.8)."""

from berth.kube.objects.devices import EXTENDED_RESOURCE_CLAIM, DeviceId, ResourceClaim
from berth.kube.objects.pod_group import GroupKey
from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation, ResourceClaimTracker
from tests.device_builders import DRIVER, allocation, claim, got, listers

A = DeviceId(DRIVER, "n1", "a")
B = DeviceId(DRIVER, "n1", "b")


def test_devices_follow_claims() -> None:
    known = listers(claim(version="1", allocated=allocation("a")))
    claims = ResourceClaimTracker(known)
    assert claims.in_use.is_dedicated(A)
    known.resource_claims.on_update(
        claim(version="1"), claim(version="2", allocated=allocation("b"))
    )
    assert (claims.in_use.is_dedicated(A), claims.in_use.is_dedicated(B)) == (False, True)
    known.resource_claims.on_delete(claim(version="2"))
    assert not claims.in_use.is_dedicated(B)


def test_a_recreated_claim_has_nothing_of_the_old_one() -> None:
    known = listers(claim("c", version="5", allocated=allocation("a")))
    claims = ResourceClaimTracker(known)
    other = claim("c", ns="default", version="3")
    recreated = ResourceClaim(
        metadata=type(other.metadata)(
            name="c", namespace="default", uid="another", resource_version="6"
        )
    )
    known.resource_claims.on_add(recreated)
    assert not claims.in_use.is_dedicated(A)


def test_shares_add_up_and_go() -> None:
    one = claim("c", allocated=allocation(got("a", share="s1", consumed={"m": "2"})))
    two = claim("d", allocated=allocation(got("a", share="s2", consumed={"m": "3"})))
    known = listers(one, two)
    claims = ResourceClaimTracker(known)
    in_use = claims.in_use
    assert (in_use.is_dedicated(A), in_use.is_allocated(A), in_use.is_consumed(A)) == (
        False,
        True,
        True,
    )
    assert in_use.consumed(A) == {"m": 5 * 10**9}
    known.resource_claims.on_delete(one)
    known.resource_claims.on_delete(two)
    assert (in_use.is_allocated(A), in_use.is_consumed(A), in_use.consumed(A)) == (
        False,
        False,
        {},
    )


def test_an_allocation_in_flight_has_its_devices() -> None:
    known = listers(claim(version="1"))
    claims = ResourceClaimTracker(known)
    waiting = claim(version="1")
    claims.signal_claim_pending_allocation(waiting.metadata.uid, PendingAllocation(allocation("a")))
    assert claims.pending_allocation(waiting.metadata.uid) is not None
    known.resource_claims.on_update(waiting, claim(version="2"))
    assert claims.in_use.is_dedicated(A)
    assert claims.remove_claim_pending_allocation(waiting)
    assert not claims.in_use.is_dedicated(A)
    assert not claims.remove_claim_pending_allocation(waiting)


def test_what_was_written_takes_the_place_of_what_is_in_flight() -> None:
    known = listers(claim(version="1"))
    claims = ResourceClaimTracker(known)
    claims.signal_claim_pending_allocation(claim().metadata.uid, PendingAllocation(allocation("a")))
    claims.assume_claim_after_api_call(claim(version="2", allocated=allocation("a")))
    claims.remove_claim_pending_allocation(claim())
    assert claims.in_use.is_dedicated(A)


def test_the_claim_for_a_pods_extended_resources() -> None:
    made = claim("c", owner="uid-1", annotations={EXTENDED_RESOURCE_CLAIM: "true"})
    known = listers(made, claim("other", owner="uid-2"))
    claims = ResourceClaimTracker(known)
    assert claims.for_extended_resources("uid-1") is made
    assert claims.for_extended_resources("uid-2") is None
    known.resource_claims.on_delete(made)
    assert claims.for_extended_resources("uid-1") is None


def test_a_shared_allocation_in_flight_ends_with_its_last_sharer() -> None:
    claims = ResourceClaimTracker(listers(claim(version="1")))
    shared = PendingAllocation(allocation("a"), GroupKey("default", "g"), {"one", "two"})
    claims.signal_claim_pending_allocation(claim().metadata.uid, shared)
    assert not claims.leave_pending_allocation(claim(), shared, "one")
    assert claims.in_use.is_dedicated(A)
    assert claims.leave_pending_allocation(claim(), shared, "two")
    assert not claims.in_use.is_dedicated(A)


def test_who_leaves_late_does_not_end_the_next_allocation_in_flight() -> None:
    claims = ResourceClaimTracker(listers(claim(version="1")))
    first = PendingAllocation(allocation("a"), sharers={"one"})
    claims.signal_claim_pending_allocation(claim().metadata.uid, first)
    claims.remove_claim_pending_allocation(claim())
    claims.signal_claim_pending_allocation(claim().metadata.uid, PendingAllocation(allocation("b")))
    assert not claims.leave_pending_allocation(claim(), first, "one")
    assert claims.in_use.is_dedicated(B)
