"""Fields that stay as they were created."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

META: Object = {"name": "a", "resourceVersion": "1"}
SPACED: Object = {**META, "namespace": "default"}


@pytest.mark.parametrize(
    ("key", "old", "new", "found"),
    [
        pytest.param(
            ("node.k8s.io", "v1", "runtimeclasses"),
            {"metadata": META, "handler": "runc"},
            {"metadata": META, "handler": "kata"},
            'handler: Invalid value: "kata": field is immutable',
            id="handler",
        ),
        pytest.param(
            ("apps", "v1", "controllerrevisions"),
            {"metadata": SPACED, "data": {"a": 1}, "revision": 1},
            {"metadata": SPACED, "data": {"a": 2}, "revision": 2},
            'data: Invalid value: {"a":2}: field is immutable',
            id="data",
        ),
        pytest.param(
            ("storage.k8s.io", "v1", "storageclasses"),
            {"metadata": META, "provisioner": "x", "reclaimPolicy": "Delete"},
            {"metadata": META, "provisioner": "y", "reclaimPolicy": "Delete"},
            'provisioner: Invalid value: "y": field is immutable',
            id="provisioner",
        ),
        pytest.param(
            ("storage.k8s.io", "v1", "csidrivers"),
            {"metadata": META, "spec": {"attachRequired": True}},
            {"metadata": META, "spec": {"attachRequired": False}},
            "spec.attachedRequired: Invalid value: false: field is immutable",
            id="attachRequired",
        ),
        pytest.param(
            ("networking.k8s.io", "v1", "ingressclasses"),
            {"metadata": META, "spec": {"controller": "a.io/b"}},
            {"metadata": META, "spec": {}},
            'spec.controller: Invalid value: "": field is immutable; '
            "spec.controller: Required value",
            id="controller, which is gone",
        ),
        pytest.param(
            ("discovery.k8s.io", "v1", "endpointslices"),
            {"metadata": SPACED, "addressType": "IPv4"},
            {"metadata": SPACED, "addressType": "IPv6"},
            'addressType: Invalid value: "IPv6": field is immutable',
            id="addressType",
        ),
        pytest.param(
            ("", "v1", "nodes"),
            {"metadata": META, "spec": {"podCIDRs": ["10.0.0.0/24"]}},
            {"metadata": META, "spec": {"podCIDRs": ["10.0.1.0/24"]}},
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
            id="podCIDRs",
        ),
    ],
)
def test_immutable(key: tuple[str, str, str], old: Object, new: Object, found: str) -> None:
    validate = find(*key).strategy.validate
    assert validate(old, old) == []
    assert "; ".join(str(error) for error in validate(new, old)) == found


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        ({"podCIDR": "10.0.0.0/24"}, {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
        ({"podCIDRs": ["10.0.0.0/24"]}, {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
        ({}, {}),
    ],
)
def test_both_forms_of_the_addresses_of_a_node(spec: Object, filled: Object) -> None:
    node = {"metadata": META, "spec": spec}
    find("", "v1", "nodes").strategy.default(node)
    assert node["spec"] == filled


@pytest.mark.parametrize(
    ("value", "is_good"),
    [
        ("10.1.0.0/24", True),
        ("010.1.0.0/24", True),
        ("fd00::/64", True),
        ("10.1.0.0", False),
        ("10.1.0.0/33", False),
        ("In", False),
    ],
)
def test_addresses_of_pods(value: str, is_good: bool) -> None:
    node = {"metadata": META, "spec": {"podCIDRs": [value]}}
    assert (find("", "v1", "nodes").strategy.validate(node, None) == []) is is_good
