"""What pods request, caller by caller (spec §4.4), and what nodes give (spec §4.3)."""

from collections.abc import Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import Container, Pod, PodStatus, ResourceRequirements
from berth.kube.objects.quantity import NANO, Quantities, Quantity, parse
from berth.kube.objects.resources import (
    Resources,
    fit_score_requests,
    incoming_requested,
    node_allocatable,
    non_zero_requested,
    pod_requests,
    requested,
    to_resources,
)
from berth.runtime.release import EffectiveVersion
from berth.scheduler.config.feature_gates import enabled_features
from berth.scheduler.framework.pod_reader import pod_reader
from tests.builders import condition, container, container_status, node, pod, sidecar

MIB = 1024**2
DEFAULT_MEMORY = 200 * MIB
INFEASIBLE = condition("PodResizePending", reason="Infeasible")
DEFERRED = condition("PodResizePending", reason="Deferred")


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(containers=[]), {}, id="no containers"),
        pytest.param(pod(), {}, id="nothing requested"),
        pytest.param(
            pod(containers=[container("a", cpu="100m"), container("b", cpu="0.2", memory=5)]),
            {"cpu": "300m", "memory": 5},
            id="containers add up",
        ),
        pytest.param(
            pod(cpu=1, init_containers=[container("i", cpu=3), container("j", cpu=2, memory=7)]),
            {"cpu": 3, "memory": 7},
            id="init containers run one by one",
        ),
        pytest.param(
            pod(cpu=1, init_containers=[container("i", cpu="500m")]),
            {"cpu": 1},
            id="a small init container costs nothing",
        ),
        pytest.param(
            pod(cpu=1, init_containers=[sidecar("s", cpu=2)]), {"cpu": 3}, id="sidecars stay"
        ),
        pytest.param(
            pod(cpu=1, init_containers=[sidecar("s", cpu=2), container("i", cpu=4)]),
            {"cpu": 6},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod(cpu=1, init_containers=[container("i", cpu=4), sidecar("s", cpu=2)]),
            {"cpu": 4},
            id="but not beside those after it",
        ),
        pytest.param(
            pod(cpu=1, overhead={"cpu": "250m", "memory": 9}),
            {"cpu": "1250m", "memory": 9},
            id="overhead comes on top",
        ),
        pytest.param(
            pod(cpu=1, memory=5, pod_level={"cpu": 3}, overhead={"cpu": 1}),
            {"cpu": 4, "memory": 5},
            id="pod-level requests replace the sum, not the overhead",
        ),
        pytest.param(
            pod(cpu=2, pod_level={"cpu": 1, "hugepages-2Mi": 4, "example.com/gpu": 1}),
            {"cpu": 1, "hugepages-2Mi": 4},
            id="only cpu, memory and hugepages have a pod level",
        ),
    ],
)
def test_requests_of_the_spec(a_pod: Pod, want: Mapping[str, Quantity]) -> None:
    nanos = {name: parse(quantity) for name, quantity in want.items()}
    assert pod_requests(a_pod, use_status=False, pod_level=True) == nanos
    assert pod_requests(a_pod, use_status=True, pod_level=True) == nanos


def resizing(
    *,
    cpu: Quantity = "1",
    actuated: Mapping[str, Quantity] | None = None,
    allocated: Mapping[str, Quantity] = {},
    reason: str = "",
) -> Pod:
    status = PodStatus(
        container_statuses=(container_status(actuated=actuated, allocated=allocated),),
        conditions=(condition("Ready"), condition("PodResizePending", reason=reason)),
    )
    return pod(cpu=cpu, status=status)


LIKE_1_36: Final = pod_reader(enabled_features({}, EffectiveVersion.of("1.36")))


def requested_in_1_36(a_pod: Pod) -> Resources:
    assert LIKE_1_36 is not None
    return requested(LIKE_1_36(a_pod))


TWO: Final = pod(
    containers=[container("a", cpu=2), container("b", cpu=1)],
    status=PodStatus(
        container_statuses=(
            container_status("a", actuated={"cpu": 1}, allocated={"cpu": 1}),
            container_status("b", actuated={"cpu": 2}, allocated={"cpu": 2}),
        )
    ),
)
"""One container grows from 1 to 2, the other shrinks from 2 to 1."""


