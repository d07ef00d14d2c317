"""Webhook configurations: what a webhook must say."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import complaints

STRATEGY = find("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations").strategy

RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "scope": "*",
}


def hook(**fields: Any) -> Object:
    """Return a valid webhook, but for *fields*."""
    return {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9443/validate"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(*hooks: Object) -> Object:
    return {"metadata": {"name": "c"}, "webhooks": list(hooks)}


@pytest.mark.parametrize(
    ("webhook", "want"),
    [
        pytest.param(hook(), [], id="a valid one"),
        pytest.param(
            hook(name="short"),
            [
                'webhooks[0].name: Invalid value: "short": should be a domain with at least three '
                "segments separated by dots"
            ],
            id="a name of one segment",
        ),
        pytest.param(
            hook(clientConfig={}),
            ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
            id="nowhere to be found",
        ),
        pytest.param(
            hook(clientConfig={"url": "http://example.com"}),
            [
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only "
                "allowed URL scheme; desired format: https://host[/path]"
            ],
            id="plain HTTP",
        ),
        pytest.param(
            hook(clientConfig={"service": {"namespace": "n", "port": 70000}}),
            [
                "webhooks[0].clientConfig.service.name: Required value: service name is required",
                "webhooks[0].clientConfig.service.port: Invalid value: 70000: port is not valid: "
                "must be between 1 and 65535, inclusive",
            ],
            id="a service without a name, at a port that is none",
        ),
        pytest.param(
            hook(sideEffects="Some"),
            [
                'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", '
                '"NoneOnDryRun"'
            ],
            id="side effects",
        ),
        pytest.param(
            hook(timeoutSeconds=31),
            [
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between "
                "1 and 30 seconds"
            ],
            id="too patient",
        ),
        pytest.param(
            hook(admissionReviewVersions=["v2"]),
            [
                'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least '
                "one of v1, v1beta1"
            ],
            id="a version that does not exist",
        ),
        pytest.param(
            hook(rules=[{**RULE, "operations": ["*", "CREATE"], "resources": []}]),
            [
                'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is '
                "present, must not specify other operations",
                "webhooks[0].rules[0].resources: Required value",
            ],
            id="all operations and one more, of nothing",
        ),
        pytest.param(
            hook(rules=[{**RULE, "resources": ["*", "pods/exec", "services/*"]}]),
            [],
            id="all resources, and parts of some",
        ),
        pytest.param(
            hook(rules=[{**RULE, "resources": ["*", "pods"]}]),
            [
                'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is '
                "present, must not specify other resources without subresources"
            ],
            id="all resources and one more",
        ),
        pytest.param(
            hook(rules=[{**RULE, "resources": ["*/*", "pods"]}]),
            [
                'webhooks[0].rules[0].resources: Invalid value: ["*/*","pods"]: if \'*/*\' is '
                "present, must not specify other resources"
            ],
            id="everything and one more",
        ),
        pytest.param(
            hook(rules=[{**RULE, "resources": ["pods/*", "pods/exec", "*/scale", "a/scale"]}]),
            [
                "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/exec\": if 'pods/*' is "
                "present, must not specify pods/exec",
                "webhooks[0].rules[0].resources[3]: Invalid value: \"a/scale\": if '*/scale' is "
                "present, must not specify a/scale",
            ],
            id="parts that are meant already",
        ),
    ],
)
def test_a_webhook_says_what_it_must(webhook: Object, want: list[str]) -> None:
    assert complaints(STRATEGY, configuration(webhook)) == want


def test_names_are_unique() -> None:
    assert complaints(STRATEGY, configuration(hook(), hook())) == [
        'webhooks[1].name: Duplicate value: "a.example.com"'
    ]


def test_defaults_are_those_of_a_real_server() -> None:
    service = {"name": "s", "namespace": "n"}
    written = hook(clientConfig={"service": service}, rules=[{"operations": ["CREATE"]}])
    obj = configuration(written)
    STRATEGY.default(obj)
    assert obj["webhooks"] == [
        {
            **written,
            "clientConfig": {"service": {**service, "port": 443}},
            "rules": [{"operations": ["CREATE"], "scope": "*"}],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "timeoutSeconds": 10,
        }
    ]
