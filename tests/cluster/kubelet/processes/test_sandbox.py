"""What containers see: variables and files made from the pod and from what it names."""

import base64
import random
from typing import Any

import pytest

from berth.cluster.kubelet.processes.sandbox import PodSandbox, Volumes, expanded
from berth.cluster.kubelet.processes.shell import Input
from berth.cluster.resources import Object

T0 = 1_767_225_600.0
OBJECTS: dict[tuple[str, str], Object] = {
    ("configmaps", "m"): {"data": {"a": "1", "b": "2"}},
    ("secrets", "s"): {"data": {"key": base64.b64encode(b"hidden").decode()}},
}
VOLUMES: list[Object] = [
    {"name": "empty", "emptyDir": {}},
    {"name": "m", "configMap": {"name": "m", "items": [{"key": "a", "path": "sub/a"}]}},
    {
        "name": "all",
        "projected": {
            "sources": [
                {"secret": {"name": "s"}},
                {
                    "downwardAPI": {
                        "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
                    }
                },
            ]
        },
    },
    {"name": "claim", "persistentVolumeClaim": {"claimName": "data-p-0"}},
    {"name": "host", "hostPath": {"path": "/var/lib"}},
]


def sandbox_of(volumes: Volumes | None = None, **container: Any) -> PodSandbox:
    pod = {
        "metadata": {"name": "p-0", "namespace": "default", "uid": "u", "labels": {"app": "p"}},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "busybox", **container}],
            "volumes": VOLUMES,
        },
    }
    sandbox = PodSandbox(
        pod, pod_ip="10.0.0.1", host_ip="10.1.0.1", volumes=volumes or Volumes(),
        rng=random.Random(1),
    )  # fmt: skip
    sandbox.objects = {name: OBJECTS.get(name) for name in sandbox.objects}
    return sandbox


def said(pod: PodSandbox, script: str) -> str:
    texts: list[str] = []
    process = pod.sandbox("c").execute(
        ["sh", "-c", script], T0, out=texts.append, err=texts.append, stdin=Input()
    )
    process.advance(T0)
    return "".join(texts)


def variable(**source: Any) -> list[Object]:
    return [{"name": "X", "valueFrom": source}]


@pytest.mark.parametrize(
    ("env", "value"),
    [
        pytest.param([{"name": "X", "value": "a $(HOSTNAME) $$(HOSTNAME) $(NO)"}],
                     "a p-0 $(HOSTNAME) $(NO)", id="a value"),
        pytest.param(variable(fieldRef={"fieldPath": "metadata.name"}), "p-0", id="its name"),
        pytest.param(variable(fieldRef={"fieldPath": "metadata.labels['app']"}), "p", id="label"),
        pytest.param(variable(fieldRef={"fieldPath": "status.podIP"}), "10.0.0.1", id="address"),
        pytest.param(variable(fieldRef={"fieldPath": "spec.nodeName"}), "n", id="its node"),
        pytest.param(variable(resourceFieldRef={"resource": "limits.cpu"}), "2", id="whole CPUs"),
        pytest.param(variable(resourceFieldRef={"resource": "limits.cpu", "divisor": "1m"}),
                     "1500", id="thousandths"),
        pytest.param(variable(configMapKeyRef={"name": "m", "key": "b"}), "2", id="a ConfigMap"),
        pytest.param(variable(secretKeyRef={"name": "s", "key": "key"}), "hidden", id="a Secret"),
        pytest.param(variable(configMapKeyRef={"name": "no", "key": "b"}), "none", id="missing"),
    ],
)  # fmt: skip
def test_variables(env: list[Object], value: str) -> None:
    pod = sandbox_of(env=env, resources={"limits": {"cpu": "1500m"}})
    assert said(pod, 'echo "${X-none}"') == f"{value}\n"


def test_variables_of_a_whole_config_map() -> None:
    source = {"prefix": "P_", "configMapRef": {"name": "m"}}
    assert said(sandbox_of(envFrom=[source]), "echo $P_a $P_b") == "1 2\n"


@pytest.mark.parametrize(
    ("mount", "script", "want"),
    [
        pytest.param({"name": "empty"}, "ls /v", "", id="an emptyDir"),
        pytest.param({"name": "m"}, "find /v; cat /v/sub/a", "/v\n/v/sub\n/v/sub/a\n1", id="items"),
        pytest.param({"name": "m", "subPath": "sub/a"}, "cat /v", "1", id="one file of it"),
        pytest.param({"name": "all"}, "cat /v/key /v/labels", 'hiddenapp="p"\n', id="projected"),
        pytest.param(
            {"name": "host", "subPathExpr": "$(HOSTNAME)"}, "ls /v", "", id="a new folder"
        ),
    ],
)
def test_files(mount: Object, script: str, want: str) -> None:
    pod = sandbox_of(volumeMounts=[{"mountPath": "/v", **mount}])
    assert said(pod, script) == want


@pytest.mark.parametrize(("name", "is_kept"), [("empty", False), ("claim", True), ("host", True)])
def test_what_outlives_a_pod(name: str, is_kept: bool) -> None:
    volumes, mounts = Volumes(), [{"name": name, "mountPath": "/v"}]
    first = sandbox_of(volumes, volumeMounts=mounts)
    assert said(first, "echo kept > /v/f; echo lost > /tmp/f") == ""
    assert said(first, "cat /v/f") == "kept\n"
    assert said(first, "ls /tmp") == ""
    second = sandbox_of(volumes, volumeMounts=mounts)
    assert said(second, "ls /v") == ("f\n" if is_kept else "")


def test_expansion_of_commands() -> None:
    assert expanded("$(A) $$(A) $(B) $A $$$(A)", {"A": "a"}) == "a $(A) $(B) $A $a"
