"""Claims and slices of ``resource.k8s.io/v1beta1`` and of ``v1``."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.device_versions import (
    claim_from_v1beta1,
    claim_to_v1beta1,
    slice_from_v1beta1,
)
from berth.kube.objects.devices import ResourceClaim, ResourceSlice

Object = dict[str, Any]

SELECTORS = [{"cel": {"expression": "true"}}]
ALTERNATIVES = [{"name": "large", "deviceClassName": "gpu", "count": 2}]
EXACT = {"deviceClassName": "gpu", "allocationMode": "All", "selectors": SELECTORS}


def claim(*requests: Any) -> Object:
    devices = {"requests": [*requests], "constraints": [{"matchAttribute": "a/b"}]}
    return {"metadata": {"name": "c"}, "spec": {"devices": devices}, "status": {"reservedFor": []}}


@pytest.mark.parametrize(
    ("in_v1beta1", "in_v1"),
    [
        pytest.param(
            claim({"name": "r", **EXACT}), claim({"name": "r", "exactly": EXACT}), id="exactly"
        ),
        pytest.param(
            claim({"name": "r", "firstAvailable": ALTERNATIVES}),
            claim({"name": "r", "firstAvailable": ALTERNATIVES}),
            id="one of several",
        ),
        pytest.param(
            claim({"name": "a", **EXACT}, {"name": "b", "firstAvailable": ALTERNATIVES}),
            claim({"name": "a", "exactly": EXACT}, {"name": "b", "firstAvailable": ALTERNATIVES}),
            id="both",
        ),
        pytest.param(
            claim({"name": "r", "later": 1, **EXACT}),
            claim({"name": "r", "exactly": {"later": 1, **EXACT}}),
            id="a field that is not known",
        ),
        pytest.param(claim(), claim(), id="no requests"),
    ],
)
def test_claims(in_v1beta1: Object, in_v1: Object) -> None:
    assert claim_from_v1beta1(in_v1beta1) == in_v1
    assert claim_to_v1beta1(in_v1) == in_v1beta1
    assert msgspec.convert(in_v1, ResourceClaim).spec.devices.requests is not None


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(None, id="null"),
        pytest.param({"spec": None}, id="no spec"),
        pytest.param({"spec": {"devices": []}}, id="a list of devices"),
        pytest.param({"spec": {"devices": {"requests": None}}}, id="no list of requests"),
        pytest.param({"spec": {"devices": {"requests": ["r"]}}}, id="a request that is a text"),
    ],
)
def test_what_is_odd_is_left_as_it_is(odd: Any) -> None:
    assert claim_from_v1beta1(odd) == odd
    assert claim_to_v1beta1(odd) == odd
    assert slice_from_v1beta1(odd) == odd


def test_what_a_request_for_one_of_several_has_of_others_does_not_count() -> None:
    zero = {"deviceClassName": "", "count": 0}
    assert claim_from_v1beta1(claim({"name": "r", "firstAvailable": ALTERNATIVES, **zero})) == (
        claim({"name": "r", "firstAvailable": ALTERNATIVES})
    )


names = st.text(min_size=1)
requests = st.one_of(
    st.builds(
        lambda name, cls, more: {"name": name, "exactly": {**more, "deviceClassName": cls}},
        names,
        names,
        st.dictionaries(st.sampled_from(["count", "adminAccess", "capacity"]), st.integers()),
    ),
    st.builds(lambda name: {"name": name, "firstAvailable": ALTERNATIVES}, names),
)


@given(st.lists(requests))
def test_a_claim_that_is_written_back_is_the_same(asked: list[Object]) -> None:
    assert claim_from_v1beta1(claim_to_v1beta1(claim(*asked))) == claim(*asked)


def test_slices() -> None:
    has = {
        "attributes": {"model": {"string": "a"}},
        "capacity": {"memory": {"value": "1Gi"}},
        "consumesCounters": [{"counterSet": "card", "counters": {"parts": {"value": "1"}}}],
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    }
    spec = {"driver": "d", "pool": {"name": "n"}, "nodeName": "n"}
    devices = [{"name": "a", "basic": has}, {"name": "b", "basic": {}}, {"name": "c"}]
    converted = slice_from_v1beta1({"metadata": {}, "spec": {**spec, "devices": devices}})
    assert converted["spec"] == {
        **spec,
        "devices": [{"name": "a", **has}, {"name": "b"}, {"name": "c"}],
    }
    read = msgspec.convert(converted, ResourceSlice).spec.devices
    assert read[0].attributes["model"].string == "a"
    assert read[0].consumes_counters[0].counter_set == "card"


def test_slices_without_devices() -> None:
    counters = {"spec": {"driver": "d", "sharedCounters": []}}
    assert slice_from_v1beta1(counters) == counters
