"""Roles, bindings, ConfigMaps, Secrets, service accounts, network policies: what is refused."""

from base64 import b64encode
from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies.rbac import GROUP
from tests.cluster.access.secured import rule

CONFIG_MAP = find("", "v1", "configmaps").strategy
SECRET = find("", "v1", "secrets").strategy
CLUSTER_ROLE = find(GROUP, "v1", "clusterroles").strategy
CLUSTER_ROLE_BINDING = find(GROUP, "v1", "clusterrolebindings").strategy
ROLE = find(GROUP, "v1", "roles").strategy
ROLE_BINDING = find(GROUP, "v1", "rolebindings").strategy

NETWORK_POLICY = find("networking.k8s.io", "v1", "networkpolicies").strategy

HERE = {"name": "x", "namespace": "default"}
EVERYWHERE = {"name": "system:x"}
EDIT = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "edit"}


def evaluated(strategy: Strategy, new: Object, old: Object | None = None) -> list[str]:
    """Return the complaints, after defaulting."""
    for each in (new, old):
        if each is not None:
            strategy.default(each)
    return [f"{error.field}: {error.message}" for error in strategy.validate(new, old)]


def only_one(strategy: Strategy, new: Object, want: str) -> None:
    found = evaluated(strategy, new)
    assert found == ([want] if want else [])


@pytest.mark.parametrize(
    ("a_rule", "want"),
    [
        pytest.param(rule("pods", "get"), "", id="fine"),
        pytest.param(
            rule("pods", ""),
            "rules[0].verbs: Required value: verbs must contain at least one value",
            id="no verbs",
        ),
        pytest.param(
            {"apiGroups": [""], "verbs": ["get"]},
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            id="no resources",
        ),
        pytest.param(
            {"resources": ["pods"], "verbs": ["get"]},
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            id="no group",
        ),
        pytest.param(
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
            "namespaced rules cannot apply to non-resource URLs",
            id="paths in a namespace",
        ),
    ],
)
def test_roles(a_rule: Object, want: str) -> None:
    only_one(ROLE, {"metadata": HERE, "rules": [a_rule]}, want)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"rules": None}, "", id="no rules at all"),
        pytest.param({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, "", id="paths"),
        pytest.param(
            {"rules": [{**rule("pods", "get"), "nonResourceURLs": ["/x"]}]},
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
            "rules cannot apply to both regular resources and non-resource URLs",
            id="paths and resources",
        ),
        pytest.param(
            {"aggregationRule": {"clusterRoleSelectors": []}},
            "aggregationRule.clusterRoleSelectors: Required value: "
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
            id="an aggregation of nothing",
        ),
        pytest.param(
            {"metadata": {"name": "a/b"}},
            "metadata.name: Invalid value: \"a/b\": may not contain '/'",
            id="a name that is no path segment",
        ),
    ],
)
def test_cluster_roles(fields: Object, want: str) -> None:
    only_one(CLUSTER_ROLE, {"metadata": EVERYWHERE, **fields}, want)


def binding(*subjects: Object, **fields: Any) -> Object:
    return {"metadata": HERE, "roleRef": dict(EDIT), "subjects": [*subjects], **fields}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(binding({"kind": "User", "name": "alice"}), "", id="the group is filled in"),
        pytest.param(binding(roleRef={"kind": "Role", "name": "r"}), "", id="of the role too"),
        pytest.param(
            binding({"kind": "ServiceAccount", "name": "a"}), "", id="an account of its namespace"
        ),
        pytest.param(
            binding({"kind": "Robot", "name": "a"}),
            'subjects[0].kind: Unsupported value: "Robot": '
            'supported values: "ServiceAccount", "User", "Group"',
            id="an unknown kind",
        ),
        pytest.param(
            binding({"kind": "Group", "name": "a", "apiGroup": "apps"}),
            f'subjects[0].apiGroup: Unsupported value: "apps": supported values: "{GROUP}"',
            id="another group",
        ),
        pytest.param(binding({"kind": "User"}), "subjects[0].name: Required value", id="nobody"),
        pytest.param(
            binding(roleRef={"kind": "Node", "name": "r"}),
            'roleRef.kind: Unsupported value: "Node": supported values: "Role", "ClusterRole"',
            id="not a role",
        ),
        pytest.param(
            binding(roleRef={"kind": "Role"}), "roleRef.name: Required value", id="no role"
        ),
    ],
)
def test_role_bindings(body: Object, want: str) -> None:
    only_one(ROLE_BINDING, body, want)


