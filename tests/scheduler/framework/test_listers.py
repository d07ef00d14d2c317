"""Listers, and those who work something out from every object."""

from berth.kube.objects.storage import PersistentVolumeClaim
from berth.scheduler.framework.listers import Lister
from tests.volume_builders import claim


def test_objects_by_namespace_and_name() -> None:
    a, b = claim("c", ns="a"), claim("c", ns="b")
    lister = Lister([a, b])
    assert lister.get("a", "c") is a
    assert lister.get("b", "c") is b
    assert lister.get("x", "c") is None
    assert list(lister) == [a, b]


def test_nothing_is_left_of_namespaces_that_are_empty() -> None:
    lister = Lister([claim("c", ns="a")])
    was_empty = [lister.is_empty]
    lister.on_delete(claim("c", ns="a"))
    lister.on_delete(claim("c", ns="b"))  # is not there

    assert [*was_empty, lister.is_empty] == [False, True]
    assert lister._by_namespace == {}


def test_followers_hear_of_what_is_there_and_of_every_change() -> None:
    first = claim("first", version="1")
    lister = Lister([first])
    heard: list[tuple[PersistentVolumeClaim | None, PersistentVolumeClaim | None]] = []
    lister.follow(lambda old, new: heard.append((old, new)))

    newer, second = claim("first", version="2"), claim("second")
    lister.on_update(first, newer)
    lister.on_add(second)
    lister.on_delete(newer)
    assert heard == [(None, first), (first, newer), (None, second), (newer, None)]


def test_the_version_changes_with_every_change() -> None:
    lister = Lister([claim()])
    versions = [lister.version]
    for change in (lister.on_add, lister.on_delete):
        change(claim())
        versions.append(lister.version)
    assert len(set(versions)) == len(versions)


def test_deleting_what_is_not_known_changes_nothing() -> None:
    lister, heard = Lister([claim()]), []
    version = lister.version
    lister.follow(lambda *change: heard.append(change))
    lister.on_delete(claim("another"))
    assert (lister.version, len(heard)) == (version, 1)
