"""What is assumed lasts until the API knows better."""

import pytest

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.storage import PersistentVolume
from berth.scheduler.framework.assume_cache import AssumeCache, OutOfSyncError
from berth.scheduler.framework.listers import Lister
from tests.device_builders import claim
from tests.volume_builders import volume

KNOWN = volume("pv", version="5")
ASSUMED = volume("pv", version="5", annotations={"assumed": "yes"})


@pytest.fixture
def lister() -> Lister[PersistentVolume]:
    return Lister([KNOWN])


@pytest.fixture
def cache(lister: Lister[PersistentVolume]) -> AssumeCache[PersistentVolume]:
    return AssumeCache(lister)


def test_what_is_assumed_stands_for_what_is_known(cache: AssumeCache[PersistentVolume]) -> None:
    assert cache.get("", "pv") is KNOWN
    assert cache.get("", "other") is None

    cache.assume(ASSUMED)
    assert cache.get("", "pv") is ASSUMED
    assert cache.assumed == {("", "pv"): ASSUMED}

    cache.restore("", "pv")
    assert cache.get("", "pv") is KNOWN
    assert cache.assumed == {}


def test_restoring_what_was_not_assumed_does_nothing(cache: AssumeCache[PersistentVolume]) -> None:
    cache.restore("", "pv")
    assert cache.get("", "pv") is KNOWN


def test_a_new_version_ends_the_assumption(
    cache: AssumeCache[PersistentVolume], lister: Lister[PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    newer = volume("pv", version="6")
    lister.on_update(KNOWN, newer)
    assert cache.get("", "pv") is newer
    assert cache.assumed == {}


def test_the_same_version_again_does_not(
    cache: AssumeCache[PersistentVolume], lister: Lister[PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    lister.on_update(KNOWN, volume("pv", version="5"))
    assert cache.get("", "pv") is ASSUMED


def test_deletion_ends_the_assumption(
    cache: AssumeCache[PersistentVolume], lister: Lister[PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    lister.on_delete(KNOWN)
    assert cache.get("", "pv") is None
    assert cache.assumed == {}


@pytest.mark.parametrize(
    ("obj", "error"),
    [
        pytest.param(
            volume("pv", version="4"),
            '"pv" is out of sync (stored: 5, assume: 4)',
            id="made from an older version",
        ),
        pytest.param(
            volume("gone", version="4"),
            '"gone" is out of sync (stored: , assume: 4)',
            id="made from an object that is gone",
        ),
    ],
)
def test_only_the_newest_version_can_be_assumed(
    cache: AssumeCache[PersistentVolume], obj: PersistentVolume, error: str
) -> None:
    with pytest.raises(OutOfSyncError) as raised:
        cache.assume(obj)
    assert str(raised.value) == error
    assert cache.assumed == {}


# ResourceClaims are assumed with the version that the API server answered.


def version(claims: AssumeCache[ResourceClaim]) -> str | None:
    known = claims.get("default", "c")
    return None if known is None else known.metadata.resource_version


def test_followers_hear_of_what_is_assumed_until_the_watch_is_newer() -> None:
    lister: Lister[ResourceClaim] = Lister()
    claims, heard = AssumeCache(lister), []

    def hear(*change: ResourceClaim | None) -> None:
        heard.append([obj and obj.metadata.resource_version for obj in change])

    claims.follow(hear)
    lister.on_add(claim(version="9"))
    claims.assume(claim(version="11"))
    lister.on_update(claim(version="9"), claim(version="10"))
    assert version(claims) == "11"
    lister.on_update(claim(version="10"), claim(version="12"))
    assert version(claims) == "12"
    lister.on_delete(claim(version="12"))
    assert version(claims) is None
    assert heard == [[None, "9"], ["9", "11"], ["11", "12"], ["12", None]]


def test_what_was_assumed_can_be_taken_back() -> None:
    claims = AssumeCache(Lister([claim(version="9")]))
    claims.assume(claim(version="11"))
    claims.restore("default", "c")
    assert version(claims) == "9"
    claims.restore("default", "c")
    claims.restore("default", "unknown")
    assert version(claims) == "9"


def test_the_same_version_and_newer_ones_may_be_assumed() -> None:
    claims = AssumeCache(Lister([claim(version="9")]))
    for assumed in (claim(version="9"), claim(version="10")):
        claims.assume(assumed)
        assert claims.get("default", "c") is assumed
        assert list(claims) == [assumed]


def test_an_object_made_again_ends_what_was_assumed_of_the_first() -> None:
    lister = Lister([claim(version="9")])
    claims = AssumeCache(lister)
    claims.assume(claim(version="11"))
    again = ResourceClaim(
        metadata=ObjectMeta(name="c", namespace="default", uid="another", resource_version="3")
    )
    lister.on_add(again)
    assert claims.get("default", "c") is again
