"""The cells of roles, bindings, ConfigMaps, Secrets, service accounts and network policies."""

from typing import Any

from berth.cluster.columns.cells import Since
from berth.cluster.kinds.builtin import find

AT = "2026-11-20T13:06:10Z"


def cells_of(group: str, plural: str, **fields: Any) -> list[Any]:
    obj = {"metadata": {"name": "x", "creationTimestamp": AT}, **fields}
    return [column.value(obj) for column in find(group, "v1", plural).columns]


def test_roles() -> None:
    assert cells_of("rbac.authorization.k8s.io", "roles", rules=[]) == ["x", AT]


def test_bindings() -> None:
    subjects = [
        {"kind": "User", "name": "alice"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "web"},
        {"kind": "User", "name": "bob"},
        {"kind": "Group", "name": "devs"},
    ]
    reference = {"kind": "ClusterRole", "name": "edit"}
    found = cells_of(
        "rbac.authorization.k8s.io", "rolebindings", roleRef=reference, subjects=subjects
    )
    assert found == ["x", "ClusterRole/edit", Since(AT), "alice, bob", "devs", "web/robot"]
    assert cells_of("rbac.authorization.k8s.io", "rolebindings", roleRef=reference)[3:] == [
        "",
        "",
        "",
    ]


def test_config_maps_and_secrets_count_their_entries() -> None:
    of_kind = ("", "configmaps")
    assert cells_of(*of_kind, data={"a": ""}, binaryData={"b": "", "c": ""}) == ["x", 3, Since(AT)]
    assert cells_of(*of_kind) == ["x", 0, Since(AT)]
    secret = cells_of("", "secrets", type="Opaque", data={"a": ""})
    assert secret == ["x", "Opaque", 1, Since(AT)]


def test_service_accounts() -> None:
    assert cells_of("", "serviceaccounts", secrets=[{"name": "s"}]) == ["x", Since(AT)]


def test_network_policies() -> None:
    of_kind = ("networking.k8s.io", "networkpolicies")
    assert cells_of(*of_kind, spec={"podSelector": {}}) == ["x", "<none>", Since(AT)]
    selector = {"matchLabels": {"app": "web"}}
    assert cells_of(*of_kind, spec={"podSelector": selector}) == ["x", "app=web", Since(AT)]
