"""MutatingAdmissionPolicies, as a user writes them."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import complaints
from tests.cluster.dynamic_admission.test_policies import GROUP, PODS, PODS_RULE
from tests.cluster.serving import Serving, pod

POLICIES = find(GROUP, "v1", "mutatingadmissionpolicies")
BINDINGS = find(GROUP, "v1", "mutatingadmissionpolicybindings")


def apply(expression: str) -> Object:
    written = {"expression": expression}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": written}


def patch(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(*mutations: Object, name: str = "change", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [PODS_RULE]},
            "mutations": list(mutations),
            "reinvocationPolicy": "Never",
            **spec,
        },
    }


@pytest.fixture
async def serving() -> Serving:
    made = Serving()
    for kind in (POLICIES, BINDINGS):
        made.registry.add(kind)
    await made.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return made


async def enforce(serving: Serving, *policies: Object) -> None:
    for each in policies:
        await serving.post(POLICIES.collection_path(), each)
        name = each["metadata"]["name"]
        binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
        await serving.post(BINDINGS.collection_path(), binding)


SIDECAR = """
Object{
  spec: Object.spec{
    containers: [Object.spec.containers{name: "sidecar", image: "proxy:" + string(variables.n)}]
  }
}
"""


@pytest.mark.parametrize(
    ("mutation", "want"),
    [
        pytest.param(
            apply("Object{metadata: Object.metadata{labels: {'made-by': 'policy'}}}"),
            {"metadata": {"labels": {"app": "web", "made-by": "policy"}}},
            id="a label is merged",
        ),
        pytest.param(
            apply(SIDECAR),
            {
                "spec": {
                    "containers": [
                        {"name": "c", "image": "pause", "resources": {}},
                        {"name": "sidecar", "image": "proxy:2", "resources": {}},
                    ]
                }
            },
            id="a container is added, by its name",
        ),
        pytest.param(
            patch(
                "[JSONPatch{op: 'test', path: '/metadata/labels/app', value: 'web'},"
                " JSONPatch{op: 'add', value: 'b',"
                " path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a')}]"
            ),
            {"metadata": {"labels": {"app": "web", "example.com/a": "b"}}},
            id="a JSON patch",
        ),
    ],
)
async def test_what_a_policy_changes(serving: Serving, mutation: Object, want: Object) -> None:
    await enforce(serving, policy(mutation, variables=[{"name": "n", "expression": "1 + 1"}]))
    made = await serving.post(PODS, pod("a", labels={"app": "web"}))
    for section, fields in want.items():
        for field, value in fields.items():
            assert made[section][field] == value


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        pytest.param(
            patch("[JSONPatch{op: 'remove', path: '/spec/nowhere'}]"), "JSON Patch: ", id="no path"
        ),
        pytest.param(
            apply("Object{spec: Object.spec{nodeName: object.spec.nowhere}}"),
            "no such key: nowhere",
            id="an expression that fails",
        ),
        pytest.param(
            apply("Object{spec: Object.spec{containers: 'none'}}"),
            "spec.containers",
            id="a value of another type",
        ),
    ],
)
@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 403), ("Ignore", 201)])
async def test_a_failure_counts_by_the_failure_policy(
    serving: Serving, mutation: Object, why: str, failure_policy: str, code: int
) -> None:
    await enforce(serving, policy(mutation, failurePolicy=failure_policy))
    status, answer = await serving.request("POST", PODS, pod("a"))
    assert status == code
    if code != 201:
        start = "MutatingAdmissionPolicy 'change' with binding 'change' denied request: "
        assert start in answer["message"]
        assert why in answer["message"]


async def test_a_policy_sees_later_changes_if_it_asks_for_it(serving: Serving) -> None:
    first = policy(
        apply("Object{metadata: Object.metadata{annotations: {'seen': 'late'}}}"),
        name="a",
        reinvocationPolicy="IfNeeded",
        matchConditions=[{"name": "late", "expression": "has(object.metadata.labels.late)"}],
    )
    second = policy(apply("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}"), name="b")
    await enforce(serving, first, second)
    made = await serving.post(PODS, pod("a", labels={"app": "web"}))
    assert made["metadata"]["annotations"] == {"seen": "late"}


@pytest.mark.parametrize(
    ("mutation", "want"),
    [
        pytest.param(apply("Object{}"), [], id="a valid one"),
        pytest.param(
            {"patchType": "JSONPatch"},
            [
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is "
                "JSONPatch"
            ],
            id="no patch",
        ),
        pytest.param(
            apply("'text'"),
            [
                "spec.mutations[0].applyConfiguration.expression: Invalid value: \"'text'\": "
                "compilation failed: must evaluate to map"
            ],
            id="an expression that gives text",
        ),
    ],
)
def test_a_policy_says_what_it_must(mutation: Object, want: list[str]) -> None:
    assert complaints(POLICIES.strategy, policy(mutation)) == want
