"""Questions about users and rights, over HTTP."""

from typing import Any

import pytest

from berth.cluster.access.users import ADMIN, AUTHENTICATED, SCHEDULER, User
from berth.cluster.resources import Object
from berth.runtime.clock import rfc3339
from tests.cluster.access.secured import ALICE, Secured, rule

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
LOCAL = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
AUDIENCE = "https://kubernetes.default.svc"

LIST_PODS = {"verb": "list", "resource": "pods", "namespace": "default"}


@pytest.fixture
def secured() -> Secured:
    return Secured()


async def review(secured: Secured, path: str, spec: Object, user: User = ADMIN) -> Any:
    """Return the status, or what is wrong."""
    code, answer = await secured.ask("POST", path, {"spec": spec}, user=user)
    return answer["status"] if code == 201 else (code, answer["message"])


async def test_whose_token_it_is(secured: Secured) -> None:
    token = secured.tokens.issue(User("alice", ("devs", AUTHENTICATED), "7", {"a": ("x",)}))
    alice = {
        "username": "alice",
        "uid": "7",
        "groups": ["devs", AUTHENTICATED],
        "extra": {"a": ["x"]},
    }
    path = f"{AUTHENTICATION}/tokenreviews"
    assert await review(secured, path, {"token": token}) == {
        "authenticated": True,
        "user": alice,
        "audiences": [AUDIENCE],
    }
    assert await review(secured, path, {"token": token, "audiences": ["mail", AUDIENCE]}) == {
        "authenticated": True,
        "user": alice,
        "audiences": [AUDIENCE],
    }
    assert await review(secured, path, {"token": token, "audiences": ["mail"]}) == {
        "error": f'[invalid bearer token, token audiences ["{AUDIENCE}"] is invalid for the '
        'target audiences ["mail"]]',
        "user": {},
    }
    assert await review(secured, path, {"token": "nonsense"}) == {
        "error": "invalid bearer token",
        "user": {},
    }
    assert await review(secured, path, {"token": ""}) == (
        400,
        "token is required for TokenReview in authentication",
    )


async def test_the_whole_review_comes_back(secured: Secured) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    spec = {"resourceAttributes": LIST_PODS}
    code, answer = await secured.ask("POST", path, {"spec": spec}, user=ALICE)
    [managed] = answer["metadata"]["managedFields"]
    assert (code, answer) == (
        201,
        {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {"managedFields": [managed]},
            "spec": spec,
            "status": {"allowed": False},
        },
    )
    assert managed["fieldsV1"]["f:spec"].keys() == {"f:resourceAttributes"}


async def test_answers_that_are_objects_of_the_server(secured: Secured) -> None:
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    _, rules = await secured.ask("POST", path, {"spec": {"namespace": "a"}}, user=ALICE)
    assert (rules["metadata"], rules["spec"]) == ({}, {})
    _, who = await secured.ask("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, user=ALICE)
    assert who["metadata"] == {"creationTimestamp": rfc3339(secured.clock.now())}


SUBJECTS = [
    pytest.param({"user": "alice"}, True, id="the user"),
    pytest.param({"user": "bob"}, False, id="another user"),
    pytest.param({"groups": ["system:masters"]}, True, id="a group that may do everything"),
    pytest.param({"user": "bob", "groups": ["devs"]}, False, id="a group without rights"),
]


@pytest.mark.parametrize(("subject", "allowed"), SUBJECTS)
@pytest.mark.parametrize("path", [f"{AUTHORIZATION}/subjectaccessreviews", LOCAL])
async def test_what_somebody_may(
    secured: Secured, path: str, subject: Object, allowed: bool
) -> None:
    await secured.grant("alice", rule("pods", "list"), namespace="default")
    answer = await review(secured, path, {"resourceAttributes": LIST_PODS, **subject})
    assert answer["allowed"] is allowed


async def test_why_somebody_may(secured: Secured) -> None:
    await secured.grant("alice", rule("pods", "list"), namespace="default")
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    assert await review(secured, path, {"resourceAttributes": LIST_PODS}, ALICE) == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "of-alice/default" of Role "of-alice" '
        'to User "alice"',
    }


async def test_rights_to_paths(secured: Secured) -> None:
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    for url, allowed in (("/healthz", True), ("/metrics", False)):
        asked = {"path": url, "verb": "get"}
        spec = {"nonResourceAttributes": asked, "user": "x", "groups": [AUTHENTICATED]}
        assert (await review(secured, path, spec))["allowed"] is allowed


@pytest.mark.parametrize(
    ("path", "spec", "message"),
    [
        pytest.param(
            f"{AUTHORIZATION}/subjectaccessreviews",
            {"resourceAttributes": LIST_PODS},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
            id="about nobody",
        ),
        pytest.param(
            f"{AUTHORIZATION}/selfsubjectaccessreviews",
            {},
            "spec.resourceAttributes: Invalid value: null: "
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            id="about nothing",
        ),
        pytest.param(
            f"{AUTHORIZATION}/subjectaccessreviews",
            {
                "resourceAttributes": LIST_PODS,
                "nonResourceAttributes": {"path": "/", "verb": "get"},
                "user": "alice",
            },
            'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: '
            "cannot be specified in combination with resourceAttributes",
            id="about two things",
        ),
        pytest.param(
            LOCAL,
            {"resourceAttributes": {**LIST_PODS, "namespace": "shop"}, "user": "alice"},
            'spec.resourceAttributes.namespace: Invalid value: "shop": '
            "must match metadata.namespace: default",
            id="about another namespace",
        ),
    ],
)
async def test_questions_that_make_no_sense(
    secured: Secured, path: str, spec: Object, message: str
) -> None:
    code, said = await review(secured, path, spec)
    assert (code, said.partition(" is invalid: ")[2]) == (422, message)


async def test_a_field_that_a_review_has_not_in_strict_mode(secured: Secured) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews?fieldValidation=Strict"
    code, message = await review(secured, path, {"foo": 1})
    assert (code, message.rpartition(": ")[2]) == (400, 'unknown field "spec.foo"')


async def test_all_that_somebody_may(secured: Secured) -> None:
    await secured.grant("alice", rule("pods", "list"), namespace="default")
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    answer = await review(secured, path, {"namespace": "default"}, ALICE)
    assert answer["incomplete"] is False
    assert answer["resourceRules"][0] == rule("pods", "list")
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version",
            "/version/"]} in answer["nonResourceRules"]  # fmt: skip
    elsewhere = await review(secured, path, {"namespace": "kube-system"}, ALICE)
    assert elsewhere["resourceRules"] == answer["resourceRules"][1:]
    assert await review(secured, path, {}, ALICE) == (400, "no namespace on request")


async def test_a_review_is_a_right_too(secured: Secured) -> None:
    spec = {"resourceAttributes": LIST_PODS, "user": "bob"}
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    assert await review(secured, path, spec, SCHEDULER) == {"allowed": False}
    code, _ = await review(secured, path, spec, ALICE)
    assert code == 403


async def test_there_is_nothing_but_post(secured: Secured) -> None:
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    codes = [(await secured.ask(method, path, {}))[0] for method in ("GET", "DELETE", "PUT")]
    assert codes == [405, 405, 405]
    assert (await secured.ask("GET", f"{path}/x"))[0] == 404
    assert (await secured.ask("POST", LOCAL.replace("namespaces/default/", ""), {}))[0] == 405
