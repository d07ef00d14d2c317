"""The cells of all kinds but pods."""

from typing import Any

import pytest

from berth.cluster.columns import kinds
from berth.cluster.columns.cells import Since, selector_text
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

AT = "2026-11-20T13:06:10Z"
LATER = "2026-11-20T13:09:00Z"
META = {"name": "x", "creationTimestamp": AT}


def cells_of(group: str, plural: str, **fields: Any) -> list[Any]:
    obj: Object = {"metadata": dict(META), **fields}
    return [column.value(obj) for column in find(group, "v1", plural).columns]


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
INFO = {
    "kubeletVersion": "v1.36.2",
    "osImage": "Linux",
    "kernelVersion": "6.12",
    "containerRuntimeVersion": "containerd://2.1",
}
ADDRESSES = [
    {"type": "Hostname", "address": "n1"},
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "ExternalIP", "address": "192.0.2.1"},
]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, "Unknown", id="nobody reported"),
        pytest.param({"status": READY}, "Ready", id="ready"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            "NotReady",
            id="the kubelet fell silent",
        ),
        pytest.param(
            {"status": READY, "spec": {"unschedulable": True}},
            "Ready,SchedulingDisabled",
            id="cordoned",
        ),
    ],
)
def test_status_of_a_node(fields: Object, want: str) -> None:
    assert kinds.node_status({"metadata": {}, **fields}) == want


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"kubernetes.io/hostname": "n1"}, "<none>", id="no role"),
        pytest.param(
            {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""},
            "control-plane,worker",
            id="several, sorted",
        ),
        pytest.param({"kubernetes.io/role": "agent"}, "agent", id="the old label"),
    ],
)
def test_roles_of_a_node(labels: dict[str, str], want: str) -> None:
    assert kinds.node_roles({"metadata": {"labels": labels}}) == want


def test_cells_of_a_node() -> None:
    status = {**READY, "nodeInfo": INFO, "addresses": ADDRESSES}
    want = ["x", "Ready", "<none>", Since(AT), "v1.36.2", "10.0.0.1", "192.0.2.1"]
    assert cells_of("", "nodes", status=status) == [
        *want,
        "Linux",
        "6.12",
        "containerd://2.1",
    ]


TEMPLATE = {
    "spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "redis"}]}
}
SPEC = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
STATUS = {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}
WIDE = ["a,b", "nginx,redis", "app=web"]


def test_cells_of_a_deployment() -> None:
    found = cells_of("apps", "deployments", spec=SPEC, status=STATUS)
    assert found == ["x", "2/3", 3, 1, Since(AT), *WIDE]


def test_cells_of_a_replica_set() -> None:
    found = cells_of("apps", "replicasets", spec=SPEC, status=STATUS)
    assert found == ["x", 3, 3, 2, Since(AT), *WIDE]


def test_cells_of_the_workloads_without_a_controller() -> None:
    found = cells_of("apps", "statefulsets", spec=SPEC, status=STATUS)
    assert found == ["x", "2/3", Since(AT), *WIDE[:2]]
    old = {**SPEC, "selector": {"app": "web"}}
    found = cells_of("", "replicationcontrollers", spec=old, status=STATUS)
    assert found == ["x", 3, 3, 2, Since(AT), *WIDE]


PORTS = [
    {"port": 80, "protocol": "TCP"},
    {"port": 53, "protocol": "UDP", "nodePort": 30053},
]
INGRESS = {"loadBalancer": {"ingress": [{"hostname": "lb.example"}, {"ip": "192.0.2.9"}]}}


