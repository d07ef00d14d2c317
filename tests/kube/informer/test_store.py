"""A store and what its handler is told are the same thing, whatever the server says."""

from collections.abc import Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.informer.identity import Identity, identity_in, identity_of, is_older
from berth.kube.informer.store import Store
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod import Pod
from tests.kube.informer.scripted import Object, obj


class Mirror:
    """Rebuilds the objects from the calls alone, and refuses calls that do not fit."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}

    def on_add(self, obj: Object) -> None:
        assert identity_of(obj).key not in self.objects
        self.objects[identity_of(obj).key] = obj

    def on_update(self, old: Object, new: Object) -> None:
        assert self.objects[identity_of(old).key] is old
        assert identity_of(old).uid == identity_of(new).uid
        self.objects[identity_of(new).key] = new

    def on_delete(self, obj: Object) -> None:
        assert identity_of(self.objects.pop(identity_of(obj).key)).uid == identity_of(obj).uid


names = st.sampled_from("abc")
objects = st.builds(obj, names, st.integers(1, 9), uid=st.sampled_from("xy"))
steps = st.one_of(
    st.tuples(st.just("put"), objects),
    st.tuples(st.just("remove"), objects),
    st.tuples(st.just("replace"), st.lists(objects, max_size=3), st.sets(names)),
)


@given(st.lists(steps, max_size=30))
def test_the_handler_can_rebuild_the_store_from_what_it_is_told(
    history: list[tuple[str, Object] | tuple[str, list[Object], Set[str]]],
) -> None:
    mirror = Mirror()
    store: Store[Object] = Store(mirror, identify=identity_of)
    for step in history:
        match step:
            case ("put", dict() as one):
                store.put(identity_of(one), one)
            case ("remove", dict() as one):
                store.remove(identity_of(one).key, one)
            case ("replace", list() as listed, keep):
                wanted = {identity_of(one).key: one for one in listed}
                kept = {f"ns/{name}" for name in keep}
                before = store.objects.keys() - wanted.keys()
                for _ in store.replace(wanted, keep=kept):
                    pass
                assert store.objects.keys() == wanted.keys() | (before & kept)

        assert mirror.objects == store.objects
        assert store.handler_failures == 0


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(obj("a", 7), Identity("ns/a", "7", "a"), id="dicts, in a namespace"),
        pytest.param({"metadata": {"name": "n1"}}, Identity("n1", "", ""), id="dicts, bare"),
        pytest.param(
            Pod(metadata=ObjectMeta(name="a", namespace="ns", uid="u", resource_version="7")),
            Identity("ns/a", "7", "u"),
            id="a typed object",
        ),
    ],
)
def test_identity_of(one: object, want: Identity) -> None:
    assert identity_of(one) == want


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param(
            b'{"metadata":{"name":"a","namespace":"ns","resourceVersion":"7","labels":3}}',
            Identity("ns/a", "7", ""),
            id="what is misspelt elsewhere does not matter",
        ),
        pytest.param(b'{"metadata":{"name":"n1"}}', Identity("n1", "", ""), id="of the cluster"),
        pytest.param(b"[]", Identity("", "", ""), id="not an object"),
        pytest.param(b"{", Identity("", "", ""), id="not JSON"),
    ],
)
def test_identity_in(raw: bytes, want: Identity) -> None:
    assert identity_in(raw) == want


@pytest.mark.parametrize(
    ("version", "than", "want"),
    [
        pytest.param("9", "10", True, id="numbers, not letters, are compared"),
        pytest.param("10", "9", False, id="newer"),
        pytest.param("9", "9", False, id="the same"),
        pytest.param("", "9", False, id="none"),
        pytest.param("a1", "a2", False, id="another form is never older"),
    ],
)
def test_is_older(version: str, than: str, *, want: bool) -> None:
    assert is_older(version, than) is want
