"""What is assumed lasts until the API knows better."""

import pytest

from berth.framework.listers import Lister
from berth.framework.volumes.assume_cache import AssumeCache, OutOfSyncError
from berth.objects.storage import PersistentVolume
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
    assert cache.assumed() == {("", "pv"): ASSUMED}

    cache.restore(ASSUMED)
    assert cache.get("", "pv") is KNOWN
    assert cache.assumed() == {}


def test_restoring_what_was_not_assumed_does_nothing(cache: AssumeCache[PersistentVolume]) -> None:
    cache.restore(ASSUMED)
    assert cache.get("", "pv") is KNOWN


def test_a_new_version_ends_the_assumption(
    cache: AssumeCache[PersistentVolume], lister: Lister[PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    newer = volume("pv", version="6")
    lister.on_update(KNOWN, newer)
    assert cache.get("", "pv") is newer
    assert cache.assumed() == {}


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
    assert cache.assumed() == {}


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
    assert cache.assumed() == {}
