"""Objects whose equal parts are kept once are equal to those that have their own."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.pods.controllers import SHARED, PodView
from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.pod import Pod
from berth.kube.objects.sharing import MOST, POD_PARTS, sharing

TEXTS = st.sampled_from(["", "a", "b"])
MAPS = st.dictionaries(TEXTS, TEXTS, max_size=2)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", 1, "100m"]), max_size=2
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields)


containers = st.lists(
    some(
        name=TEXTS,
        image=TEXTS,
        resources=some(requests=AMOUNTS, limits=AMOUNTS),
        ports=st.lists(some(containerPort=st.integers(1, 2), name=TEXTS), max_size=1),
    ),
    max_size=2,
)
pods = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": TEXTS, "uid": TEXTS}, optional={"labels": MAPS})},
    optional={
        "spec": some(
            nodeName=TEXTS,
            containers=containers,
            initContainers=containers,
            nodeSelector=MAPS,
            tolerations=st.lists(some(key=TEXTS, operator=TEXTS, effect=TEXTS), max_size=2),
            volumes=st.lists(st.just({"name": "v", "ephemeral": {}}), max_size=1),
        ),
        "status": some(
            phase=TEXTS,
            startTime=TEXTS,
            conditions=st.lists(
                st.fixed_dictionaries(
                    {"type": TEXTS}, optional={"status": TEXTS, "lastTransitionTime": TEXTS}
                ),
                max_size=2,
            ),
            containerStatuses=st.lists(some(name=TEXTS, allocatedResources=AMOUNTS), max_size=1),
        ),
    },
)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        pytest.param(Pod, POD_PARTS, id="the scheduler's"),
        pytest.param(KubeletPod, POD_PARTS, id="the kubelet's"),
        pytest.param(PodView, SHARED, id="the controllers'"),
    ],
)
def test_equal_objects(kind: type[msgspec.Struct], parts: Any) -> None:
    plain = msgspec.json.Decoder(kind).decode
    shared = sharing(plain, parts)

    @given(pods)
    def are_decoded(pod: Any) -> None:
        data = msgspec.json.encode(pod)
        obj, again = shared(data), shared(data)
        assert obj == again == plain(data)
        for holder, fields in parts.items():
            for field in fields:
                one, other = (getattr(getattr(each, holder), field) for each in (obj, again))
                assert one is other or not one

    are_decoded()


def test_what_is_remembered_is_bounded() -> None:
    decode = sharing(msgspec.json.Decoder(Pod).decode, {"spec": ("node_name",)})
    first = decode(b'{"spec":{"nodeName":"first"}}')
    for number in range(MOST):
        decode(b'{"spec":{"nodeName":"node-%d"}}' % number)
    again = decode(b'{"spec":{"nodeName":"first"}}')
    assert again.spec.node_name == first.spec.node_name
    assert again.spec.node_name is not first.spec.node_name
