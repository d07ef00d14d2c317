"""RuntimeClass: overhead and places of the pods of a class."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import pod
from tests.cluster.writes.booted import PODS, Booted

RUNTIME_CLASSES = find("node.k8s.io", "v1", "runtimeclasses")
SCHEDULING = {
    "nodeSelector": {"sandbox": "yes"},
    "tolerations": [{"key": "sandbox", "operator": "Exists"}],
}


@pytest.fixture
def cluster() -> Booted:
    cluster = Booted()
    cluster.create(
        RUNTIME_CLASSES,
        {
            "metadata": {"name": "gvisor"},
            "handler": "runsc",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
            "scheduling": SCHEDULING,
        },
    )
    cluster.create(RUNTIME_CLASSES, {"metadata": {"name": "plain"}, "handler": "runc"})
    return cluster


def test_what_the_class_adds(cluster: Booted) -> None:
    mine = {"key": "mine", "operator": "Exists"}
    body = pod(runtimeClassName="gvisor", nodeSelector={"disk": "ssd"}, tolerations=[mine])
    spec = cluster.create(PODS, body)["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "64Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "sandbox": "yes"}
    keys = [toleration["key"].rpartition("/")[2] for toleration in spec["tolerations"]]
    assert keys == ["mine", "not-ready", "unreachable", "sandbox"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"runtimeClassName": "none"},
            'pod rejected: RuntimeClass "none" not found',
            id="an unknown class",
        ),
        pytest.param(
            {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"runtimeClassName": "plain", "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="an overhead that the class has not",
        ),
        pytest.param(
            {"runtimeClassName": "gvisor", "nodeSelector": {"sandbox": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; "
            "pod.spec.nodeSelector[sandbox] = no",
            id="another place",
        ),
    ],
)
def test_what_the_class_does_not_allow(cluster: Booted, spec: Object, why: str) -> None:
    assert cluster.refused(PODS, pod(**spec)) == (403, f'pods "p" is forbidden: {why}')


def test_an_overhead_may_be_written_in_another_way(cluster: Booted) -> None:
    overhead = {"cpu": "0.25", "memory": "65536Ki"}
    cluster.create(PODS, pod(runtimeClassName="gvisor", overhead=overhead))
