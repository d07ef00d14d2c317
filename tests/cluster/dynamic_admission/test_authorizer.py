"""``authorizer`` in expressions of policies: what who makes the request may do."""

from typing import Any

import pytest

from berth.cluster.access.users import ADMIN, AUTHENTICATED, User
from berth.cluster.resources import Object
from tests.cluster.access.secured import RBAC, Secured

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
ADA = User("ada", (AUTHENTICATED, "writers"))


def may(*rules: Object) -> Object:
    return {"metadata": {"name": "writers"}, "rules": list(rules)}


@pytest.fixture
async def secured() -> Secured:
    """Writers may create ConfigMaps, break glass on ``breakglass``, and read /version."""
    made = Secured()
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": ["example.com"], "resources": ["breakglass"], "verbs": ["use"]},
        {
            "apiGroups": ["example.com"],
            "resources": ["glasses/inner"],
            "resourceNames": ["red"],
            "verbs": ["use"],
        },
    ]
    await made.create(f"{RBAC}/clusterroles", may(*rules))
    await made.create(
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "writers"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "writers",
            },
            "subjects": [
                {"kind": "Group", "name": "writers", "apiGroup": "rbac.authorization.k8s.io"}
            ],
        },
    )
    return made


async def refused(secured: Secured, expression: str, user: User = ADA, **spec: Any) -> str:
    """Return what a policy with *expression* has against a ConfigMap of *user*, "" if nothing."""
    validation = {"expression": expression, "message": "no"}
    body = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [validation],
            **spec,
        },
    }
    await secured.create(POLICIES, body)
    await secured.create(
        BINDINGS,
        {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}},
    )
    code, answer = await secured.ask("POST", MAPS, {"metadata": {"name": "m"}}, user=user)
    if code == 201:
        return ""
    return str(answer["message"].rpartition("denied request: ")[2])


GLASS = "authorizer.group('example.com').resource('breakglass')"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param(f"{GLASS}.check('use').allowed()", "", id="what a role grants"),
        pytest.param(f"{GLASS}.check('own').allowed()", "no", id="what none grants"),
        pytest.param(
            f"{GLASS}.namespace('other').name('x').check('use').allowed()", "", id="in a namespace"
        ),
        pytest.param(
            "authorizer.group('example.com').resource('glasses').subresource('inner')"
            ".name('red').check('use').allowed()",
            "",
            id="by name",
        ),
        pytest.param(
            "authorizer.group('example.com').resource('glasses').subresource('inner')"
            ".name('blue').check('use').allowed()",
            "no",
            id="by another name",
        ),
        pytest.param("authorizer.path('/version').check('get').allowed()", "", id="a path"),
        pytest.param("authorizer.path('/metrics').check('get').allowed()", "no", id="not this one"),
        pytest.param(
            "authorizer.requestResource.check('create').allowed()", "", id="the request itself"
        ),
        pytest.param("authorizer.requestResource.check('delete').allowed()", "no", id="not more"),
        pytest.param(
            f"authorizer.serviceAccount('default', 'bot').{GLASS.partition('.')[2]}"
            ".check('use').allowed()",
            "no",
            id="another account",
        ),
        pytest.param(
            f"{GLASS}.check('use').reason().contains('ClusterRoleBinding') "
            f"&& !{GLASS}.check('use').errored() && {GLASS}.check('use').error() == ''",
            "",
            id="why",
        ),
        pytest.param(
            "authorizer.resource('pods').check('get').allowed()",
            "expression 'authorizer.resource('pods').check('get').allowed()' resulted in error:"
            " no such overload",
            id="a resource of no group",
        ),
    ],
)
async def test_what_is_asked(secured: Secured, expression: str, why: str) -> None:
    assert await refused(secured, expression) == why


async def test_an_administrator_may_everything(secured: Secured) -> None:
    expression = "authorizer.group('').resource('nodes').check('burn').allowed()"
    assert await refused(secured, expression, ADMIN) == ""


async def test_conditions_may_ask_too(secured: Secured) -> None:
    condition = {"name": "c", "expression": f"!{GLASS}.check('use').allowed()"}
    assert await refused(secured, "false", matchConditions=[condition]) == ""


async def test_variables_may_ask_too(secured: Secured) -> None:
    variable = {"name": "may", "expression": f"{GLASS}.check('use').allowed()"}
    assert await refused(secured, "!variables.may", variables=[variable]) == "no"
