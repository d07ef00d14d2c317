"""What the API server fills in of the parts of a pod, as a real 1.36 does."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.strategies.pod import POD
from tests.cluster.bodies import pod, stored, workload

DEPLOYMENT = find("apps", "v1", "deployments").strategy

PERSISTENT_VOLUME = find("", "v1", "persistentvolumes").strategy

CONTAINER = {
    "name": "c",
    "image": "nginx",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
HTTP_GET = {"port": 80, "path": "/", "scheme": "HTTP"}
PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
NAME_REF = {"fieldPath": "metadata.name"}


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": NAME_REF}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", **NAME_REF}}}]},
            id="the version that a field path is of",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}
                        },
                    }
                ]
            },
            id="no divisor is zero",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"key": "a"}}}]},
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"key": "a", "optional": False}}}]},
            id="a variable from a file",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0}},
            {"livenessProbe": {**PROBE, "httpGet": HTTP_GET}},
            id="zero is not set in a probe",
        ),
        pytest.param(
            {"startupProbe": {"grpc": {"port": 80}, "failureThreshold": 9}},
            {"startupProbe": {**PROBE, "failureThreshold": 9, "grpc": {"port": 80, "service": ""}}},
            id="a probe by gRPC",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"httpGet": {"port": 80}}, "stopSignal": "SIGTERM"}},
            {"lifecycle": {"preStop": {"httpGet": HTTP_GET}, "stopSignal": "SIGTERM"}},
            id="a hook",
        ),
    ],
)
def test_a_container_gets_the_defaults_of_its_parts(said: Object, want: Object) -> None:
    container = {"name": "c", "image": "nginx", **said}
    got = stored(POD, pod(containers=[container]))["spec"]["containers"]
    assert got == [{**CONTAINER, **want}]


def test_an_ephemeral_container_gets_them_too() -> None:
    variable = {"name": "A", "valueFrom": {"fieldRef": dict(NAME_REF)}}
    obj: Object = pod(ephemeralContainers=[{"name": "d", "image": "nginx", "env": [variable]}])
    POD.default(obj)
    (got,) = obj["spec"]["ephemeralContainers"]
    assert got["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source is an empty directory"),
        pytest.param({"secret": {}}, {"secret": {"defaultMode": 0o644}}, id="mode of files"),
        pytest.param(
            {"configMap": {"defaultMode": 0}}, {"configMap": {"defaultMode": 0}}, id="no rights"
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "a", "fieldRef": NAME_REF}]}},
            {
                "downwardAPI": {
                    "defaultMode": 0o644,
                    "items": [{"path": "a", "fieldRef": {"apiVersion": "v1", **NAME_REF}}],
                }
            },
            id="fields of the pod as files",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"secret": {}}]}},
            {
                "projected": {
                    "defaultMode": 0o644,
                    "sources": [
                        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                        {"secret": {}},
                    ],
                }
            },
            id="a token for an hour",
        ),
        pytest.param(
            {"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}, id="host path"
        ),
        pytest.param(
            {"rbd": {"image": "i", "user": "me"}},
            {
                "rbd": {
                    "image": "i",
                    "user": "me",
                    "pool": "rbd",
                    "keyring": "/etc/ceph/keyring",
                }
            },
            id="ceph",
        ),
        pytest.param(
            {"image": {"reference": "quay.io/a:1"}},
            {"image": {"reference": "quay.io/a:1", "pullPolicy": "IfNotPresent"}},
            id="an image",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
                    }
                }
            },
            id="a claim made for the pod",
        ),
    ],
)
def test_a_volume_gets_the_defaults_of_its_source(said: Object, want: Object) -> None:
    body = workload()
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "v", **said}]
    template = stored(DEPLOYMENT, body)["spec"]["template"]
    assert template["spec"]["volumes"] == [{"name": "v", **want}]


def test_a_persistent_volume_gets_the_defaults_of_its_source() -> None:
    body = {"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/a"}}}
    assert stored(PERSISTENT_VOLUME, body)["spec"] == {
        "hostPath": {"path": "/a", "type": ""},
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    }


@pytest.mark.parametrize(
    ("of_pod", "of_containers", "want"),
    [
        pytest.param(
            {"limits": {"cpu": "2", "memory": "2Gi"}},
            [{}],
            {
                "limits": {"cpu": "2", "memory": "2Gi"},
                "requests": {"cpu": "2", "memory": "2Gi"},
            },
            id="limits, where no container asks for anything",
        ),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "2Gi"}},
            [{"requests": {"cpu": "1"}}, {"limits": {"cpu": "500m"}}],
            {
                "limits": {"cpu": "2", "memory": "2Gi"},
                "requests": {"cpu": "1500m", "memory": "2Gi"},
            },
            id="what the containers ask for",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            [{"requests": {"cpu": "250m", "memory": "1Gi"}}],
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            id="what is said stays",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [{"requests": {"memory": "1Gi"}}],
            {"requests": {"cpu": "1"}},
            id="nothing without limits",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [{"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}],
            {
                "limits": {"hugepages-2Mi": "4Mi"},
                "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
            },
            id="huge pages of the containers",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}},
            [{"requests": {"cpu": "much"}}],
            {"limits": {"cpu": "2"}},
            id="left to validation",
        ),
    ],
)
def test_a_pod_as_a_whole_requests_what_its_containers_do(
    of_pod: Object, of_containers: list[Object], want: Object
) -> None:
    containers = [
        {"name": f"c{i}", "image": "nginx", "resources": resources}
        for i, resources in enumerate(of_containers)
    ]
    obj = pod(containers=containers, resources=of_pod)
    POD.default(obj)
    assert obj["spec"]["resources"] == want
