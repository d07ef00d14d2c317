"""What is decoded with the parts that others have in common is what it is by itself."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.kube.objects.meta import Condition
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, Volume
from berth.kube.objects.shared_parts import PodDecoder, Recent, node_decoder
from tests.kube.objects.test_sharing import AMOUNTS, MAPS, TEXTS, pods, some

TOKENS = st.sampled_from(["kube-api-access-aaaaa", "kube-api-access-bbbbb", "kube-api-access-b"])
NAMES = TEXTS | TOKENS | st.just('a "node"')

mounts = st.lists(some(name=NAMES, mountPath=TEXTS), max_size=2)
specs = some(
    nodeName=NAMES,
    nodeSelector=st.dictionaries(st.sampled_from(["nodeName", "a"]), NAMES, max_size=2),
    volumes=st.lists(
        st.fixed_dictionaries({"name": NAMES}, optional={"ephemeral": st.just({})}), max_size=2
    ),
    containers=st.lists(some(name=NAMES, volumeMounts=mounts), max_size=2),
    overhead=AMOUNTS,
)
nodes = some(
    metadata=some(name=TEXTS, labels=MAPS, annotations=MAPS, creationTimestamp=TEXTS),
    spec=some(
        unschedulable=st.booleans(),
        taints=st.lists(some(key=TEXTS, effect=TEXTS), max_size=2),
        podPreemptionPolicy=some(disableResizePreemption=st.lists(TEXTS, max_size=2)),
    ),
    status=some(
        allocatable=AMOUNTS,
        capacity=AMOUNTS,
        conditions=st.lists(
            st.fixed_dictionaries({"type": TEXTS}, optional={"status": TEXTS, "message": TEXTS}),
            max_size=2,
        ),
        images=st.lists(
            some(names=st.none() | st.lists(TEXTS, max_size=2), sizeBytes=st.integers(0, 2)),
            max_size=2,
        ),
        declaredFeatures=st.lists(TEXTS, max_size=2),
    ),
)
NONSENSE = st.sampled_from([None, 1, "text", [], {}, [1], {"a": 1}, {"cpu": "much"}])


def spoiled(objects: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Return JSON of *objects*, now and then with something else in the place of some value."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> bytes:
        obj = deepcopy(draw(objects))  # constants of strategies must stay as they are
        places = [*_places(obj)]
        if places and draw(st.integers(0, 3)) == 0:
            holder, key = draw(st.sampled_from(places))
            holder[key] = draw(NONSENSE)
        return msgspec.json.encode(obj)

    return draw_one()


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def decoded(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """Return the object, or the error's type."""
    try:
        return decode(data)
    except msgspec.DecodeError as exc:
        return type(exc)


_replace = msgspec.structs.replace


def as_kept(pod: Any) -> Any:
    """Return what is kept of a pod, by the plain rule; volumes without a source as without a name.

    What is no pod stays as it is.
    """
    if not isinstance(pod, Pod):
        return pod
    volumes = tuple(Volume() if v == Volume(name=v.name) else v for v in pod.spec.volumes)
    conditions = pod.status.conditions
    if pod.spec.node_name:
        conditions = tuple(map(_told, conditions))
    return _replace(
        pod,
        spec=_replace(pod.spec, volumes=volumes),
        status=_replace(pod.status, conditions=conditions),
    )


def _told(condition: Condition) -> Condition:
    if condition.type in ("PodScheduled", "DisruptionTarget"):
        return condition
    return Condition(condition.type, condition.status, condition.reason)


def test_pods() -> None:
    shared, plain = PodDecoder(), msgspec.json.Decoder(Pod).decode

    @given(spoiled(pods | some(spec=specs)))
    @example(b'{"status":{"allocatedResources":{"cpu":"much"}}}')
    @example(b'{"spec":{"a":{"nodeName":"n"},"nodeName":""}}')
    @example(b'{"spec":{"nodeSelector":{"nodeName":"n"}}}')
    def are_decoded(data: bytes) -> None:
        want = decoded(plain, data)
        for found in (decoded(shared, data), decoded(shared, data)):
            assert as_kept(found) == as_kept(want)

    are_decoded()


def test_nodes() -> None:
    shared, plain = node_decoder(), msgspec.json.Decoder(Node).decode

    @given(spoiled(nodes))
    @example(b'{"status":{"capacity":{"cpu":"much"}}}')
    def are_decoded(data: bytes) -> None:
        want = decoded(plain, data)
        if isinstance(want, Node):
            conditions = tuple(
                Condition(c.type, c.status, c.reason) for c in want.status.conditions
            )
            want = _replace(want, status=_replace(want.status, conditions=conditions))
        assert decoded(shared, data) == decoded(shared, data) == want

    are_decoded()


TEMPLATE = {
    "volumes": [{"name": "kube-api-access-%s", "projected": {}}],
    "containers": [
        {"name": "c", "image": "i", "volumeMounts": [{"name": "kube-api-access-%s"}]},
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}


def replica(number: int) -> bytes:
    return msgspec.json.encode(
        {
            "metadata": {
                "name": f"p-{number}",
                "labels": {"app": "a"},
                "ownerReferences": [{"name": "r", "uid": "u", "controller": True}],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": f"n-{number}", **TEMPLATE},
            "status": {"containerStatuses": [{"name": "c", "containerID": str(number)}]},
        }
    ).replace(b"%s", b"%05d" % number)


def test_replicas_share_all_that_is_not_their_own() -> None:
    decode = PodDecoder()
    one, other = decode(replica(1)), decode(replica(2))
    assert (one.spec.node_name, other.spec.node_name) == ("n-1", "n-2")
    for holder, field in (
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("metadata", "owner_references"),
        ("metadata", "creation_timestamp"),
        ("spec", "containers"),
        ("spec", "volumes"),
        ("spec", "tolerations"),
        ("spec", "overhead"),
        ("status", "container_statuses"),
        ("status", "allocated_resources"),
    ):
        values = [getattr(getattr(each, holder), field) for each in (one, other)]
        assert values[0] is values[1], field


@pytest.mark.parametrize("field", [b'"nodeName":"n-1",', b',"nodeName":"n-1"'])
def test_a_pod_that_is_bound_shares_its_spec_with_itself_before(field: bytes) -> None:
    decode, bound = PodDecoder(), replica(1).replace(b'"nodeName":"n-1",', b"")
    last = bound.index(b'},"status"')
    before = decode(bound)
    where = last if field.startswith(b",") else bound.index(b'"volumes"')
    after = decode(bound[:where] + field + bound[where:])
    assert after.spec == _replace(before.spec, node_name="n-1")
    assert after.spec.containers is before.spec.containers


def test_what_nobody_asks_for_is_forgotten() -> None:
    made = list[int]()

    def make(key: int) -> int:
        made.append(key)
        return -key

    recent: Recent[int, int] = Recent(make, most=2)
    for key in (1, 2, 3, 1, 4, 1, 5, 1, 2):
        assert recent[key] == -key
    assert made == [1, 2, 3, 4, 5, 2]
