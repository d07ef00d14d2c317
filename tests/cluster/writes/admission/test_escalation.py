"""Nobody grants more than he has."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.rules import Rule, on, on_paths
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.escalation import Escalation, compact, missing
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.context import WriteContext
from tests.cluster.access.secured import ALICE, IN_DEFAULT, RBAC, Secured, rule
from tests.cluster.access.test_rules import RULES, WANTED

GROUP = "rbac.authorization.k8s.io"
WRITES_ROLES = rule("roles rolebindings", "get create update patch", group=GROUP)
ATTEMPT = (
    'is forbidden: user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC '
    "permissions not currently held:\n"
)


@pytest.fixture
async def secured() -> Secured:
    """Alice may write roles in the default namespace, and list pods there."""
    made = Secured()
    await made.grant("alice", WRITES_ROLES, rule("pods", "get list"), namespace="default")
    return made


async def post(secured: Secured, plural: str, body: Object) -> tuple[int, str]:
    code, answer = await secured.ask("POST", f"{IN_DEFAULT}/{plural}", body, user=ALICE)
    return code, answer.get("message", "")


def a_role(*rules: Object, name: str = "r") -> Object:
    return {"metadata": {"name": name}, "rules": [*rules]}


def a_binding(kind: str, role: str) -> Object:
    return {
        "metadata": {"name": "b"},
        "roleRef": {"kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": "bob"}],
    }


async def test_what_one_has_one_may_grant(secured: Secured) -> None:
    assert await post(secured, "roles", a_role(rule("pods", "list"))) == (201, "")
    assert await post(secured, "rolebindings", a_binding("Role", "r")) == (201, "")


async def test_what_one_has_not_one_may_not(secured: Secured) -> None:
    wanted = a_role(rule("pods secrets", "get delete"), rule("pods", "list"))
    assert await post(secured, "roles", wanted) == (
        403,
        f'roles.{GROUP} "r" {ATTEMPT}'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}',
    )
    assert await post(secured, "rolebindings", a_binding("ClusterRole", "cluster-admin")) == (
        403,
        f'rolebindings.{GROUP} "b" {ATTEMPT}'
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}',
    )


async def test_nor_by_and_by(secured: Secured) -> None:
    await post(secured, "roles", a_role(rule("pods", "list")))
    path = f"{IN_DEFAULT}/roles/r"
    _, found = await secured.ask("GET", path)
    more = {**found, "rules": [rule("nodes", "list")]}
    assert (await secured.ask("PUT", path, more, user=ALICE))[0] == 403
    labelled = {**found, "metadata": {"name": "r", "labels": {"a": "b"}}}
    assert (await secured.ask("PUT", path, labelled, user=ALICE))[0] == 200


async def test_a_role_that_is_not_there_cannot_be_bound(secured: Secured) -> None:
    code, message = await post(secured, "rolebindings", a_binding("ClusterRole", "nothing"))
    assert (code, message) == (404, f'clusterroles.{GROUP} "nothing" not found')


async def test_the_right_to_bind_and_to_escalate(secured: Secured) -> None:
    await secured.create(
        f"{RBAC}/clusterroles",
        {
            "metadata": {"name": "granter"},
            "rules": [
                rule("clusterroles", "bind", group=GROUP, names="edit"),
                rule("roles", "escalate", group=GROUP, names="r"),
            ],
        },
    )
    granter: Object = {
        "metadata": {"name": "granter"},
        "roleRef": {"kind": "ClusterRole", "name": "granter"},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
    await secured.create(f"{IN_DEFAULT}/rolebindings", granter)
    codes = [
        (await post(secured, "rolebindings", a_binding("ClusterRole", "admin")))[0],
        (await post(secured, "rolebindings", a_binding("ClusterRole", "edit")))[0],
        (await post(secured, "roles", a_role(rule("nodes", "get"))))[0],
        (await post(secured, "roles", a_role(rule("nodes", "get"), name="other")))[0],
    ]
    assert codes == [403, 201, 201, 403]


async def test_who_aggregates_must_have_everything(secured: Secured) -> None:
    await secured.grant("alice", rule("clusterroles", "create", group=GROUP))
    body = {"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [{}]}}
    code, answer = await secured.ask("POST", f"{RBAC}/clusterroles", body, user=ALICE)
    assert (code, '{NonResourceURLs:["*"], Verbs:["*"]}' in answer["message"]) == (403, True)


async def test_a_body_that_cannot_be_read_is_invalid(secured: Secured) -> None:
    code, _ = await post(secured, "rolebindings", {"metadata": {"name": "b"}, "roleRef": {}})
    assert code == 422
    code, message = await post(secured, "roles", a_role({"verbs": [1]}))
    assert (code, "cannot unmarshal number" in message) == (400, True)


EVERYTHING: Object = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "resourceNames": None,
}


@pytest.mark.parametrize(
    ("language", "patch"),
    [
        ("strategic-merge", {"$patch": "replace", **a_role(EVERYTHING)}),
        ("strategic-merge", {"rules": [{"$patch": "replace", **EVERYTHING}]}),
        ("merge", {"rules": [EVERYTHING]}),
        ("json", [{"op": "add", "path": "/rules", "value": [EVERYTHING]}]),
        ("apply", {"apiVersion": f"{GROUP}/v1", "kind": "Role", **a_role(EVERYTHING)}),
    ],
)
async def test_a_null_hides_no_rule(secured: Secured, language: str, patch: Any) -> None:
    await post(secured, "roles", a_role(rule("pods", "list")))
    force = "&force=true" if language == "apply" else ""
    media_type = f"application/{language}-patch+{'yaml' if language == 'apply' else 'json'}"
    code, answer = await secured.ask(
        "PATCH",
        f"{IN_DEFAULT}/roles/r?fieldManager=a{force}",
        patch,
        user=ALICE,
        headers=[("content-type", media_type)],
    )
    assert (code, '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in answer["message"]) == (
        403,
        True,
    )
    assert (await secured.ask("GET", "/api/v1/namespaces/default/pods", user=ALICE))[0] == 200


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"rules": [{"verbs": ["*"], "resourceNames": None}]}, "rules[0].resourceNames"),
        ({"rules": [{"verbs": [None]}]}, "rules[0].verbs[0]"),
        ({"roleRef": {"kind": None}}, "roleRef.kind"),
    ],
)
def test_what_cannot_be_read_is_refused(changed: Object, field: str) -> None:
    """Where a body came by another way than from a client."""
    plural = "rolebindings" if "roleRef" in changed else "roles"
    obj = {"metadata": {"name": "r", "namespace": "default"}, **changed}
    request = AdmissionRequest(
        Operation.CREATE,
        find(GROUP, "v1", plural),
        "",
        "default",
        "r",
        obj,
        None,
        WriteContext(ALICE, "test"),
    )
    with pytest.raises(StatusError, match=re.escape(field)) as refused:
        Escalation(Authorizer(Store())).admit(request)
    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("held", "granted", "want"),
    [
        pytest.param([on("*", "*", groups="*")], on("pods/log", "get"), [], id="a wildcard"),
        pytest.param([on("pods", "get list")], on("pods", "*"), [on("pods", "*")], id="all verbs"),
        pytest.param([on("pods", "get")], on("pods", "get", names=["p"]), [], id="one by name"),
        pytest.param(
            [on("pods", "get", names=["p"])],
            on("pods", "get"),
            [on("pods", "get")],
            id="all, having one by name",
        ),
        pytest.param([on("pods", "get"), on("pods", "list")], on("pods", "get list"), [], id="sum"),
        pytest.param([on_paths("/a*", "get")], on_paths("/a/b /ab*", "get"), [], id="paths below"),
        pytest.param(
            [on_paths("/a", "get")], on_paths("/a*", "get"), [on_paths("/a*", "get")], id="more"
        ),
    ],
)
def test_missing(held: Sequence[Rule], granted: Rule, want: Sequence[Rule]) -> None:
    assert [*missing(held, [granted])] == want


def test_compact() -> None:
    written = compact(on("pods", "get list", names=["a", "b"]))
    assert written == (
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a" "b"], Verbs:["get" "list"]}'
    )


@given(st.lists(RULES, max_size=4), RULES, WANTED)
def test_what_lacks_nothing_allows_nothing_new(
    held: Sequence[Rule], granted: Rule, wanted: Attributes
) -> None:
    if not [*missing(held, [granted])] and granted.allows(wanted):
        assert any(rule.allows(wanted) for rule in held)
