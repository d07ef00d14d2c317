"""What ``/metrics/resources`` says of pods."""

import msgspec
import pytest

from berth.kube.objects.pod import Container, Pod, ResourceRequirements
from berth.kube.objects.quantity import Quantities
from berth.scheduler.metrics.pod_resources import pod_resource_lines
from tests.builders import container, pod, sidecar

REQUEST_HEAD = (
    "# HELP kube_pod_resource_request [STABLE] What pods ask for, by resource.\n"
    "# TYPE kube_pod_resource_request gauge\n"
)


def limited(made: Container, limits: Quantities) -> Container:
    resources = ResourceRequirements(requests=made.resources.requests, limits=limits)
    return msgspec.structs.replace(made, resources=resources)


def limits_for_all(made: Pod, limits: Quantities) -> Pod:
    spec = msgspec.structs.replace(made.spec, resources=ResourceRequirements(limits=limits))
    return msgspec.structs.replace(made, spec=spec)


def told(family: str, *pods: Pod) -> dict[tuple[str, str], float]:
    """Return by resource and unit what is told; of one pod."""
    found = {}
    for line in "".join(pod_resource_lines(pods)).splitlines():
        if line.startswith(family):
            labels, _, number = line.partition("} ")
            _, resource, _, unit, _ = labels.replace("resource=", '"').rsplit('"', 4)
            found[resource, unit] = float(number)
    return found


def test_the_text() -> None:
    made = pod("web", ns="shop", node="n1", priority=7, scheduler='a"b', cpu="250m", memory="1Gi")
    assert "".join(pod_resource_lines([made])) == REQUEST_HEAD + (
        'kube_pod_resource_request{namespace="shop",pod="web",node="n1",scheduler="a\\"b",'
        'priority="7",resource="cpu",unit="cores"} 0.25\n'
        'kube_pod_resource_request{namespace="shop",pod="web",node="n1",scheduler="a\\"b",'
        'priority="7",resource="memory",unit="bytes"} 1.073741824e+09\n'
    )


def test_limits_come_after_all_requests() -> None:
    both = pod("both", containers=[limited(container(cpu=1), {"cpu": 2})])
    text = "".join(pod_resource_lines([both, pod("other", cpu=3)]))
    families = [line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")]
    assert families == ["kube_pod_resource_request"] * 2 + ["kube_pod_resource_limit"]


@pytest.mark.parametrize(
    ("a_pod", "is_told"),
    [
        pytest.param(pod(cpu=1), True, id="waiting, without priority"),
        pytest.param(pod(cpu=1, node="n1", phase="Running"), True, id="running"),
        pytest.param(pod(cpu=1, node="n1", phase="Succeeded"), False, id="finished"),
        pytest.param(pod(cpu=1, node="n1", phase="Failed"), False, id="failed"),
        pytest.param(pod(cpu=1, phase="Failed"), True, id="failed, but never had a node"),
        pytest.param(pod(), False, id="asks for nothing"),
        pytest.param(pod(cpu=0), False, id="asks for zero"),
    ],
)
def test_of_whom(a_pod: Pod, is_told: bool) -> None:
    assert ("".join(pod_resource_lines([a_pod])) != "") is is_told


def test_units() -> None:
    amounts: Quantities = {
        "cpu": "1500m",
        "memory": 10,
        "storage": 20,
        "ephemeral-storage": 30,
        "hugepages-2Mi": 40,
        "attachable-volumes-csi": 50,
        "example.com/gpu": 60,
    }
    assert told("kube_pod_resource_request", pod(requests=amounts)) == {
        ("cpu", "cores"): 1.5,
        ("memory", "bytes"): 10,
        ("storage", "bytes"): 20,
        ("ephemeral-storage", "bytes"): 30,
        ("hugepages-2Mi", "bytes"): 40,
        ("attachable-volumes-csi", "integer"): 50,
        ("example.com/gpu", ""): 60,
    }


CPU = ("cpu", "cores")
MEMORY = ("memory", "bytes")


@pytest.mark.parametrize(
    ("a_pod", "limits"),
    [
        pytest.param(
            pod(containers=[limited(container(n), {"cpu": 1}) for n in ("a", "b", "c")]),
            {CPU: 3},
            id="containers add up",
        ),
        pytest.param(
            pod(
                containers=[limited(container(), {"cpu": 1, "memory": 5})],
                init_containers=[limited(container("init"), {"cpu": 4})],
            ),
            {CPU: 4, MEMORY: 5},
            id="the most of initialising and running",
        ),
        pytest.param(
            pod(
                containers=[limited(container(), {"cpu": 1})],
                init_containers=[
                    limited(sidecar(), {"cpu": 2}),
                    limited(container("init"), {"cpu": 3}),
                ],
            ),
            {CPU: 5},
            id="sidecars run beside later init containers",
        ),
        pytest.param(
            limits_for_all(
                pod(containers=[limited(container(), {"cpu": 1, "ephemeral-storage": 8})]),
                {"cpu": 9, "ephemeral-storage": 1},
            ),
            {CPU: 9, ("ephemeral-storage", "bytes"): 8},
            id="limits of the pod as a whole win, for resources that can have them",
        ),
        pytest.param(
            pod(
                containers=[limited(container(), {"cpu": 1, "memory": 0})],
                overhead={"cpu": 2, "memory": 7, "example.com/gpu": 1},
            ),
            {CPU: 3},
            id="overhead widens limits that there are",
        ),
    ],
)
def test_limits(a_pod: Pod, limits: dict[tuple[str, str], float]) -> None:
    assert told("kube_pod_resource_limit", a_pod) == limits


def test_requests_are_those_that_are_written() -> None:
    made = pod(cpu=1, overhead={"cpu": "500m"}, node="n1")
    assert told("kube_pod_resource_request", made) == {CPU: 1.5}
