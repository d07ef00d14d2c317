"""What the API server refuses, in its words. Defaults are in test_strategies_defaults."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies.pod import POD
from tests.cluster.bodies import CONTAINER, complaints, node, pod, workload

DEPLOYMENT = find("apps", "v1", "deployments").strategy
EVENT = find("", "v1", "events").strategy
NAMESPACE = find("", "v1", "namespaces").strategy
NODE = find("", "v1", "nodes").strategy
PRIORITY_CLASS = find("scheduling.k8s.io", "v1", "priorityclasses").strategy
REPLICA_SET = find("apps", "v1", "replicasets").strategy
SERVICE = find("", "v1", "services").strategy
STATEFUL_SET = find("apps", "v1", "statefulsets").strategy

LEASE = find("coordination.k8s.io", "v1", "leases").strategy
QUANTITIES = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def resources(**resources: Any) -> Object:
    return pod(containers=[{**CONTAINER, "resources": resources}])


def named(name: str | None) -> Object:
    obj = pod()
    obj["metadata"]["name"] = name
    return obj


def spread(**constraint: Any) -> Object:
    defaults = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return pod(topologySpreadConstraints=[{**defaults, **constraint}])


def required_node_affinity(*terms: Object) -> Object:
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return pod(affinity={"nodeAffinity": affinity})


NODE_TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(pod(), [], id="a plain pod"),
        pytest.param(
            named("Web"), [f'metadata.name: Invalid value: "Web": {SUBDOMAIN}'], id="upper case"
        ),
        pytest.param(
            named(None),
            ["metadata.name: Required value: name or generateName is required"],
            id="no name",
        ),
        pytest.param(pod(containers=[]), ["spec.containers: Required value"], id="no containers"),
        pytest.param(
            pod(containers=[{}]),
            [
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
            ],
            id="an empty container",
        ),
        pytest.param(
            pod(containers=[CONTAINER, CONTAINER]),
            ['spec.containers[1].name: Duplicate value: "c"'],
            id="two containers of one name",
        ),
        pytest.param(
            pod(restartPolicy="Sometimes"),
            [
                'spec.restartPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "OnFailure", "Never"'
            ],
            id="an unknown word",
        ),
        pytest.param(
            resources(requests={"cpu": "1x"}),
            [f'spec.containers[0].resources.requests[cpu]: Invalid value: "1x": {QUANTITIES}'],
            id="a malformed quantity",
        ),
        pytest.param(
            resources(requests={"memory": "-1"}),
            [
                "spec.containers[0].resources.requests[memory]: "
                'Invalid value: "-1": must be greater than or equal to 0'
            ],
            id="a negative quantity",
        ),
        pytest.param(
            resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
            [
                "spec.containers[0].resources.requests: "
                'Invalid value: "2": must be less than or equal to cpu limit of 1'
            ],
            id="a request beyond its limit",
        ),
        pytest.param(
            resources(requests={"example.com/gpu": "1"}),
            [
                "spec.containers[0].resources.limits: "
                "Required value: Limit must be set for non overcommitable resources"
            ],
            id="a device without a limit",
        ),
        pytest.param(
            resources(limits={"example.com/gpu": "1500m"}),
            [
                "spec.containers[0].resources.limits[example.com/gpu]: "
                'Invalid value: "1500m": must be an integer',
                "spec.containers[0].resources.requests[example.com/gpu]: "
                'Invalid value: "1500m": must be an integer',
            ],
            id="half a device",
        ),
        pytest.param(
            resources(requests={"pods": "1"}),
            [
                "spec.containers[0].resources.requests[pods]: "
                'Invalid value: "pods": must be a standard resource for containers'
            ],
            id="a resource of nodes only",
        ),
        pytest.param(
            pod(tolerations=[{"operator": "Equal", "value": "v"}]),
            [
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists '
                'when `key` is empty, which means "match all values and all keys"'
            ],
            id="a toleration without a key",
        ),
        pytest.param(
            pod(tolerations=[{"key": "k", "operator": "Like", "value": "1"}]),
            [
                'spec.tolerations[0].operator: Unsupported value: "Like": '
                'supported values: "Equal", "Exists"'
            ],
            id="a toleration of an unknown operator",
        ),
        pytest.param(
            pod(tolerations=[{"key": "k", "operator": "Gt", "value": "-1"}]),
            [],
            id="a toleration that compares",
        ),
        pytest.param(
            pod(tolerations=[{"key": "k", "operator": "Lt", "value": "08"}]),
            [
                'spec.tolerations[0].value: Invalid value: "08": must be a valid decimal integer'
                " in canonical form"
            ],
            id="a toleration that compares with what is no number",
        ),
        pytest.param(
            pod(tolerations=[{"operator": "Lt", "value": "8"}]),
            [
                'spec.tolerations[0].operator: Invalid value: "Lt": operator must be Exists '
                'when `key` is empty, which means "match all values and all keys"'
            ],
            id="a toleration that compares without a key",
        ),
        pytest.param(
            pod(tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 3}]),
            [
                'spec.tolerations[0].effect: Invalid value: "": '
                "effect must be 'NoExecute' when `tolerationSeconds` is set"
            ],
            id="seconds without NoExecute",
        ),
        pytest.param(
            spread(maxSkew=0),
            [
                "spec.topologySpreadConstraints[0].maxSkew: "
                "Invalid value: 0: must be greater than zero"
            ],
            id="no skew at all",
        ),
        pytest.param(
            spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
            [
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use "
                "minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            ],
            id="domains of a wish",
        ),
        pytest.param(
            spread(matchLabelKeys=["app"]),
            [
                "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: "
                "must not be specified when labelSelector is not set"
            ],
            id="keys without a selector",
        ),
        pytest.param(
            required_node_affinity(),
            [f"{NODE_TERMS}: Required value: must have at least one node selector term"],
            id="an affinity to nothing",
        ),
        pytest.param(
            required_node_affinity({"matchExpressions": [{"key": "zone", "operator": "In"}]}),
            [
                f"{NODE_TERMS}[0].matchExpressions[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'"
            ],
            id="one of no values",
        ),
        pytest.param(
            required_node_affinity({"matchExpressions": [{"key": "zone", "operator": "in"}]}),
            [
                f"{NODE_TERMS}[0].matchExpressions[0].operator: "
                'Invalid value: "in": not a valid selector operator'
            ],
            id="an unknown operator",
        ),
        pytest.param(
            pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
            ['spec.schedulingGates[1]: Duplicate value: "a"'],
            id="the same gate twice",
        ),
    ],
)
def test_pods(obj: Object, want: list[str]) -> None:
    assert complaints(POD, obj) == want


def test_a_bad_label_is_explained() -> None:
    obj = pod()
    obj["metadata"]["labels"] = {"-bad": "ok", "ok": "not ok"}

    got = complaints(POD, obj)

    assert [each.split(": ")[0] for each in got] == ["metadata.labels", "metadata.labels"]
    assert got[0].startswith('metadata.labels: Invalid value: "-bad": name part must consist of')
    assert got[1].startswith('metadata.labels: Invalid value: "not ok": a valid label must be')


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(workload(), [], id="a plain deployment"),
        pytest.param(
            workload(selector={"matchLabels": {"app": "other"}}),
            [
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: '
                "`selector` does not match template `labels`"
            ],
            id="a selector of other pods",
        ),
        pytest.param(
            workload(selector={}),
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="a selector of all pods",
        ),
        pytest.param(
            workload(selector=None),
            [
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: '
                "`selector` does not match template `labels`",
            ],
            id="no selector",
        ),
        pytest.param(
            workload(replicas=-1),
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="less than nothing",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
            [
                "spec.strategy.rollingUpdate.maxUnavailable: "
                'Invalid value: "0%": may not be 0 when `maxSurge` is 0'
            ],
            id="a rollout that cannot move",
        ),
        pytest.param(
            workload(strategy={"type": "Slowly"}),
            ['spec.strategy: Unsupported value: "Slowly": supported values: "Recreate", '
             '"RollingUpdate"'],
            id="an unknown strategy",
        ),
    ],
)  # fmt: skip
def test_deployments(obj: Object, want: list[str]) -> None:
    assert complaints(DEPLOYMENT, obj) == want


def test_templates_always_restart() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [CONTAINER], "restartPolicy": "Never"},
    }
    assert complaints(REPLICA_SET, workload(template=template)) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
    ]


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(node(allocatable={"cpu": "4", "example.com/gpu": 2}), [], id="a plain node"),
        pytest.param(
            node(allocatable={"cpu": "four"}),
            [f'status.allocatable.cpu: Invalid value: "four": {QUANTITIES}'],
            id="nonsense to give",
        ),
        pytest.param(
            node(taints=[{"key": "k", "effect": "NoWay"}]),
            [
                'metadata.taints[0].effect: Unsupported value: "NoWay": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
            id="an unknown effect",
        ),
        pytest.param(
            node(taints=[{"key": "k", "effect": "NoSchedule", "value": v} for v in "ab"]),
            [
                'metadata.taints[1]: Duplicate value: {"Key":"k","Value":"b","Effect":"NoSchedule",'
                '"TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            ],
            id="the same taint twice",
        ),
    ],
)
def test_nodes(obj: Object, want: list[str]) -> None:
    assert complaints(NODE, obj) == want


def test_a_status_of_nonsense_is_refused_too() -> None:
    errors = NODE.validate_status({"status": {"allocatable": {"memory": "-1"}}}, {})
    assert [f"{error.field}: {error.message}" for error in errors] == [
        'status.allocatable.memory: Invalid value: "-1": must be greater than or equal to 0'
    ]


@pytest.mark.parametrize(
    ("strategy", "obj", "field"),
    [
        (NAMESPACE, {"metadata": {"name": "a.b"}}, "metadata.name"),
        (SERVICE, {"metadata": {"name": "s", "namespace": "d"}}, "spec.ports"),
        (SERVICE, {"metadata": {"name": "1s", "namespace": "d"}, "spec": {"clusterIP": "None"}},
         "metadata.name"),
        (PRIORITY_CLASS, {"metadata": {"name": "p"}, "value": 2_000_000_000}, "value"),
        (PRIORITY_CLASS, {"metadata": {"name": "system-mine"}, "value": 1}, "metadata.name"),
        (LEASE, {"metadata": {"name": "l", "namespace": "d"}, "spec": {"leaseTransitions": -1}},
         "spec.leaseTransitions"),
        (EVENT, {"metadata": {"name": "e", "namespace": "d"}, "involvedObject": {}},
         "involvedObject.namespace"),
    ],
)  # fmt: skip
def test_other_kinds(strategy: Strategy, obj: Object, field: str) -> None:
    assert [error.split(": ")[0] for error in complaints(strategy, obj)] == [field]


@pytest.mark.parametrize(
    ("strategy", "claims", "want"),
    [
        pytest.param(STATEFUL_SET, ["data"], [], id="which come with each pod of a StatefulSet"),
        pytest.param(
            DEPLOYMENT,
            [],
            ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'],
            id="which no pod of a Deployment has",
        ),
    ],
)
def test_mounts_of_claim_templates(strategy: Strategy, claims: list[str], want: list[str]) -> None:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = workload(volumeClaimTemplates=[{"metadata": {"name": c}, "spec": asked} for c in claims])
    mount = {"name": "data", "mountPath": "/var/lib/data"}
    body["spec"]["template"]["spec"]["containers"] = [{**CONTAINER, "volumeMounts": [mount]}]
    assert complaints(strategy, body) == want
