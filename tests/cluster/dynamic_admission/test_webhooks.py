"""Webhooks, with a client that answers instead of calling."""

import base64
from collections.abc import Callable

import msgspec
import pytest

from berth.cluster.dynamic_admission.client import CallError, WebhookClient
from berth.cluster.dynamic_admission.webhooks import Webhook
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.serving import Serving, pod
from tests.cluster.strategies.test_webhooks import RULE, hook

GROUP = "admissionregistration.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
Answer = Callable[[Object], Object]
"""Makes the response of a review's request; raises CallError when it cannot be reached."""


@pytest.fixture
async def serving(monkeypatch: pytest.MonkeyPatch) -> "Hooked":
    hooked = Hooked()

    async def post(_self: WebhookClient, webhook: Webhook, review: Object) -> bytes:
        return hooked.post(webhook.name, review)

    monkeypatch.setattr(WebhookClient, "post", post)
    await hooked.post_object("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return hooked


class Hooked:
    """A server, and what its webhooks were asked and answer."""

    def __init__(self) -> None:
        self.serving = Serving()
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Object]] = []
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            self.serving.registry.add(find(GROUP, "v1", plural))

    def post(self, name: str, review: Object) -> bytes:
        request = review["request"]
        self.asked.append((name, request))
        response = {"uid": request["uid"], **self.answers[name](request)}
        return msgspec.json.encode({**review, "response": response})

    async def configure(self, kind: str, *hooks: tuple[Object, Answer], name: str = "c") -> None:
        """Add webhooks; *kind* is ``mutating`` or ``validating``."""
        self.answers |= {webhook["name"]: answer for webhook, answer in hooks}
        body = {"metadata": {"name": name}, "webhooks": [webhook for webhook, _ in hooks]}
        await self.post_object(f"/apis/{GROUP}/v1/{kind}webhookconfigurations", body)

    async def post_object(self, path: str, body: Object) -> Object:
        return dict(await self.serving.post(path, body))


def allow(_request: Object) -> Object:
    return {"allowed": True}


def deny(_request: Object) -> Object:
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "not now"}}


def patching(*operations: Object) -> Answer:
    patch = base64.b64encode(msgspec.json.encode(operations)).decode()
    return lambda _request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def unreachable(_request: Object) -> Object:
    raise CallError('failed to call webhook: Post "https://127.0.0.1:9443": refused')


def label(key: str) -> Object:
    return {"op": "add", "path": "/metadata/labels", "value": {key: "1"}}


async def test_a_review_says_all_of_the_request(serving: Hooked) -> None:
    await serving.configure("validating", (hook(), allow))
    await serving.serving.pods("a")
    name, request = serving.asked[0]
    assert name == "a.example.com"
    made = request.pop("object")
    assert made["kind"] == "Pod"
    assert made["spec"]["restartPolicy"] == "Always"  # it has its defaults
    assert request == {
        "uid": request["uid"],
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "a",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": request["userInfo"],
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "python-httpx",
        },
    }


async def test_a_refusal_is_in_the_words_of_the_webhook(serving: Hooked) -> None:
    await serving.configure("validating", (hook(), deny))
    code, answer = await serving.serving.request("POST", PODS, pod("a"))
    assert (code, answer["reason"], answer["message"]) == (
        403,
        "Forbidden",
        'admission webhook "a.example.com" denied the request: not now',
    )


@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(
            {"allowed": False},
            'admission webhook "a.example.com" denied the request without explanation',
            id="no reason",
        ),
        pytest.param(
            {"allowed": True, "uid": "other"},
            'Internal error occurred: failed calling webhook "a.example.com": expected '
            'response.uid="{uid}", got "other"',
            id="another review's answer",
        ),
        pytest.param(
            {"allowed": True, "patch": "W10=", "patchType": "JSONPatch"},
            'Internal error occurred: failed calling webhook "a.example.com": validating webhook '
            "response must not contain a patch",
            id="a validating webhook that patches",
        ),
    ],
)
async def test_an_answer_that_does_not_allow(
    serving: Hooked, response: Object, message: str
) -> None:
    await serving.configure("validating", (hook(), lambda _request: response))
    _code, answer = await serving.serving.request("POST", PODS, pod("a"))
    assert answer["message"] == message.format(uid=serving.asked[0][1]["uid"])


async def test_a_failure_counts_by_the_failure_policy(serving: Hooked) -> None:
    await serving.configure("validating", (hook(failurePolicy="Ignore"), unreachable), name="open")
    await serving.serving.pods("a")
    closed = hook(name="closed.example.com")
    await serving.configure("validating", (closed, unreachable), name="closed")
    code, answer = await serving.serving.request("POST", PODS, pod("b"))
    assert (code, answer["message"]) == (
        500,
        'Internal error occurred: failed calling webhook "closed.example.com": failed to call '
        'webhook: Post "https://127.0.0.1:9443": refused',
    )