@pytest.mark.parametrize(
    ("a_pod", "before", "now"),
    [
        pytest.param(resizing(actuated={"cpu": 2}), 2000, 2000, id="still has more"),
        pytest.param(
            resizing(actuated={"cpu": "500m"}), 1000, 1000, id="has less and will get more"
        ),
        pytest.param(
            resizing(actuated={"cpu": "500m"}, allocated={"cpu": 3}), 3000, 3000,
            id="allocated more",
        ),
        pytest.param(
            resizing(allocated={"cpu": 3}), 1000, 3000, id="allocated, but not actuated"
        ),
        pytest.param(
            resizing(cpu=8, actuated={"cpu": 1}, allocated={"cpu": 2}, reason="Infeasible"),
            2000, 2000,
            id="an infeasible wish does not count",
        ),
        pytest.param(
            resizing(cpu=8, actuated={"cpu": 1}, allocated={"cpu": 2}, reason="Deferred"),
            8000, 8000,
            id="a deferred wish does",
        ),
        pytest.param(
            resizing(cpu=8, actuated={}, reason="Infeasible"), 0, 0,
            id="infeasible, and has nothing",
        ),
        pytest.param(
            pod(cpu=8, status=PodStatus(conditions=(INFEASIBLE,))), 8000, 0,
            id="infeasible, and the status says nothing of the container",
        ),
        pytest.param(TWO, 4000, 3000, id="one container grows as the other shrinks"),
        pytest.param(
            pod(
                cpu=1,
                init_containers=[sidecar("s", cpu=1), container("i", cpu=1)],
                status=PodStatus(
                    init_container_statuses=(
                        container_status("s", actuated={"cpu": 3}),
                        container_status("i", actuated={"cpu": 50}),
                    )
                ),
            ),
            4000, 53000,
            id="of init containers, only sidecars were resized before",
        ),
    ],
)  # fmt: skip
def test_a_resize_in_place(a_pod: Pod, before: int, now: int) -> None:
    assert requested_in_1_36(a_pod) == Resources(milli_cpu=before)
    assert requested(a_pod) == Resources(milli_cpu=now)
    no_status = msgspec.structs.replace(a_pod, status=PodStatus())
    assert incoming_requested(a_pod) == incoming_requested(no_status)


@pytest.mark.parametrize(
    ("status", "before", "now"),
    [
        pytest.param(PodStatus(), Resources(2000), Resources(2000), id="none"),
        pytest.param(
            PodStatus(allocated_resources={"cpu": 5}), Resources(2000), Resources(2000),
            id="allocated, but not actuated",
        ),
        pytest.param(
            PodStatus(
                resources=ResourceRequirements(requests={"cpu": 3, "memory": 7}),
                allocated_resources={"cpu": 5},
            ),
            Resources(5000), Resources(5000, 7),
            id="allocated more, and memory that is not requested",
        ),
        pytest.param(
            PodStatus(
                resources=ResourceRequirements(requests={"cpu": "500m"}), conditions=(INFEASIBLE,)
            ),
            Resources(500), Resources(500),
            id="an infeasible wish does not count",
        ),
        pytest.param(
            PodStatus(
                resources=ResourceRequirements(requests={"cpu": "500m"}),
                conditions=(DEFERRED, INFEASIBLE),
            ),
            Resources(2000), Resources(2000),
            id="the first condition counts",
        ),
        pytest.param(
            PodStatus(resources=ResourceRequirements(), conditions=(INFEASIBLE,)),
            Resources(1000), Resources(),
            id="infeasible, and has nothing: the sum stood",
        ),
    ],
)  # fmt: skip
def test_a_resize_of_the_whole_pod(status: PodStatus, before: Resources, now: Resources) -> None:
    a_pod = pod(cpu=1, pod_level={"cpu": 2}, status=status)
    assert requested_in_1_36(a_pod) == before
    assert requested(a_pod) == now
    assert incoming_requested(a_pod) == Resources(milli_cpu=2000)


def test_a_resize_of_a_pod_without_requests_of_its_own() -> None:
    status = PodStatus(
        resources=ResourceRequirements(requests={"cpu": 3}), allocated_resources={"cpu": 4}
    )
    a_pod = pod(cpu=1, status=status)
    assert requested_in_1_36(a_pod) == Resources(1000)
    assert requested(a_pod) == Resources(4000)


