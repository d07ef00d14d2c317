"""What the API server fills in: the same as a real 1.36 does."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import pod as pod_strategy
from berth.cluster.strategies.pod import POD
from berth.kube.objects.pod_defaults import pull_policy, qos_class
from tests.cluster.bodies import complaints, node, pod, stored, workload

DEPLOYMENT = find("apps", "v1", "deployments").strategy
NAMESPACE = find("", "v1", "namespaces").strategy
NODE = find("", "v1", "nodes").strategy
PRIORITY_CLASS = find("scheduling.k8s.io", "v1", "priorityclasses").strategy
REPLICATION_CONTROLLER = find("", "v1", "replicationcontrollers").strategy
REPLICA_SET = find("apps", "v1", "replicasets").strategy
SERVICE = find("", "v1", "services").strategy
STATEFUL_SET = find("apps", "v1", "statefulsets").strategy

DEFAULT_CONTAINER = {
    "name": "c",
    "image": "nginx",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
DEFAULT_TEMPLATE_SPEC = {
    "containers": [DEFAULT_CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def test_a_pod_gets_its_defaults() -> None:
    assert stored(POD, pod()) == {
        "metadata": {"name": "p", "namespace": "default", "generation": 1},
        "spec": {**DEFAULT_TEMPLATE_SPEC, "enableServiceLinks": True},
    }


@pytest.mark.parametrize("strategy", [DEPLOYMENT, REPLICA_SET, STATEFUL_SET])
def test_a_template_gets_only_the_defaults_of_templates(strategy: Strategy) -> None:
    assert stored(strategy, workload())["spec"]["template"]["spec"] == DEFAULT_TEMPLATE_SPEC


def test_a_stateful_set_gets_its_defaults() -> None:
    spec = stored(STATEFUL_SET, workload())["spec"]
    assert {k: v for k, v in spec.items() if k not in ("selector", "template")} == {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }


def test_a_stateful_set_says_what_its_claims_are() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    spec = stored(STATEFUL_SET, workload(volumeClaimTemplates=[claim]))["spec"]
    assert spec["volumeClaimTemplates"] == [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        }
    ]


def test_a_replication_controller_selects_by_its_template() -> None:
    body = workload()
    template = body["spec"]["template"]
    body["spec"] = {"template": template}
    found = stored(REPLICATION_CONTROLLER, body)
    assert found["metadata"]["labels"] == found["spec"]["selector"] == {"app": "web"}
    assert complaints(REPLICATION_CONTROLLER, body) == []


def test_a_deployment_gets_its_defaults() -> None:
    spec = stored(DEPLOYMENT, workload())["spec"]

    assert {k: v for k, v in spec.items() if k not in ("selector", "template")} == {
        "replicas": 1,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }


def test_what_is_said_stays() -> None:
    said: Object = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "mine",
        "enableServiceLinks": False,
        "unknownToUs": {"kept": [1]},
    }

    spec = stored(POD, pod(**said))["spec"]

    assert {key: spec[key] for key in said} == said


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_requests_follow_limits_and_ports_the_host() -> None:
    container = {
        "name": "c",
        "image": "nginx:1",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        "ports": [{"containerPort": 80}],
    }

    got = stored(POD, pod(containers=[container], hostNetwork=True))["spec"]["containers"][0]

    assert got["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert got["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        pytest.param([{}], "BestEffort", id="nothing asked"),
        pytest.param([{"requests": {"cpu": "0"}}], "BestEffort", id="zero is nothing"),
        pytest.param([{"requests": {"cpu": "1"}}], "Burstable", id="a request only"),
        pytest.param(
            [{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}],
            "Guaranteed",
            id="requests are limits",
        ),
        pytest.param(
            [
                {
                    "requests": {"cpu": "1000m", "memory": "1Gi"},
                    "limits": {"cpu": "1", "memory": "1024Mi"},
                }
            ],
            "Guaranteed",
            id="the same amounts in other words",
        ),
        pytest.param(
            [{"limits": {"cpu": "1", "memory": "1Gi"}}, {}],
            "Burstable",
            id="one container without limits",
        ),
    ],
)
def test_qos_class(resources: list[Object], want: str) -> None:
    containers = [{"name": f"c{i}", "resources": each} for i, each in enumerate(resources)]
    assert qos_class({"containers": containers}) == want


def test_a_gated_pod_says_why_it_waits() -> None:
    obj = stored(POD, pod(schedulingGates=[{"name": "example.com/wait"}]))

    assert pod_strategy.initial_status(obj) == {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ],
        "qosClass": "BestEffort",
    }


def test_match_label_keys_become_expressions_of_the_selector() -> None:
    def term(**more: Any) -> Object:
        return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}

    obj = pod(
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    term(matchLabelKeys=["hash", "absent"], mismatchLabelKeys=["tenant"])
                ]
            }
        },
        topologySpreadConstraints=[
            term(maxSkew=1, whenUnsatisfiable="DoNotSchedule", matchLabelKeys=["hash"])
        ],
    )
    obj["metadata"]["labels"] = {"app": "web", "hash": "1", "tenant": "a"}

    spec = stored(POD, obj)["spec"]

    affinity = spec["affinity"]["podAntiAffinity"]
    (merged,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert merged["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["1"]},
        {"key": "tenant", "operator": "NotIn", "values": ["a"]},
    ]
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["1"]}
    ]


def test_generation_counts_changes_of_spec_only() -> None:
    born = stored(DEPLOYMENT, workload())
    relabelled = {**born, "metadata": {**born["metadata"], "labels": {"a": "b"}}}
    rescaled = {**born, "spec": {**born["spec"], "replicas": 7}}

    generations = [
        stored(DEPLOYMENT, new, old)["metadata"]["generation"]
        for new, old in [(workload(), None), (relabelled, born), (rescaled, born)]
    ]

    assert generations == [1, 1, 2]


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param({"metadata": {"name": "n"}, "status": {}}, {}, id="nothing"),
        pytest.param(
            {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}},
            {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}},
            id="allocatable is capacity unless said",
        ),
    ],
)
def test_a_node_gets_its_defaults(obj: Object, want: Object) -> None:
    assert stored(NODE, obj) == {"metadata": {"name": "n"}, "spec": {}, "status": want}


def test_a_namespace_is_labelled_and_held() -> None:
    assert stored(NAMESPACE, {"metadata": {"name": "demo"}}) == {
        "metadata": {"name": "demo", "labels": {"kubernetes.io/metadata.name": "demo"}},
        "spec": {"finalizers": ["kubernetes"]},
    }


def test_a_namespace_keeps_its_finalizer_through_updates() -> None:
    old = stored(NAMESPACE, {"metadata": {"name": "demo"}})
    assert stored(NAMESPACE, {**old, "spec": {}}, old) == old


def test_a_priority_class_preempts_unless_it_says_otherwise() -> None:
    got = stored(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 7})
    assert (got["preemptionPolicy"], got["metadata"]["generation"]) == ("PreemptLowerPriority", 1)


def test_the_ports_of_a_service_lead_to_the_same_ones() -> None:
    body = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.0.9"},
    }

    born = stored(SERVICE, body)
    again = stored(SERVICE, body, born)

    assert born["spec"]["clusterIPs"] == ["10.96.0.9"]
    assert born["spec"]["ports"][0]["targetPort"] == 80
    zero: Any = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "targetPort": 0}]}}
    SERVICE.default(zero)
    assert zero["spec"]["ports"][0]["targetPort"] == 80
    assert again == born


def test_a_headless_service_stays_headless() -> None:
    body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"clusterIP": "None"}}
    assert stored(SERVICE, body)["spec"]["clusterIPs"] == ["None"]


@pytest.mark.parametrize(
    ("spec", "status", "want"),
    [
        pytest.param({"nodeName": "n1"}, {"phase": "Running"}, 30, id="30 s by default"),
        pytest.param(
            {"nodeName": "n1", "terminationGracePeriodSeconds": 5}, {}, 5, id="what it says"
        ),
        pytest.param({}, {}, 0, id="nothing runs without a node"),
        pytest.param({"nodeName": "n1"}, {"phase": "Failed"}, 0, id="finished"),
    ],
)
def test_grace_period(spec: Object, status: Object, want: int) -> None:
    assert POD.graceful_seconds is not None
    assert POD.graceful_seconds({"spec": spec, "status": status}) == want


def test_builders_describe_a_valid_node() -> None:
    assert NODE.validate(stored(NODE, node(allocatable={"cpu": "4"})), None) == []
