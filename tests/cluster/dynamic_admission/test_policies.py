"""ValidatingAdmissionPolicies, as a user writes them."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import complaints
from tests.cluster.serving import Serving, pod

GROUP = "admissionregistration.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
PODS_RULE = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
}
FEW = {"expression": "size(object.spec.containers) < 2", "message": "one container is enough"}
POLICY = find(GROUP, "v1", "validatingadmissionpolicies").strategy
BINDING = find(GROUP, "v1", "validatingadmissionpolicybindings").strategy


@pytest.fixture
async def serving() -> Serving:
    made = Serving()
    for kind in (POLICY_KIND, BINDING_KIND, find("", "v1", "configmaps")):
        made.registry.add(kind)
    await made.post("/api/v1/namespaces", {"metadata": {"name": "default", "labels": {"env": "x"}}})
    return made


POLICY_KIND = find(GROUP, "v1", "validatingadmissionpolicies")
BINDING_KIND = find(GROUP, "v1", "validatingadmissionpolicybindings")


def policy(*validations: Object, **spec: Any) -> Object:
    return {
        "metadata": {"name": "few"},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS_RULE]},
            "validations": list(validations),
            **spec,
        },
    }


def binding(*actions: str, **spec: Any) -> Object:
    return {
        "metadata": {"name": "everywhere"},
        "spec": {"policyName": "few", "validationActions": list(actions) or ["Deny"], **spec},
    }


async def enforce(serving: Serving, policy: Object, binding: Object) -> None:
    await serving.post(POLICY_KIND.collection_path(), policy)
    await serving.post(BINDING_KIND.collection_path(), binding)


def two() -> Object:
    obj = pod("two")
    obj["spec"]["containers"].append({"name": "d", "image": "i"})
    return obj


async def refusal(serving: Serving, obj: Object) -> tuple[int, str, str]:
    """Return code, reason and what is said after the name of policy and binding; "" if nothing."""
    code, answer = await serving.request("POST", PODS, obj)
    if code == 201:
        return code, "", ""
    _, _, text = answer["message"].partition("denied request: ")
    return code, answer["reason"], text


async def test_a_policy_refuses(serving: Serving) -> None:
    await enforce(serving, policy(FEW), binding())
    await serving.pods("one")
    code, answer = await serving.request("POST", PODS, two())
    message = (
        "ValidatingAdmissionPolicy 'few' with binding 'everywhere' denied request: one container "
        "is enough"
    )
    assert (code, answer["message"]) == (422, f'pods "two" is forbidden: {message}')
    assert answer["details"]["causes"] == [{"message": message}]


async def test_a_policy_without_a_binding_does_nothing(serving: Serving) -> None:
    await serving.post(POLICY_KIND.collection_path(), policy(FEW))
    await serving.post(PODS, two())


async def test_a_policy_may_only_warn(serving: Serving) -> None:
    await enforce(serving, policy(FEW), binding("Warn", "Audit"))
    response = await serving.http.post(PODS, json=two())
    assert (response.status_code, response.headers["warning"]) == (
        201,
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'few' with binding "
        "'everywhere': one container is enough\"",
    )


@pytest.mark.parametrize(
    ("enforced", "want"),
    [
        pytest.param(
            policy({"expression": "object.metadata.name != 'two'"}),
            (422, "Invalid", "failed expression: object.metadata.name != 'two'"),
            id="no message",
        ),
        pytest.param(
            policy({**FEW, "reason": "Forbidden", "messageExpression": "'not ' + request.name"}),
            (403, "Forbidden", "not two"),
            id="a reason, and a message that is computed",
        ),
        pytest.param(
            policy({**FEW, "messageExpression": "object.nowhere"}),
            (422, "Invalid", "one container is enough"),
            id="a message that cannot be computed",
        ),
        pytest.param(
            policy({"expression": "object.spec.nowhere > 1"}),
            (
                422,
                "Invalid",
                "expression 'object.spec.nowhere > 1' resulted in error: no such key: nowhere",
            ),
            id="an error counts as a failure",
        ),
        pytest.param(
            policy({"expression": "object.spec.nowhere > 1"}, failurePolicy="Ignore"),
            (201, "", ""),
            id="an error, ignored",
        ),
        pytest.param(
            policy(
                {"expression": "variables.count < 2"},
                variables=[
                    {"name": "all", "expression": "object.spec.containers"},
                    {"name": "count", "expression": "size(variables.all)"},
                    {"name": "unused", "expression": "object.nowhere"},
                ],
            ),
            (422, "Invalid", "failed expression: variables.count < 2"),
            id="variables that use each other",
        ),
        pytest.param(
            policy(FEW, matchConditions=[{"name": "a", "expression": "request.name == 'other'"}]),
            (201, "", ""),
            id="a match condition that is not met",
        ),
        pytest.param(
            policy({"expression": "namespaceObject.metadata.labels.env != 'x'"}),
            (422, "Invalid", "failed expression: namespaceObject.metadata.labels.env != 'x'"),
            id="the namespace",
        ),
        pytest.param(
            policy({"expression": "oldObject != null"}),
            (422, "Invalid", "failed expression: oldObject != null"),
            id="no old object",
        ),
    ],
)
async def test_what_a_policy_evaluates(
    serving: Serving, enforced: Object, want: tuple[int, str, str]
) -> None:
    await enforce(serving, enforced, binding())
    assert await refusal(serving, two()) == want


@pytest.mark.parametrize(
    "match",
    [
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"env": "production"}}}, id="other namespaces"
        ),
        pytest.param({"objectSelector": {"matchLabels": {"app": "web"}}}, id="other objects"),
        pytest.param({"excludeResourceRules": [PODS_RULE]}, id="what is excluded"),
        pytest.param(
            {"resourceRules": [{**PODS_RULE, "resourceNames": ["three"]}]}, id="another name"
        ),
    ],
)
async def test_a_binding_narrows_a_policy(serving: Serving, match: Object) -> None:
    await enforce(serving, policy(FEW), binding(matchResources=match))
    await serving.post(PODS, two())


LIMIT = policy(
    {"expression": "size(object.spec.containers) <= int(params.data.most)"},
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
)


async def test_parameters_are_those_of_the_binding(serving: Serving) -> None:
    limit = {"metadata": {"name": "limit"}, "data": {"most": "1"}}
    await serving.post("/api/v1/namespaces/default/configmaps", limit)
    reference = {"name": "limit", "parameterNotFoundAction": "Deny"}
    await enforce(serving, LIMIT, binding(paramRef=reference))
    assert (await refusal(serving, two()))[0] == 422
    await serving.pods("one")


@pytest.mark.parametrize(("action", "code"), [("Deny", 422), ("Allow", 201)])
async def test_parameters_may_be_missing(serving: Serving, action: str, code: int) -> None:
    reference = {"name": "limit", "parameterNotFoundAction": action}
    await enforce(serving, LIMIT, binding(paramRef=reference))
    assert (await refusal(serving, two()))[0] == code


async def test_a_change_of_the_policy_counts_at_once(serving: Serving) -> None:
    await enforce(serving, policy(FEW), binding())
    await serving.request("DELETE", BINDING_KIND.path_of("", "everywhere"))
    await serving.post(PODS, two())


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(policy(FEW), [], id="a valid one"),
        pytest.param(
            policy(),
            [
                f"spec.{field}: Required value: validations or auditAnnotations must contain at "
                "least one item"
                for field in ("validations", "auditAnnotations")
            ],
            id="nothing to evaluate",
        ),
        pytest.param(
            policy({"expression": " "}),
            ["spec.validations[0].expression: Required value: expression is not specified"],
            id="an empty expression",
        ),
        pytest.param(
            policy({"expression": "size(object)"}),
            [
                'spec.validations[0].expression: Invalid value: "size(object)": compilation '
                "failed: must evaluate to bool"
            ],
            id="an expression that gives a number",
        ),
        pytest.param(
            policy(FEW, paramKind={"kind": "ConfigMap"}),
            ["spec.paramKind.apiVersion: Required value"],
            id="a kind without a version",
        ),
        pytest.param(
            policy({**FEW, "reason": "Because"}),
            [
                'spec.validations[0].reason: Unsupported value: "Because": supported values: '
                '"Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"'
            ],
            id="an unknown reason",
        ),
    ],
)
def test_a_policy_says_what_it_must(obj: Object, want: list[str]) -> None:
    assert complaints(POLICY, obj) == want


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(binding("Deny"), [], id="a valid one"),
        pytest.param(
            binding("Deny", "Warn"),
            [
                'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both '
                "Deny and Warn (repeating the same validation failure information in the API "
                "response and headers serves no purpose)"
            ],
            id="it denies and warns",
        ),
        pytest.param(
            binding(paramRef={}),
            [
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
            id="an empty reference",
        ),
    ],
)
def test_a_binding_says_what_it_must(obj: Object, want: list[str]) -> None:
    assert complaints(BINDING, obj) == want
