"""The rules that the chart renders, as they are written. Whether they are enough is tested too."""

from typing import Any

import pytest

from tests.helm.cases import CASES, MODES, of_mode
from tests.helm.rendering import Object, Values, of_kind, render

all_cases = pytest.mark.parametrize(
    "values", [pytest.param(values, id=name) for name, values in CASES.items()]
)


def rules(objects: list[Object]) -> list[dict[str, Any]]:
    """Return the rules about resources, hence those of berth itself."""
    return [
        rule
        for kind in ("ClusterRole", "Role")
        for role in of_kind(objects, kind)
        for rule in role["rules"]
        if "resources" in rule
    ]


EXPLAIN = ["/explain/podgroups/*", "/explain/pods/*"]
WITH_PAGE = [*EXPLAIN, "/ui/*"]


@all_cases
def test_no_rule_has_a_wildcard(values: Values) -> None:
    for kind in ("ClusterRole", "Role"):
        for role in of_kind(render(values), kind):
            for rule in role["rules"]:
                words = [word for field in rule.values() for word in field]
                assert [w for w in words if "*" in w] in ([], EXPLAIN, WITH_PAGE, ["/extender/*"])


@all_cases
def test_roles_are_bound_to_berth_and_to_those_whom_the_values_name(values: Values) -> None:
    objects = render(values)
    given = values.get("rbac", {})
    others = [given.get(name) for name in ("metricsReaders", "users", "extenderClients")]
    account = {"kind": "ServiceAccount", "name": "release-berth", "namespace": "berth-system"}
    names = {
        (kind, role["metadata"]["name"])
        for kind in ("ClusterRole", "Role")
        for role in of_kind(objects, kind)
    }
    built_in = {
        ("ClusterRole", "system:auth-delegator"),
        ("Role", "extension-apiserver-authentication-reader"),
    }
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in of_kind(objects, kind):
            assert binding["subjects"] == [account] or binding["subjects"] in others
            reference = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            assert reference in names | built_in


@pytest.mark.parametrize(
    ("mode", "lease"),
    [
        pytest.param("second-scheduler", ("berth-system", "release-berth"), id="one of its own"),
        pytest.param("scheduler", ("kube-system", "kube-scheduler"), id="kube-scheduler's"),
        pytest.param("extender", None, id="nobody is elected among extenders"),
        pytest.param("simulator", None, id="nor among simulators"),
        pytest.param("shadow", None, id="nor among shadows"),
    ],
)
def test_only_the_lease_that_is_meant(mode: str, lease: tuple[str, str] | None) -> None:
    found = {
        (role["metadata"]["namespace"], *rule["resourceNames"])
        for role in of_kind(render(of_mode(mode)), "Role")
        for rule in role["rules"]
        if rule["resources"] == ["leases"] and rule["verbs"] != ["create"]
    }
    assert found == ({lease} if lease else set())


@pytest.mark.parametrize(
    ("values", "writes"),
    [
        pytest.param(of_mode("simulator"), set(), id="a simulator writes nothing"),
        pytest.param(of_mode("shadow"), set(), id="nor does a shadow"),
        pytest.param(CASES["extender, open"], set(), id="an extender that does not bind"),
        pytest.param(of_mode("extender"), {("create", "pods/binding")}, id="one that does"),
    ],
)
def test_modes_that_do_not_schedule_write_little(
    values: Values, writes: set[tuple[str, str]]
) -> None:
    reading = {"get", "list", "watch"}
    found = {
        (verb, resource)
        for rule in rules(render(values))
        for verb in rule["verbs"]
        for resource in rule["resources"]
        if verb not in reading
    }
    assert found == writes


@pytest.mark.parametrize("mode", MODES)
def test_without_rbac_there_is_none(mode: str) -> None:
    kinds = {obj["kind"] for obj in render(of_mode(mode, {"rbac": {"create": False}}))}
    assert not {kind for kind in kinds if "Role" in kind}
