"""Pods of one template take the same, whatever their kubelets say of them."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import resources
from berth.kube.objects.pod import ContainerStatus, Pod, PodStatus
from berth.kube.objects.quantity import Quantity
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import condition, container, container_status, pod, sidecar

AMOUNTS: st.SearchStrategy[Mapping[str, Quantity]] = st.sampled_from(
    [{}, {"cpu": 1}, {"cpu": "1"}, {"cpu": 2}, {"cpu": 1, "memory": 5}]
)
NAMES = st.sampled_from(["main", "s", "i", "unknown"])
statuses = st.lists(
    st.builds(container_status, NAMES, actuated=st.none() | AMOUNTS, allocated=AMOUNTS), max_size=2
).map(tuple)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    reason = draw(st.sampled_from(["", "Deferred", "Infeasible"]))
    return pod(
        containers=[container("main", requests=draw(AMOUNTS))],
        init_containers=[sidecar("s", requests=draw(AMOUNTS)), container("i", cpu=1)],
        status=PodStatus(
            container_statuses=draw(statuses),
            init_container_statuses=draw(statuses),
            conditions=(condition("PodResizePending", reason=reason),) if reason else (),
        ),
    )


def test_a_template_says_what_each_of_its_pods_says() -> None:
    known = []

    @given(pods())
    def says_the_same(a_pod: Pod) -> None:
        info = PodInfo(a_pod)
        known.append(info)  # templates live as long as their pods
        template = info.template
        assert template.requested == resources.requested(a_pod)
        assert template.non_zero_requested == resources.non_zero_requested(a_pod)
        assert template.incoming_requested == resources.incoming_requested(a_pod)
        assert template.fit_score_requests == resources.fit_score_requests(a_pod)

    says_the_same()


def running(*said: ContainerStatus) -> Pod:
    return pod(cpu=1, status=PodStatus(container_statuses=said))


def test_a_pod_that_runs_as_it_was_asked_for_keeps_its_template() -> None:
    waiting = PodInfo(running())
    for said in (
        container_status(),
        container_status(actuated={"cpu": 1}),
        container_status(actuated={"cpu": 1}, allocated={"cpu": 1}),
    ):
        assert PodInfo(running(said)).template is waiting.template
    assert PodInfo(running(container_status(actuated={"cpu": 2}))).template is not waiting.template
