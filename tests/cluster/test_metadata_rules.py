"""Metadata: what is wrong with it, and how often an update says so."""

from collections import Counter
from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.strategies import metadata
from berth.kube.field_errors import FieldError

KINDS = {
    "podtemplates": find("", "v1", "podtemplates"),
    "nodes": find("", "v1", "nodes"),
    "secrets": find("", "v1", "secrets"),
    "limitranges": find("", "v1", "limitranges"),
    "poddisruptionbudgets": find("policy", "v1", "poddisruptionbudgets"),
    "leases": find("coordination.k8s.io", "v1", "leases"),
    "webhooks": find("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
}
OLD = {"name": "x", "uid": "u"}


def counted(kind: str, change: Any, *, of_status: bool = False) -> dict[str, int]:
    found = metadata.validate_update(KINDS[kind], {**OLD, **change}, OLD, of_status=of_status)
    return Counter(each.field.removeprefix("metadata.") for each in found)


@pytest.mark.parametrize(
    ("kind", "labels", "uid", "finalizers"),
    [
        pytest.param("podtemplates", 3, 2, {"finalizers[0]": 1}, id="updates once more"),
        pytest.param("secrets", 4, 2, {"finalizers[0]": 2}, id="the whole, too"),
        pytest.param("nodes", 3, 1, {"finalizers[0]": 1}, id="the whole, and the rest later"),
        pytest.param("limitranges", 3, 1, {"finalizers[0]": 1}, id="the whole"),
        pytest.param("poddisruptionbudgets", 2, 1, {}, id="nothing more"),
        pytest.param("leases", 3, 2, {}, id="any finalizer"),
        pytest.param("webhooks", 3, 1, {}, id="the whole, and any finalizer"),
    ],
)
def test_updates_say_it_again(kind: str, labels: int, uid: int, finalizers: dict[str, int]) -> None:
    assert counted(kind, {"labels": {"a": "-"}}) == {"labels": labels}
    assert counted(kind, {"uid": "other"}) == {"uid": uid}
    assert counted(kind, {"finalizers": ["a"]}) == finalizers
    assert counted(kind, {"finalizers": ["kubernetes", "example.com/a"]}) == {}
    assert counted(kind, {"managedFields": [{}], "resourceVersion": "2"}) == {}


def test_roles_are_told_of_all_that_they_are_before_metadata_once_more() -> None:
    resource = find("rbac.authorization.k8s.io", "v1", "clusterroles")
    old = {"metadata": {"name": "x"}, "rules": []}
    new = {"metadata": {"name": "x", "finalizers": ["a"]}, "rules": [{"verbs": []}]}
    found = resource.strategy.validate(new, old)
    assert [each.field for each in found] == [
        "rules[0].verbs",
        "rules[0].apiGroups",
        "rules[0].resources",
        "metadata.finalizers[0]",
    ]


def test_a_status_is_not_the_whole() -> None:
    assert counted("nodes", {"labels": {"a": "-"}}, of_status=True) == {"labels": 3}


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("kubernetes", []),
        ("example.com/a", []),
        ("a", ["name is neither a standard finalizer name nor is it fully qualified"]),
        ("/", ["prefix part must be non-empty", "name part must be non-empty"]),
    ],
)
def test_finalizers_of_namespaces(value: str, want: list[str]) -> None:
    found: list[FieldError] = metadata.finalizer("spec.finalizers", value)
    told = [each.message.removeprefix(f'Invalid value: "{value}": ') for each in found]
    assert told[: len(want)] == want
