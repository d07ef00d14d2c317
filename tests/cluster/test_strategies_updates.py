"""What may change after creation, and that no body whatever makes a strategy raise."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.schemas import checks
from berth.cluster.strategies.pod import POD
from berth.cluster.strategies.pod_update import MUTABLE
from tests.cluster.bodies import CONTAINER, complaints, pod, stored, workload

DEPLOYMENT = find("apps", "v1", "deployments").strategy
PRIORITY_CLASS = find("scheduling.k8s.io", "v1", "priorityclasses").strategy
SERVICE = find("", "v1", "services").strategy

TOLERATION = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
GATES = [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(pod(), pod(containers=[{**CONTAINER, "image": "x"}]), [], id="an image"),
        pytest.param(pod(), pod(tolerations=[TOLERATION]), [], id="a further toleration"),
        pytest.param(
            pod(tolerations=[TOLERATION]),
            pod(tolerations=[{**TOLERATION, "tolerationSeconds": 5}]),
            [],
            id="how long a toleration lasts",
        ),
        pytest.param(
            pod(tolerations=[TOLERATION]),
            pod(),
            [
                "spec.tolerations: Forbidden: "
                "existing toleration can not be modified except its tolerationSeconds"
            ],
            id="a toleration taken away",
        ),
        pytest.param(
            pod(), pod(nodeName="n1"), [f"spec: Forbidden: {MUTABLE}"], id="the node: bind instead"
        ),
        pytest.param(pod(), pod(priority=3), [f"spec: Forbidden: {MUTABLE}"], id="the priority"),
        pytest.param(
            pod(),
            pod(containers=[CONTAINER, {**CONTAINER, "name": "d"}]),
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="a further container",
        ),
        pytest.param(pod(schedulingGates=GATES), pod(schedulingGates=GATES[:1]), [], id="a gate"),
        pytest.param(
            pod(schedulingGates=GATES[:1]),
            pod(schedulingGates=GATES),
            [
                "spec.schedulingGates: Forbidden: "
                "only deletion is allowed, but found new scheduling gate 'b'"
            ],
            id="a further gate",
        ),
        pytest.param(
            pod(schedulingGates=GATES),
            pod(schedulingGates=GATES, nodeSelector={"disk": "ssd"}),
            [],
            id="a node selector while gated",
        ),
        pytest.param(
            pod(),
            pod(nodeSelector={"disk": "ssd"}),
            [f"spec: Forbidden: {MUTABLE}"],
            id="a node selector later",
        ),
        pytest.param(pod(), pod(activeDeadlineSeconds=5), [], id="a deadline"),
        pytest.param(
            pod(activeDeadlineSeconds=5),
            pod(activeDeadlineSeconds=6),
            [
                "spec.activeDeadlineSeconds: "
                "Invalid value: 6: must be less than or equal to previous value"
            ],
            id="a later deadline",
        ),
    ],
)
def test_pod_updates(before: Object, after: Object, want: list[str]) -> None:
    told = complaints(POD, after, stored(POD, before))
    assert [line.partition("\n")[0] for line in told] == want


def test_a_refused_update_tells_the_difference() -> None:
    [told] = complaints(POD, pod(nodeName="b"), stored(POD, pod(nodeName="a")))
    assert told == f"spec: Forbidden: {MUTABLE}\n" + "\n".join(
        [
            "@@ -42,7 +42,7 @@",
            '  "NodeSelector": null,',
            '  "ServiceAccountName": "",',
            '  "AutomountServiceAccountToken": null,',
            '- "NodeName": "a",',
            '+ "NodeName": "b",',
            '  "SecurityContext": {',
            '   "HostNetwork": false,',
            '   "HostPID": false,',
            "",
        ]
    )


def test_a_deployment_keeps_its_selector() -> None:
    other = workload(selector={"matchLabels": {"tier": "web"}})
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "web"

    assert complaints(DEPLOYMENT, other, stored(DEPLOYMENT, workload())) == [
        'spec.selector: Invalid value: {"matchLabels":{"tier":"web"}}: field is immutable'
    ]


def test_a_priority_class_keeps_its_value() -> None:
    def priority_class(value: int) -> Object:
        return {"metadata": {"name": "p"}, "value": value}

    old = stored(PRIORITY_CLASS, priority_class(1))
    assert complaints(PRIORITY_CLASS, priority_class(2), old) == [
        "value: Forbidden: may not be changed in an update."
    ]


def test_a_service_keeps_its_address() -> None:
    def service(ip: str) -> Object:
        spec = {"clusterIP": ip, "ports": [{"port": 80}]}
        return {"metadata": {"name": "s", "namespace": "default"}, "spec": spec}

    old = stored(SERVICE, service("10.96.0.9"))
    assert complaints(SERVICE, service("10.96.0.8"), old) == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set'
    ]


def holes(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything in *body*."""
    children = (
        body.items()
        if isinstance(body, dict)
        else enumerate(body)
        if isinstance(body, list)
        else ()
    )
    return [path, *(hole for key, value in children for hole in holes(value, (*path, key)))]


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return *body* with *value* at *path*."""
    if not path:
        return value
    shallow: Any = dict(body) if isinstance(body, dict) else list(body)
    shallow[path[0]] = replaced(body[path[0]], path[1:], value)
    return shallow


PODS = find("", "v1", "pods")


TEXTS = st.text(max_size=8) | st.sampled_from(["500m", "-1", "1e9999999", "In", "25%", "9" * 99])
NUMBERS = st.integers(-(2**31), 2**31 - 1)


def like(value: Any) -> st.SearchStrategy[Any]:
    """Return other values of the JSON type that *value* has."""
    match value:
        case bool():
            return st.booleans()
        case int():
            return NUMBERS
        case str():
            return TEXTS
        case list():
            return st.just([])
        case _:
            return st.just({})


def found_at(body: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        body = body[step]
    return body


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_odd_value_inside_a_good_pod_makes_the_strategy_raise(data: st.DataObject) -> None:
    good = stored(POD, RICH_POD)
    assert POD.validate(good, None) == []
    path = data.draw(st.sampled_from([path for path in holes(RICH_POD) if path]))
    junk = data.draw(like(found_at(RICH_POD, path)))

    bad = copy.deepcopy(replaced(RICH_POD, path, junk))
    assume(checks.fits(PODS.schema, bad))  # else nobody asks the strategy

    POD.default(bad)
    POD.prepare(bad, good)
    POD.initial_status(bad)
    POD.validate(bad, None)
    POD.validate(bad, good)


RICH_TERM = {
    "topologyKey": "zone",
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["web"]}],
    },
    "matchLabelKeys": ["hash"],
}
RICH_POD = pod(
    containers=[
        {
            **CONTAINER,
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            "ports": [{"name": "http", "containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    volumes=[{"name": "v", "secret": {"secretName": "s"}}],
    nodeSelector={"disk": "ssd"},
    tolerations=[TOLERATION],
    schedulingGates=GATES,
    overhead={"cpu": "10m"},
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                ]
            }
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": RICH_TERM}
            ]
        },
    },
    topologySpreadConstraints=[{**RICH_TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
)
RICH_POD["metadata"]["labels"] = {"app": "web", "hash": "1"}