def test_a_cluster_role_binding_cannot_name_a_role() -> None:
    body: Object = {"metadata": EVERYWHERE, "roleRef": {"kind": "Role", "name": "r"}}
    want = 'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'
    only_one(CLUSTER_ROLE_BINDING, body, want)
    body = {
        "metadata": EVERYWHERE,
        "roleRef": EDIT,
        "subjects": [{"kind": "ServiceAccount", "name": "a"}],
    }
    only_one(CLUSTER_ROLE_BINDING, body, "subjects[0].namespace: Required value")


def test_the_role_of_a_binding_stays() -> None:
    new = binding(roleRef={**EDIT, "name": "admin"})
    want = (
        f'roleRef: Invalid value: {{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"admin"}}: '
        "cannot change roleRef"
    )
    assert evaluated(ROLE_BINDING, new, binding()) == [want]
    assert evaluated(ROLE_BINDING, binding({"kind": "User", "name": "bob"}), binding()) == []


def test_subjects_and_roles_get_their_group() -> None:
    body = binding({"kind": "User", "name": "a"}, roleRef={"kind": "Role", "name": "r"})
    ROLE_BINDING.default(body)
    assert (body["roleRef"]["apiGroup"], body["subjects"][0]["apiGroup"]) == (GROUP, GROUP)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"data": {"a.b_C-1": "x"}, "binaryData": {"b": "eA=="}}, "", id="fine"),
        pytest.param(
            {"data": {"a": "x"}, "binaryData": {"a": "eA=="}},
            'data[a]: Invalid value: "a": duplicate of key present in binaryData',
            id="a key twice",
        ),
        pytest.param(
            {"data": {"..": "x"}}, "data[..]: Invalid value: \"..\": must not be '..'", id="dots"
        ),
        pytest.param(
            {"data": {"a": "x" * 2**20, "b": "x"}},
            ": Too long: may not be more than 1048576 bytes",
            id="too much",
        ),
    ],
)
def test_config_maps(fields: Object, want: str) -> None:
    only_one(CONFIG_MAP, {"metadata": HERE, **fields}, want)


def test_keys_of_config_maps_are_letters_digits_and_signs() -> None:
    [found] = evaluated(CONFIG_MAP, {"metadata": HERE, "data": {"a b": "x"}})
    assert found.startswith('data[a b]: Invalid value: "a b": a valid config key must consist of')


def test_frozen_config_maps_stay() -> None:
    old = {"metadata": HERE, "data": {"a": "x"}, "immutable": True}
    frozen = "Forbidden: field is immutable when `immutable` is set"
    new = {"metadata": HERE, "data": {"a": "y"}}
    assert evaluated(CONFIG_MAP, new, dict(old)) == [f"immutable: {frozen}", f"data: {frozen}"]
    assert evaluated(CONFIG_MAP, dict(old), dict(old)) == []


def test_strings_of_a_secret_become_bytes() -> None:
    secret = {"metadata": HERE, "data": {"a": "eA=="}, "stringData": {"b": "y"}}
    assert evaluated(SECRET, secret) == []
    assert secret == {
        "metadata": HERE,
        "type": "Opaque",
        "data": {"a": "eA==", "b": b64encode(b"y").decode()},
    }


def test_frozen_secrets_stay() -> None:
    old = {"metadata": HERE, "data": {"a": "eA=="}, "immutable": True}
    frozen = "Forbidden: field is immutable when `immutable` is set"
    new = {"metadata": HERE, "type": "other"}
    assert evaluated(SECRET, new, old) == [
        'type: Invalid value: "other": field is immutable',
        f"immutable: {frozen}",
        f"data: {frozen}",
    ]


def test_network_policies_say_what_they_are_about() -> None:
    policy: Object = {
        "metadata": HERE,
        "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]},
    }
    assert evaluated(NETWORK_POLICY, policy) == []
    assert policy["spec"] == {
        "podSelector": {},
        "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
        "policyTypes": ["Ingress", "Egress"],
    }


def test_network_policies_of_an_unknown_type() -> None:
    spec = {"podSelector": {}, "policyTypes": ["Sideways"]}
    want = (
        'spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", "Egress"'
    )
    only_one(NETWORK_POLICY, {"metadata": HERE, "spec": spec}, want)
