"""Pods of one template take the same, whatever their kubelets say of them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import resources
from berth.kube.objects.pod import ContainerStatus, Pod, PodStatus
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.shared_parts import PodDecoder
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


DIFFERENCES: Final[Mapping[str, Any]] = {
    "metadata.namespace": "other",
    "metadata.labels": {"app": "other"},
    "spec.containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    "spec.initContainers": [{"name": "i"}],
    "spec.ephemeralContainers": [{"name": "e"}],
    "spec.overhead": {"cpu": "1"},
    "spec.resources": {"requests": {"cpu": "3"}},
    "spec.nodeSelector": {"disk": "ssd"},
    "spec.affinity": {"podAntiAffinity": {}},
    "spec.tolerations": [{"key": "k"}],
    "spec.topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
    "spec.volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    "spec.resourceClaims": [{"name": "gpu"}],
    "spec.hostNetwork": True,
    "spec.hostUsers": False,
    "status.resources": {"requests": {"cpu": "1"}},
    "status.allocatedResources": {"cpu": "1"},
    "status.containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "5"}}],
    "status.conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
}
"""Each makes another template of a pod."""


def decoded(decode: Any, differences: frozenset[str], uid: int, *, is_bound: bool) -> PodInfo:
    manifest: dict[str, Any] = {
        "metadata": {"name": f"p-{uid}", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"conditions": [{"type": "PodScheduled", "status": str(is_bound)}]},
    }
    for field in differences:
        part, _, name = field.partition(".")
        manifest[part][name] = deepcopy(DIFFERENCES[field])
    manifest["metadata"]["uid"] = f"u-{uid}"
    if is_bound:
        manifest["spec"]["nodeName"] = "node"
    return PodInfo(decode(msgspec.json.encode(manifest)))


some_differences = st.frozensets(st.sampled_from([*DIFFERENCES]), max_size=2)


@given(st.lists(st.tuples(some_differences, st.booleans()), min_size=2, max_size=12))
def test_pods_share_a_template_if_nothing_in_them_differs_that_makes_one(
    drawn: list[tuple[frozenset[str], bool]],
) -> None:
    decode = PodDecoder()
    made = [
        (differences, decoded(decode, differences, uid, is_bound=is_bound))
        for uid, (differences, is_bound) in enumerate(drawn)
    ]
    for differences, info in made:
        for others, other in made:
            assert (info.template is other.template) == (differences == others)
