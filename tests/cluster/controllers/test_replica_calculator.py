"""How many replicas the use of resources calls for."""

from typing import Any

import msgspec
import pytest

from berth.cluster.controllers.replica_calculator import (
    MetricError,
    PodMetrics,
    Proposal,
    Sample,
    Tolerances,
    for_utilization,
    for_value,
    samples_of,
)
from berth.cluster.pods.controllers import ScaledPod
from berth.runtime.clock import rfc3339

NOW = 1_767_225_600.0
LONG_AGO = 3600.0


def pod(
    name: str,
    *,
    request: str | None = "100m",
    phase: str = "Running",
    started: float = LONG_AGO,
    ready: bool = True,
    since: float = LONG_AGO,
    **more: Any,
) -> ScaledPod:
    """A pod that *started* so many seconds ago, and is ready, or not, *since* so many."""
    resources = {"requests": {"cpu": request}} if request else {}
    condition = {
        "type": "Ready",
        "status": str(ready),
        "lastTransitionTime": rfc3339(NOW - since),
    }
    body = {
        "metadata": {"name": name, "uid": name, **more.pop("metadata", {})},
        "spec": {"containers": [{"name": "c", "resources": resources}], **more},
        "status": {
            "phase": phase,
            "startTime": rfc3339(NOW - started),
            "conditions": [condition],
        },
    }
    return msgspec.convert(body, ScaledPod)


def used(**amounts: int) -> dict[str, Sample]:
    """What pods use, in thousandths."""
    return {name: Sample(amount, NOW, 15.0) for name, amount in amounts.items()}


DELETED = {"deletionTimestamp": rfc3339(NOW)}


@pytest.mark.parametrize(
    ("current", "pods", "samples", "want"),
    [
        pytest.param(
            2,
            [pod("a"), pod("b")],
            used(a=150, b=150),
            Proposal(6, 150, 150),
            id="up in proportion",
        ),
        pytest.param(
            2, [pod("a"), pod("b")], used(a=10, b=20), Proposal(1, 15, 15), id="down in proportion"
        ),
        pytest.param(
            2, [pod("a"), pod("b")], used(a=55, b=55), Proposal(2, 55, 55), id="10% above is fine"
        ),
        pytest.param(
            2, [pod("a"), pod("b")], used(a=45, b=46), Proposal(2, 45, 45), id="10% below is fine"
        ),
        pytest.param(
            3,
            [pod("a"), pod("b"), pod("gone", metadata=DELETED), pod("failed", phase="Failed")],
            used(a=100, b=100, gone=1000, failed=1000),
            Proposal(4, 100, 100),
            id="what is deleted or has failed does not count",
        ),
        pytest.param(
            3,
            [pod("a"), pod("b"), pod("new")],
            used(a=100, b=100),
            Proposal(4, 100, 100),
            id="up: one that is missing counts as idle",
        ),
        pytest.param(
            3,
            [pod("a"), pod("b"), pod("new")],
            used(a=10, b=10),
            Proposal(3, 10, 10),
            id="down: one that is missing counts as busy",
        ),
        pytest.param(
            3,
            [pod("a"), pod("b"), pod("pending", phase="Pending")],
            used(a=100, b=100),
            Proposal(4, 100, 100),
            id="up: one that is pending counts as idle",
        ),
        pytest.param(
            3,
            [pod("a"), pod("b"), pod("pending", phase="Pending")],
            used(a=20, b=20),
            Proposal(1, 20, 20),
            id="down: one that is pending does not count",
        ),
        pytest.param(
            2,
            [pod("a"), pod("young", started=60, since=10)],
            used(a=50, young=900),
            Proposal(2, 50, 50),
            id="young: not measured over a whole window since it is ready",
        ),
        pytest.param(
            2,
            [pod("a"), pod("young", started=60, since=20)],
            used(a=50, young=150),
            Proposal(4, 100, 100),
            id="young: measured over a whole window",
        ),
        pytest.param(
            2,
            [pod("a"), pod("ill", ready=False, since=60)],
            used(a=50, ill=150),
            Proposal(4, 100, 100),
            id="unready now, but it was ready: it counts",
        ),
        pytest.param(
            2,
            [pod("a"), pod("stuck", ready=False, since=LONG_AGO - 5)],
            used(a=50, stuck=900),
            Proposal(2, 50, 50),
            id="never ready: it does not count",
        ),
        pytest.param(
            10,
            [pod("a"), *(pod(f"new{number}") for number in range(9))],
            used(a=60),
            Proposal(10, 60, 60),
            id="assumptions do not turn the direction",
        ),
        pytest.param(
            1,
            [pod("a", request=None, resources={"requests": {"cpu": "200m"}})],
            used(a=200),
            Proposal(2, 200, 100),
            id="the request of the pod as a whole",
        ),
    ],
)
def test_utilization(
    current: int, pods: list[ScaledPod], samples: dict[str, Sample], want: Proposal
) -> None:
    """The target is half of the requests."""
    assert (
        for_utilization(
            current,
            50,
            resource="cpu",
            container="",
            pods=pods,
            samples=samples,
            tolerances=Tolerances(),
            now=NOW,
        )
        == want
    )