async def test_patches_come_one_after_the_other(serving: Hooked) -> None:
    second = {"op": "add", "path": "/metadata/labels/second", "value": "1"}
    await serving.configure(
        "mutating",
        (hook(), patching(label("first"))),
        (hook(name="b.example.com"), patching(second)),
    )
    made = await serving.post_object(PODS, pod("a"))
    assert made["metadata"]["labels"] == {"first": "1", "second": "1"}


async def test_a_webhook_sees_later_changes_if_it_asks_for_it(serving: Hooked) -> None:
    await serving.configure(
        "mutating",
        (hook(reinvocationPolicy="IfNeeded"), allow),
        (hook(name="b.example.com"), patching(label("late"))),
    )
    await serving.serving.pods("a")
    names = [name for name, _ in serving.asked]
    assert names == ["a.example.com", "b.example.com", "a.example.com"]
    assert serving.asked[-1][1]["object"]["metadata"]["labels"] == {"late": "1"}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/spec/nowhere"}, id="a path that is not there"),
        pytest.param({"op": "replace", "path": "/spec", "value": "text"}, id="text for an object"),
        pytest.param({"op": "remove", "path": "/metadata"}, id="no metadata are left"),
    ],
)
async def test_a_patch_that_does_not_fit_is_an_error(serving: Hooked, operation: Object) -> None:
    await serving.configure("mutating", (hook(), patching(operation)))
    code, _answer = await serving.serving.request("POST", PODS, pod("a"))
    assert code == 500


async def test_null_in_a_patch_is_as_good_as_nothing(serving: Hooked) -> None:
    null = {"op": "add", "path": "/spec/nodeSelector", "value": None}
    await serving.configure("mutating", (hook(), patching(null)))
    made = await serving.post_object(PODS, pod("a"))
    assert "nodeSelector" not in made["spec"]


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        pytest.param({}, ["CREATE"], id="creations only"),
        pytest.param(
            {"rules": [{**RULE, "operations": ["*"], "resources": ["pods", "pods/status"]}]},
            ["CREATE", "UPDATE", "UPDATE status", "DELETE"],
            id="everything, and the status",
        ),
        pytest.param({"rules": [{**RULE, "scope": "Cluster"}]}, [], id="what is in no namespace"),
        pytest.param(
            {"objectSelector": {"matchLabels": {"app": "web"}}}, [], id="objects with a label"
        ),
        pytest.param(
            {"matchConditions": [{"name": "b", "expression": "object.metadata.name == 'b'"}]},
            [],
            id="objects of a name",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "Exists"}]}},
            [],
            id="namespaces with a label",
        ),
        pytest.param(
            {"rules": [{**RULE, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]},
            ["CREATE"],
            id="all resources",
        ),
    ],
)
async def test_a_webhook_is_asked_what_it_is_about(
    serving: Hooked, fields: Object, asked: list[str]
) -> None:
    await serving.configure("validating", (hook(**fields), allow))
    await serving.serving.pods("a")
    headers = {"content_type": "application/merge-patch+json"}
    for path, change in (
        (f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}),
        (f"{PODS}/a/status", {"status": {"phase": "Running"}}),
    ):
        code, answer = await serving.serving.request("PATCH", path, change, **headers)
        assert code == 200, answer
    await serving.serving.request("DELETE", f"{PODS}/a")
    told = [
        f"{request['operation']} {request.get('subResource', '')}".strip()
        for _, request in serving.asked
    ]
    assert told == asked


async def test_a_dry_run_asks_only_those_without_side_effects(serving: Hooked) -> None:
    await serving.configure("validating", (hook(sideEffects="NoneOnDryRun"), allow))
    code, _ = await serving.serving.request("POST", f"{PODS}?dryRun=All", pod("a"))
    assert (code, serving.asked[0][1]["dryRun"]) == (201, True)


async def test_a_configuration_can_always_be_repaired(serving: Hooked) -> None:
    everything = {**RULE, "operations": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    await serving.configure("validating", (hook(rules=[everything]), unreachable))
    path = f"/apis/{GROUP}/v1/validatingwebhookconfigurations/c"
    code, _ = await serving.serving.request("DELETE", path)
    assert code == 200
    await serving.serving.pods("a")


async def test_warnings_reach_the_client(serving: Hooked) -> None:
    answer = {"allowed": True, "warnings": ["soon gone"]}
    await serving.configure("validating", (hook(), lambda _request: answer))
    response = await serving.serving.http.post(PODS, json=pod("a"))
    assert response.headers["warning"] == '299 - "soon gone"'