@pytest.mark.parametrize(
    ("a_pod", "non_zero", "fit_score"),
    [
        pytest.param(pod(), (100, DEFAULT_MEMORY), (100, DEFAULT_MEMORY), id="nothing requested"),
        pytest.param(pod(cpu=0, memory="0"), (0, 0), (0, 0), id="an explicit 0 is kept"),
        pytest.param(
            pod(containers=[container("a", cpu=1), container("b", memory=MIB), container("c")]),
            (1200, 2 * DEFAULT_MEMORY + MIB),
            (1200, 2 * DEFAULT_MEMORY + MIB),
            id="per container and resource",
        ),
        pytest.param(
            pod(cpu="50m", memory=MIB, init_containers=[container("i"), sidecar("s", cpu="10m")]),
            (100, MIB + DEFAULT_MEMORY),
            (100, MIB + DEFAULT_MEMORY),
            id="init containers too",
        ),
        pytest.param(
            pod(containers=[container("a"), container("b")], pod_level={"cpu": 2}),
            (2000, 2 * DEFAULT_MEMORY),
            (200, 2 * DEFAULT_MEMORY),
            id="pod level: defaults for what the whole pod lacks",
        ),
        pytest.param(
            pod(
                containers=[container("a", memory=MIB), container("b")],
                pod_level={"hugepages-2Mi": 2},
            ),
            (200, MIB),
            (200, MIB + DEFAULT_MEMORY),
            id="pod level: what one container has, the pod does not lack",
        ),
        pytest.param(
            pod(pod_level={"cpu": 1}, overhead={"memory": 5}),
            (1000, 5),
            (100, DEFAULT_MEMORY + 5),
            id="pod level: overhead counts as had",
        ),
        pytest.param(
            pod(pod_level={"example.com/gpu": 1}),
            (100, DEFAULT_MEMORY),
            (100, DEFAULT_MEMORY),
            id="pod level: of nothing that has one",
        ),
    ],
)
def test_defaults(a_pod: Pod, non_zero: tuple[int, int], fit_score: tuple[int, int]) -> None:
    scored = fit_score_requests(a_pod)
    assert (non_zero_requested(a_pod), (scored.milli_cpu, scored.memory)) == (non_zero, fit_score)


def test_fit_score_leaves_out_the_status() -> None:
    a_pod = resizing(actuated={"cpu": 7, "memory": 9})
    assert fit_score_requests(a_pod) == Resources(milli_cpu=1000, memory=DEFAULT_MEMORY)
    assert LIKE_1_36 is not None
    assert non_zero_requested(LIKE_1_36(a_pod)) == (7000, 9)
    assert non_zero_requested(a_pod) == (7000, DEFAULT_MEMORY), "defaults are in each sum"


def test_sums_are_rounded_once() -> None:
    thirds = [container(name, cpu="0.1m", memory="0.4") for name in "abc"]
    assert incoming_requested(pod(containers=thirds)) == Resources(milli_cpu=1, memory=2)


def test_names_that_mean_nothing_are_dropped() -> None:
    amounts = {"cpu": NANO, "pods": NANO, "gpu": NANO, "x.io/gpu": 0, "hugepages-2Mi": 2 * NANO}
    assert to_resources(amounts) == Resources(
        milli_cpu=1000, scalars={"x.io/gpu": 0, "hugepages-2Mi": 2}
    )


def test_node_allocatable() -> None:
    more: Quantities = {"ephemeral-storage": "1Gi", "x.io/gpu": "2", "what": 5}
    allocatable = node_allocatable(node(cpu="3920m", memory="100.5", pods="110", allocatable=more))
    assert allocatable == Resources(
        milli_cpu=3920,
        memory=101,
        ephemeral_storage=1024 * MIB,
        scalars={"x.io/gpu": 2},
        allowed_pods=110,
    )
    named = ("cpu", "memory", "ephemeral-storage", "x.io/gpu", "x.io/none")
    assert [allocatable.amount(name) for name in named] == [3920, 101, 1024 * MIB, 2, 0]


cpus = st.integers(0, 5)
containers = st.lists(st.builds(lambda cpu: container("c", cpu=cpu), cpus), max_size=3)
init_containers = st.lists(
    st.builds(
        lambda cpu, stays: container(cpu=cpu, restart_policy="Always" if stays else ""),
        cpus,
        st.booleans(),
    ),
    max_size=4,
)


@given(containers=containers, init_containers=init_containers, overhead=cpus)
def test_requests_are_the_peak_over_the_life_of_the_pod(
    containers: list[Container], init_containers: list[Container], overhead: int
) -> None:
    """Play the pod through: start init containers in order, then everything that stays."""
    peak = staying = 0
    for one in init_containers:
        cpu = int(one.resources.requests["cpu"])
        peak = max(peak, staying + cpu)
        staying += cpu if one.restart_policy else 0
    peak = max(peak, staying + sum(int(one.resources.requests["cpu"]) for one in containers))
    a_pod = pod(containers=containers, init_containers=init_containers, overhead={"cpu": overhead})
    assert incoming_requested(a_pod) == Resources(milli_cpu=1000 * (peak + overhead))
