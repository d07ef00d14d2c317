"""Which FlowSchema a request belongs to, what its answer says of that, and what is counted."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from berth.cluster.access.users import ADMIN, AUTHENTICATED, User, service_account
from berth.cluster.bootstrap import bootstrap
from berth.cluster.http.flow_schemas import FlowControl
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from tests.cluster.serving import Serving

EVE = User("eve", (AUTHENTICATED,))
BOB = User("bob", (AUTHENTICATED, "readers"))
ROBOT = service_account("ci", "robot")
SCHEMAS, LEVELS = (
    f"{plural}.flowcontrol.apiserver.k8s.io"
    for plural in ("flowschemas", "prioritylevelconfigurations")
)
PODS = {
    "verbs": ["list", "get"],
    "apiGroups": [""],
    "resources": ["pods", "pods/log"],
    "namespaces": ["default"],
}


def schema(
    name: str, precedence: int, *subjects: Object, level: str = "low", **rules: Any
) -> Object:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level},
            "rules": [{"subjects": list(subjects), **rules}],
        },
    }


def user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


def group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


@pytest.fixture
def control() -> FlowControl:
    store = Store()
    found = FlowControl(store, seats=600)
    limited = {"type": "Limited", "limited": {"nominalConcurrencyShares": 5}}
    store.create(LEVELS, {"metadata": {"name": "low", "uid": "uid-low"}, "spec": limited})
    account = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "*"}}
    nodes = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["nodes"], "clusterScope": True}
    urls = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/openapi/*"]}
    for each in (
        schema("late", 9, user("*"), resourceRules=[PODS]),
        schema("eve", 5, user("eve"), resourceRules=[PODS]),
        schema("also-eve", 5, user("eve"), resourceRules=[nodes]),
        schema("readers", 4, group("readers"), nonResourceRules=[urls]),
        schema("robots", 3, account, resourceRules=[nodes]),
        schema("dangling", 1, user("*"), level="gone", resourceRules=[PODS, nodes]),
    ):
        store.create(SCHEMAS, each)
    return found


@pytest.mark.parametrize(
    ("asks", "method", "path", "want"),
    [
        (EVE, "GET", "/api/v1/namespaces/default/pods", "eve"),
        (EVE, "GET", "/api/v1/namespaces/default/pods/p/log", "eve"),
        (BOB, "GET", "/api/v1/namespaces/default/pods", "late"),
        (EVE, "GET", "/api/v1/namespaces/other/pods", ""),
        (EVE, "GET", "/api/v1/pods", ""),
        (EVE, "DELETE", "/api/v1/namespaces/default/pods/p", ""),
        (EVE, "DELETE", "/api/v1/nodes/n", "also-eve"),
        (BOB, "GET", "/healthz", "readers"),
        (BOB, "GET", "/openapi/v2", "readers"),
        (BOB, "GET", "/metrics", ""),
        (EVE, "GET", "/healthz", ""),
        (ROBOT, "GET", "/api/v1/nodes", "robots"),
        (service_account("other", "robot"), "GET", "/api/v1/nodes", ""),
    ],
)
def test_the_first_schema_that_fits(
    control: FlowControl, asks: User, method: str, path: str, want: str
) -> None:
    flow = control.flow_of(asks, method, path, b"")
    assert flow == ((want, f"uid-{want}", "low", "uid-low") if want else ("", "", "", ""))


def test_a_schema_that_goes_is_counted_no_longer(control: FlowControl) -> None:
    path = "/api/v1/namespaces/default/pods"
    flow = control.flow_of(EVE, "GET", path, b"")
    control.enter(flow)
    control.enter(flow)
    control.leave(flow)
    control._store.delete(SCHEMAS, "", "eve")
    assert control.flow_of(EVE, "GET", path, b"").schema == "late"
    measured = {family.name: numbers for family, numbers in control.measured()}
    assert measured["apiserver_flowcontrol_dispatched_requests_total"] == {}
    assert measured["apiserver_flowcontrol_current_executing_requests"] == {("low", "eve"): 1}
    control.leave(flow)


SEATS = {
    "exempt": 0,
    "catch-all": 13,
    "global-default": 49,
    "leader-election": 25,
    "node-high": 98,
    "system": 74,
    "workload-high": 98,
    "workload-low": 245,
}
"""Of 600: each level's shares among the 245 of all, rounded up."""


async def test_answers_and_metrics_tell_of_flows() -> None:
    serving = Serving(resources=RESOURCES)
    await bootstrap(serving.server.writes)
    answer = await serving.http.get("/api/v1/namespaces")
    exempt = serving.store.get(SCHEMAS, "", "exempt"), serving.store.get(LEVELS, "", "exempt")
    assert [
        answer.headers[f"x-kubernetes-pf-{kind}-uid"] for kind in ("flowschema", "prioritylevel")
    ] == [each.uid for each in exempt]
    text = (await serving.http.get("/metrics")).text
    samples = {
        (sample.name.removeprefix("apiserver_flowcontrol_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("apiserver_flowcontrol_")
    }
    expected: dict[tuple[str, ...], int] = {
        ("dispatched_requests_total", "exempt", "exempt"): 1,
        ("current_executing_requests", "exempt", "exempt"): 0,
    }
    assert samples == expected | {("nominal_limit_seats", level): SEATS[level] for level in SEATS}


def test_nothing_is_known_before_there_are_schemas() -> None:
    assert FlowControl(Store(), seats=600).flow_of(ADMIN, "GET", "/api", b"").headers == [
        (b"x-kubernetes-pf-flowschema-uid", b""),
        (b"x-kubernetes-pf-prioritylevel-uid", b""),
    ]
