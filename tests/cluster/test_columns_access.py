"""The cells of roles, bindings, ConfigMaps, Secrets, service accounts and network policies."""

from typing import Any

from berth.cluster.columns import configuration, rbac
from berth.cluster.columns.cells import Since
from berth.cluster.resources import Column

AT = "2026-11-20T13:06:10Z"


def cells(columns: tuple[Column, ...], **fields: Any) -> list[Any]:
    obj = {"metadata": {"name": "x", "creationTimestamp": AT}, **fields}
    return [column.value(obj) for column in columns]


def test_roles() -> None:
    assert cells(rbac.ROLE_COLUMNS, rules=[]) == ["x", AT]


def test_bindings() -> None:
    subjects = [
        {"kind": "User", "name": "alice"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "web"},
        {"kind": "User", "name": "bob"},
        {"kind": "Group", "name": "devs"},
    ]
    reference = {"kind": "ClusterRole", "name": "edit"}
    found = cells(rbac.BINDING_COLUMNS, roleRef=reference, subjects=subjects)
    assert found == ["x", "ClusterRole/edit", Since(AT), "alice, bob", "devs", "web/robot"]
    assert cells(rbac.BINDING_COLUMNS, roleRef=reference)[3:] == ["", "", ""]


def test_config_maps_and_secrets_count_their_entries() -> None:
    columns = configuration.CONFIG_MAP_COLUMNS
    assert cells(columns, data={"a": ""}, binaryData={"b": "", "c": ""}) == ["x", 3, Since(AT)]
    assert cells(columns) == ["x", 0, Since(AT)]
    secret = cells(configuration.SECRET_COLUMNS, type="Opaque", data={"a": ""})
    assert secret == ["x", "Opaque", 1, Since(AT)]


def test_service_accounts() -> None:
    columns = configuration.SERVICE_ACCOUNT_COLUMNS
    assert cells(columns) == ["x", 0, Since(AT)]
    assert cells(columns, secrets=[{"name": "s"}]) == ["x", 1, Since(AT)]


def test_network_policies() -> None:
    columns = configuration.NETWORK_POLICY_COLUMNS
    assert cells(columns, spec={"podSelector": {}}) == ["x", "<none>", Since(AT)]
    selector = {"matchLabels": {"app": "web"}}
    assert cells(columns, spec={"podSelector": selector}) == ["x", "app=web", Since(AT)]
