"""Kinds that nothing acts on: stored with a real server's defaults, and shown with its columns."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from tests.cluster.table_of import table_of

AT = "2026-11-22T09:00:00Z"
NOW = seconds_of(AT) + 60


def defaulted(group: str, plural: str, version: str = "v1", **fields: Any) -> Object:
    resource = find(group, version, plural)
    obj: Object = {"metadata": {"name": "x", "uid": "u", "namespace": "default"}, **fields}
    if not resource.namespaced:
        del obj["metadata"]["namespace"]
    resource.strategy.default(obj)
    resource.strategy.prepare(obj, None)
    assert resource.strategy.validate(obj, None) == []
    return obj


def refused(group: str, plural: str, **fields: Any) -> list[tuple[str, str]]:
    strategy = find(group, "v1", plural).strategy
    obj: Object = {"metadata": {"name": "x", "namespace": "default"}, **fields}
    strategy.default(obj)
    return [(each.field, each.message) for each in strategy.validate(obj, None)]


def row(group: str, plural: str, version: str = "v1", **fields: Any) -> list[Any]:
    obj: Object = {"metadata": {"name": "x", "creationTimestamp": AT}, **fields}
    [found] = table_of(find(group, version, plural), obj, now=NOW)["rows"]
    cells: list[Any] = found["cells"]
    return cells


def test_both_views_of_an_autoscaler() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    new = defaulted(
        "autoscaling",
        "horizontalpodautoscalers",
        spec={
            "scaleTargetRef": target,
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    )
    v1 = find("autoscaling", "v1", "horizontalpodautoscalers")
    stored = v1.to_storage(new)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    assert stored["spec"] == {
        "scaleTargetRef": target,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    assert v1.from_storage(stored) == new
    cells = row("autoscaling", "horizontalpodautoscalers", "v2", spec=stored["spec"])
    assert cells == ["x", "Deployment/web", "cpu: <unknown>/50%", "1", 3, 0, "60s"]


def test_what_v1_has_no_field_for_is_kept_in_an_annotation() -> None:
    v1 = find("autoscaling", "v1", "horizontalpodautoscalers")
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "Value"}}}]
    stored = {"metadata": {"name": "x"}, "spec": {"metrics": metrics, "behavior": {"a": 1}}}
    shown = v1.from_storage(stored)
    assert shown["spec"] == {}
    assert v1.to_storage(shown) == stored


def test_ports_of_endpoints_are_tcp() -> None:
    subset = {
        "addresses": [{"ip": "1.2.3.4"}],
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}],
    }
    [got] = defaulted("", "endpoints", subsets=[subset])["subsets"]
    assert [port["protocol"] for port in got["ports"]] == ["TCP", "UDP"]


def test_conditions_of_endpoints_are_there_and_empty() -> None:
    given: Object = {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}]}
    [got] = defaulted("discovery.k8s.io", "endpointslices", **given)["endpoints"]
    assert got == {"addresses": ["1.2.3.4"], "conditions": {}}


@pytest.mark.parametrize(
    ("group", "plural"),
    [
        ("", "resourcequotas"),
        ("coordination.k8s.io", "leases"),
        ("networking.k8s.io", "ingresses"),
        ("networking.k8s.io", "networkpolicies"),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ],
)
def test_what_is_wanted_is_there_when_nothing_is_said(group: str, plural: str) -> None:
    obj: Object = {"metadata": {"name": "x"}}
    find(group, "v1", plural).strategy.default(obj)
    assert "spec" in obj


def test_a_binding_that_matches_all_says_so() -> None:
    spec = {"policyName": "p", "validationActions": ["Deny"], "matchResources": {}}
    group, plural = "admissionregistration.k8s.io", "validatingadmissionpolicybindings"
    assert defaulted(group, plural, spec=spec)["spec"]["matchResources"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    }


def test_limits_are_requests_where_nothing_else_is_said() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}}
    [got] = defaulted("", "limitranges", spec={"limits": [item]})["spec"]["limits"]
    assert got["default"] == {"cpu": "2"}
    assert got["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}


def test_enums_are_those_of_the_schema() -> None:
    rule = {"host": "a", "http": {"paths": [{"path": "/", "pathType": "Sometimes"}]}}
    assert refused("networking.k8s.io", "ingresses", spec={"rules": [rule]}) == [
        (
            "spec.rules[0].http.paths[0].pathType",
            'Unsupported value: "Sometimes": supported values: "Exact", '
            '"ImplementationSpecific", "Prefix"',
        )
    ]


def test_defaults_of_the_schema() -> None:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    template = {"spec": {"containers": [container]}}
    got = defaulted("", "podtemplates", template=template)["template"]["spec"]["containers"][0]
    assert got["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("kind", "fields", "want"),
    [
        pytest.param(
            ("networking.k8s.io", "ingresses"),
            {"spec": {"rules": [{"host": "a"}, {"host": "b"}], "tls": [{}]}},
            ["x", "<none>", "a,b", "", "80, 443", "60s"],
            id="an ingress",
        ),
        pytest.param(
            ("", "endpoints"),
            {
                "subsets": [
                    {
                        "addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)],
                        "ports": [{"port": 80}],
                    }
                ]
            },
            ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "60s"],
            id="endpoints",
        ),
        pytest.param(
            ("", "resourcequotas"),
            {"status": {"hard": {"pods": "3", "limits.cpu": "2"}, "used": {"pods": "1"}}},
            ["x", "pods: 1/3", "limits.cpu: 0/2", "60s"],
            id="a quota",
        ),
        pytest.param(
            ("batch", "jobs"),
            {
                "spec": {"completions": 3, "selector": {"matchLabels": {"a": "b"}}},
                "status": {"succeeded": 1, "startTime": AT},
            },
            ["x", "Running", "1/3", "60s", "60s", "", "", "a=b"],
            id="a job",
        ),
        pytest.param(
            ("batch", "cronjobs"),
            {"spec": {"schedule": "@daily", "suspend": True}},
            ["x", "@daily", "<none>", "True", 0, "<none>", "60s", "", "", "<none>"],
            id="a cron job",
        ),
        pytest.param(
            ("apps", "daemonsets"),
            {"status": {"desiredNumberScheduled": 2, "numberReady": 1}},
            ["x", 2, 0, 1, 0, 0, "<none>", "60s", "", "", "<none>"],
            id="a daemon set",
        ),
        pytest.param(
            ("certificates.k8s.io", "certificatesigningrequests"),
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
                "status": {"conditions": [{"type": "Approved"}]},
            },
            ["x", "60s", "s", "u", "60m", "Approved"],
            id="a request for a certificate",
        ),
        pytest.param(
            ("apiregistration.k8s.io", "apiservices"),
            {"status": {"conditions": [{"type": "Available", "status": "True"}]}},
            ["x", "Local", "True", "60s"],
            id="an APIService",
        ),
        pytest.param(
            ("discovery.k8s.io", "endpointslices"),
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}],
                "endpoints": [{"addresses": ["10.0.0.1"]}],
            },
            ["x", "IPv4", "80", "10.0.0.1", "60s"],
            id="a slice of endpoints",
        ),
    ],
)
def test_rows(kind: tuple[str, str], fields: Object, want: list[Any]) -> None:
    assert row(*kind, **fields) == want
