"""Claims as the watch tells them, with what is assumed and what is in flight (spec §4.8)."""

import pytest

from berth.framework.devices.claims import OutOfSyncError, ResourceClaims
from berth.objects.devices import EXTENDED_RESOURCE_CLAIM, DeviceId, ResourceClaim
from tests.device_builders import DRIVER, allocation, claim, got

A = DeviceId(DRIVER, "n1", "a")
B = DeviceId(DRIVER, "n1", "b")


class Told:
    """Follows claims."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []

    def __call__(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, after = (obj.metadata.resource_version if obj else "" for obj in (old, new))
        self.changes.append((before, after))


def version(claims: ResourceClaims) -> str | None:
    known = claims.get("default", "c")
    return None if known is None else known.metadata.resource_version


def test_an_assumed_claim_is_told_and_counts_until_the_watch_is_newer() -> None:
    claims, told = ResourceClaims(), Told()
    claims.follow(told)
    claims.on_add(claim(version="9"))
    claims.assume(claim(version="11"))
    claims.on_update(claim(version="9"), claim(version="10"))
    assert version(claims) == "11"
    claims.on_update(claim(version="10"), claim(version="12"))
    assert version(claims) == "12"
    claims.on_delete(claim(version="12"))
    assert version(claims) is None
    assert told.changes == [
        ("", "9"),
        ("9", "11"),
        ("11", "12"),
        ("12", ""),
    ]


def test_what_was_assumed_can_be_taken_back() -> None:
    claims = ResourceClaims([claim(version="9")])
    claims.assume(claim(version="11"))
    claims.restore("default", "c")
    assert version(claims) == "9"
    claims.restore("default", "c")
    claims.restore("default", "unknown")
    assert version(claims) == "9"


def test_the_same_version_may_be_assumed() -> None:
    claims = ResourceClaims([claim(version="9")])
    claims.assume(claim(version="9", allocated=allocation("a")))
    assert claims.in_use.is_dedicated(A)


@pytest.mark.parametrize(
    ("known", "want"),
    [
        pytest.param([], "resource claim default/c is not known", id="gone"),
        pytest.param(
            [claim(version="12")],
            "resource claim default/c: resourceVersion 11 is older than the known 12",
            id="newer",
        ),
    ],
)
def test_what_cannot_be_assumed(known: list[ResourceClaim], want: str) -> None:
    with pytest.raises(OutOfSyncError) as failure:
        ResourceClaims(known).assume(claim(version="11"))
    assert str(failure.value) == want


def test_devices_follow_claims() -> None:
    claims = ResourceClaims([claim(version="1", allocated=allocation("a"))])
    assert claims.in_use.is_dedicated(A)
    claims.on_update(claim(version="1"), claim(version="2", allocated=allocation("b")))
    assert (claims.in_use.is_dedicated(A), claims.in_use.is_dedicated(B)) == (False, True)
    claims.on_delete(claim(version="2"))
    assert not claims.in_use.is_dedicated(B)


def test_a_recreated_claim_has_nothing_of_the_old_one() -> None:
    claims = ResourceClaims([claim("c", version="5", allocated=allocation("a"))])
    other = claim("c", ns="default", version="3")
    recreated = ResourceClaim(
        metadata=type(other.metadata)(
            name="c", namespace="default", uid="another", resource_version="6"
        )
    )
    claims.on_add(recreated)
    assert not claims.in_use.is_dedicated(A)


def test_shares_add_up_and_go() -> None:
    one = claim("c", allocated=allocation(got("a", share="s1", consumed={"m": "2"})))
    two = claim("d", allocated=allocation(got("a", share="s2", consumed={"m": "3"})))
    claims = ResourceClaims([one, two])
    in_use = claims.in_use
    assert (in_use.is_dedicated(A), in_use.is_allocated(A), in_use.is_consumed(A)) == (
        False,
        True,
        True,
    )
    assert in_use.consumed(A) == {"m": 5 * 10**9}
    claims.on_delete(one)
    claims.on_delete(two)
    assert (in_use.is_allocated(A), in_use.is_consumed(A), in_use.consumed(A)) == (
        False,
        False,
        {},
    )


def test_an_allocation_in_flight_has_its_devices() -> None:
    claims = ResourceClaims([claim(version="1")])
    waiting = claim(version="1")
    claims.start_allocation(waiting.metadata.uid, allocation("a"))
    assert claims.is_in_flight(waiting.metadata.uid)
    claims.on_update(waiting, claim(version="2"))
    assert claims.in_use.is_dedicated(A)
    assert claims.end_allocation(waiting)
    assert not claims.in_use.is_dedicated(A)
    assert not claims.end_allocation(waiting)


def test_what_was_written_takes_the_place_of_what_is_in_flight() -> None:
    claims = ResourceClaims([claim(version="1")])
    claims.start_allocation(claim().metadata.uid, allocation("a"))
    claims.assume(claim(version="2", allocated=allocation("a")))
    claims.end_allocation(claim())
    assert claims.in_use.is_dedicated(A)


def test_the_claim_for_a_pods_extended_resources() -> None:
    made = claim("c", owner="uid-1", annotations={EXTENDED_RESOURCE_CLAIM: "true"})
    claims = ResourceClaims([made, claim("other", owner="uid-2")])
    assert claims.for_extended_resources("uid-1") is made
    assert claims.for_extended_resources("uid-2") is None
    claims.on_delete(made)
    assert claims.for_extended_resources("uid-1") is None