@pytest.mark.parametrize(
    ("spec", "status", "want"),
    [
        pytest.param(
            {"type": "ClusterIP", "clusterIPs": ["10.1.0.1"], "ports": PORTS[:1]},
            {},
            ["ClusterIP", "10.1.0.1", "<none>", "80/TCP"],
            id="inside the cluster",
        ),
        pytest.param(
            {"type": "ClusterIP", "clusterIP": "None"},
            {},
            ["ClusterIP", "None", "<none>", "<none>"],
            id="headless, no ports",
        ),
        pytest.param(
            {
                "type": "NodePort",
                "clusterIP": "10.1.0.1",
                "ports": PORTS,
                "externalIPs": ["1.2.3.4"],
            },
            {},
            ["NodePort", "10.1.0.1", "1.2.3.4", "80/TCP,53:30053/UDP"],
            id="on every node",
        ),
        pytest.param(
            {"type": "LoadBalancer", "clusterIP": "10.1.0.1", "ports": PORTS[:1]},
            {},
            ["LoadBalancer", "10.1.0.1", "<pending>", "80/TCP"],
            id="the balancer is not there yet",
        ),
        pytest.param(
            {"type": "LoadBalancer", "clusterIP": "10.1.0.1", "externalIPs": ["1.2.3.4"]},
            INGRESS,
            ["LoadBalancer", "10.1.0.1", "192.0.2.9,lb.example,1.2.3.4", "<none>"],
            id="behind a balancer",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "db.example"},
            {},
            ["ExternalName", "<none>", "db.example", "<none>"],
            id="elsewhere",
        ),
    ],
)
def test_cells_of_a_service(spec: Object, status: Object, want: list[str]) -> None:
    found = cells_of("", "services", spec={**spec, "selector": {"b": "2", "a": "1"}}, status=status)
    assert found == ["x", *want, Since(AT), "a=1,b=2"]


POD = {"kind": "Pod", "name": "web-1", "fieldPath": "spec.containers{c}"}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {
                "involvedObject": POD,
                "source": {"component": "kubelet", "host": "n1"},
                "firstTimestamp": AT,
                "lastTimestamp": LATER,
                "count": 5,
                "message": " Back-off\n",
            },
            [
                Since(LATER),
                "pod/web-1",
                "spec.containers{c}",
                "kubelet, n1",
                "Back-off",
                Since(AT),
                5,
            ],
            id="counted by an old recorder",
        ),
        pytest.param(
            {
                "involvedObject": {"kind": "Pod", "name": "web-1"},
                "reportingComponent": "berth",
                "reportingInstance": "berth-0",
                "eventTime": AT,
                "firstTimestamp": None,
                "message": "ok",
            },
            [Since(AT), "pod/web-1", "", "berth, berth-0", "ok", Since(AT), 1],
            id="told once by a new recorder",
        ),
        pytest.param(
            {
                "involvedObject": {"kind": "Node"},
                "reportingComponent": "berth",
                "eventTime": AT,
                "series": {"count": 9, "lastObservedTime": LATER},
            },
            [Since(LATER), "node", "", "berth", "", Since(AT), 9],
            id="a series, of no object in particular",
        ),
    ],
)
def test_cells_of_an_event(fields: Object, want: list[Any]) -> None:
    found = cells_of("", "events", type="Normal", reason="Because", **fields)
    last, *rest = want
    assert found == [last, "Normal", "Because", *rest, "x"]


def test_cells_of_small_kinds() -> None:
    assert cells_of("", "namespaces", status={"phase": "Active"}) == [
        "x",
        "Active",
        Since(AT),
    ]
    assert cells_of("coordination.k8s.io", "leases", spec={"holderIdentity": "me"}) == [
        "x",
        "me",
        Since(AT),
    ]
    fields = {"value": 1000, "preemptionPolicy": "Never"}
    assert cells_of("scheduling.k8s.io", "priorityclasses", **fields) == [
        "x",
        1000,
        False,
        Since(AT),
        "Never",
    ]


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(None, "", id="no selector"),
        pytest.param({}, "", id="an empty one"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels, sorted"),
        pytest.param(
            {
                "matchLabels": {"m": "x"},
                "matchExpressions": [
                    {"key": "z", "operator": "DoesNotExist"},
                    {"key": "b", "operator": "In", "values": ["2", "1"]},
                    {"key": "c", "operator": "NotIn", "values": ["3"]},
                    {"key": "d", "operator": "Exists"},
                ],
            },
            "b in (1,2),c notin (3),d,m=x,!z",
            id="every operator, sorted by key",
        ),
    ],
)
def test_selectors_are_written_as_kubectl_does(selector: Object | None, want: str) -> None:
    assert selector_text(selector) == want