@pytest.mark.parametrize(
    ("current", "samples", "want"),
    [
        pytest.param(2, used(a=150, b=50), Proposal(2, 100), id="on target"),
        pytest.param(2, used(a=150, b=151), Proposal(3, 150), id="up"),
        pytest.param(2, used(a=10, b=20), Proposal(1, 15), id="down"),
        pytest.param(2, used(a=300), Proposal(3, 300), id="up: one that is missing is idle"),
        pytest.param(2, used(a=10), Proposal(2, 10), id="down: one that is missing is on target"),
    ],
)
def test_value(current: int, samples: dict[str, Sample], want: Proposal) -> None:
    """The target is an average of 100m."""
    found = for_value(
        current,
        100,
        resource="cpu",
        pods=[pod("a"), pod("b")],
        samples=samples,
        tolerances=Tolerances(),
        now=NOW,
    )
    assert found == want


@pytest.mark.parametrize(
    ("pods", "samples", "message"),
    [
        pytest.param(
            [], used(a=1), "no pods returned by selector while calculating replica count", id="none"
        ),
        pytest.param(
            [pod("a", phase="Pending")],
            used(b=1) | used(a=1),
            "no metrics returned matched known pods",
            id="only of others",
        ),
        pytest.param(
            [pod("a", phase="Pending")],
            used(a=1),
            "did not receive metrics for targeted pods (pods might be unready)",
            id="none that is ready",
        ),
        pytest.param(
            [pod("a", request=None)],
            used(a=1),
            "missing request for cpu in container c of Pod a",
            id="no request",
        ),
    ],
)
def test_no_number_to_go_by(
    pods: list[ScaledPod], samples: dict[str, Sample], message: str
) -> None:
    with pytest.raises(MetricError) as caught:
        for_utilization(
            1,
            50,
            resource="cpu",
            container="",
            pods=pods,
            samples=samples,
            tolerances=Tolerances(),
            now=NOW,
        )
    assert str(caught.value) == message


def test_tolerances_differ_by_direction() -> None:
    tolerances = Tolerances(up=0.0, down=0.5)
    assert [tolerances.covers(each) for each in (0.49, 0.5, 1.0, 1.01)] == [
        False,
        True,
        True,
        False,
    ]


def metrics(name: str, **usage: dict[str, str]) -> PodMetrics:
    """What the containers of a pod use."""
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "timestamp": rfc3339(NOW),
        "window": "15s",
        "containers": [{"name": each, "usage": amounts} for each, amounts in usage.items()],
    }
    return msgspec.convert(body, PodMetrics)


def test_samples_are_of_pods_or_of_one_container() -> None:
    measured = [metrics("a", main={"cpu": "100m"}, side={"cpu": "20m"})]

    assert samples_of(measured, "cpu") == used(a=120)
    assert samples_of(measured, "cpu", "side") == used(a=20)


@pytest.mark.parametrize(
    ("measured", "container", "message"),
    [
        pytest.param([], "", "no metrics returned from resource metrics API", id="nothing"),
        pytest.param(
            [metrics("a", main={"cpu": "1"})],
            "side",
            "container side not present in metrics for pod default/a",
            id="no such container",
        ),
    ],
)
def test_no_samples(measured: list[PodMetrics], container: str, message: str) -> None:
    with pytest.raises(MetricError) as caught:
        samples_of(measured, "cpu", container)
    assert str(caught.value) == message
