"""Which group a pod belongs to, by whichever scheduler's manifest it has."""

import msgspec
import pytest

from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod import Pod, PodSpec, SchedulingGroup
from berth.kube.objects.pod_group import GroupKey, PodGroup, group_of
from berth.scheduler.framework.pod_group_sources import group_reader

COSCHEDULING = {"scheduling.x-k8s.io/pod-group": "train"}
VOLCANO = {"scheduling.k8s.io/group-name": "vtrain"}
ALL = ("CoschedulingPodGroups", "VolcanoPodGroups")


def pod(
    *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, of: str = ""
) -> Pod:
    return Pod(
        ObjectMeta(name="p", namespace="ml", labels=labels or {}, annotations=annotations or {}),
        PodSpec(scheduling_group=SchedulingGroup(of) if of else None),
    )


@pytest.mark.parametrize(
    ("given", "features", "want"),
    [
        pytest.param(pod(labels=COSCHEDULING), ALL, "train", id="the label of coscheduling"),
        pytest.param(pod(annotations=VOLCANO), ALL, "vtrain", id="the annotation of Volcano"),
        pytest.param(
            pod(annotations={"scheduling.volcano.sh/group-name": "v"}), ALL, "v",
            id="the other annotation of Volcano",
        ),
        pytest.param(
            pod(labels=COSCHEDULING, annotations=VOLCANO, of="own"), ALL, "own",
            id="schedulingGroup comes first",
        ),
        pytest.param(
            pod(labels=COSCHEDULING, annotations=VOLCANO), ALL, "train", id="then coscheduling"
        ),
        pytest.param(
            pod(labels=COSCHEDULING), ("VolcanoPodGroups",), None, id="a gate that is off"
        ),
        pytest.param(
            pod(labels={"scheduling.x-k8s.io/pod-group": ""}), ALL, None, id="an empty name is none"
        ),
        pytest.param(
            pod(labels=VOLCANO, annotations=COSCHEDULING), ALL, None,
            id="labels are no annotations",
        ),
        pytest.param(pod(), ALL, None, id="a single pod"),
    ],
)  # fmt: skip
def test_the_group_of_a_pod(given: Pod, features: tuple[str, ...], want: str | None) -> None:
    read = group_reader(features)
    assert read is not None
    assert group_of(read(given)) == (None if want is None else GroupKey("ml", want))


def test_without_gates_nothing_is_read() -> None:
    assert group_reader(("GenericWorkload", "GangScheduling")) is None


def test_single_pods_are_not_copied() -> None:
    read, single = group_reader(ALL), pod()
    assert read is not None
    assert read(single) is single


@pytest.mark.parametrize(
    ("api_version", "spec", "min_count", "is_of_kubernetes"),
    [
        pytest.param(
            "scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"gang": {"minCount": 3}}}, 3, True,
            id="a gang of Kubernetes",
        ),
        pytest.param(
            "scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"basic": {}}}, None, True,
            id="a basic one",
        ),
        pytest.param(
            "scheduling.x-k8s.io/v1alpha1", {"minMember": 4, "scheduleTimeoutSeconds": 10}, 4,
            False, id="coscheduling",
        ),
        pytest.param(
            "scheduling.volcano.sh/v1beta1", {"minMember": 5, "queue": "default"}, 5, False,
            id="Volcano",
        ),
        pytest.param(
            "scheduling.volcano.sh/v1beta1", {"minTaskMember": {"worker": 2}}, None, False,
            id="Volcano without minMember: pod by pod",
        ),
        pytest.param(
            "scheduling.volcano.sh/v1beta1", {"minMember": 0}, None, False, id="none are needed"
        ),
    ],
)  # fmt: skip
def test_groups_of_other_schedulers(
    api_version: str, spec: dict[str, object], min_count: int | None, is_of_kubernetes: bool
) -> None:
    written = {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": spec,
    }
    group = msgspec.json.decode(msgspec.json.encode(written), type=PodGroup)
    assert group.min_count == min_count
    assert group.is_of_kubernetes is is_of_kubernetes
