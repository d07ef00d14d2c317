"""PodSecurity: what is refused, what is warned of, and who asks."""

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import pod, workload
from tests.cluster.writes.booted import PODS, Booted

NAMESPACES = find("", "v1", "namespaces")
DEPLOYMENTS = find("apps", "v1", "deployments")
CRON_JOBS = find("batch", "v1", "cronjobs")
P = "pod-security.kubernetes.io/"
WHY = 'privileged (container "c" must not set securityContext.privileged=true)'


def privileged() -> list[Object]:
    return [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def label(cluster: Booted, **labels: str) -> None:
    said = {P + mode.replace("_", "-"): level for mode, level in labels.items()}

    def change(obj: Object) -> Object:
        before = obj["metadata"]["labels"]
        return {**obj, "metadata": {**obj["metadata"], "labels": {**before, **said}}}

    cluster.update(NAMESPACES, "default", change)


def test_a_pod_that_violates_what_is_enforced(cluster: Booted) -> None:
    label(cluster, enforce="baseline", enforce_version="v1.30")
    cluster.create(PODS, pod("plain"))
    assert cluster.refused(PODS, pod(containers=privileged())) == (
        403,
        f'pods "p" is forbidden: violates PodSecurity "baseline:v1.30": {WHY}',
    )
    assert cluster.warnings == []


def test_a_pod_that_violates_what_is_warned_of(cluster: Booted) -> None:
    label(cluster, warn="baseline")
    cluster.create(PODS, pod(containers=privileged()))
    assert cluster.warnings == [f'would violate PodSecurity "baseline:latest": {WHY}']


@pytest.mark.parametrize("is_cron", [False, True])
def test_of_workloads_there_are_warnings(cluster: Booted, is_cron: bool) -> None:
    label(cluster, enforce="baseline")
    of_pods: Object = {"containers": privileged()}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": of_pods}
    if is_cron:
        of_pods["restartPolicy"] = "Never"
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
        metadata = {"name": "cron", "namespace": "default"}
        cluster.create(CRON_JOBS, {"metadata": metadata, "spec": spec})
    else:
        cluster.create(DEPLOYMENTS, workload(template=template))
    assert cluster.warnings == [f'would violate PodSecurity "baseline:latest": {WHY}']


def test_an_update_counts_if_it_changes_a_container(cluster: Booted) -> None:
    cluster.create(PODS, pod(containers=privileged()))
    label(cluster, enforce="baseline")

    def change(obj: Object) -> Object:
        return {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}

    cluster.update(PODS, "default/p", change)
    with pytest.raises(StatusError) as error:
        cluster.update(
            PODS,
            "default/p",
            lambda obj: {
                **obj,
                "spec": {
                    **obj["spec"],
                    "containers": [
                        {**container, "image": "j"} for container in obj["spec"]["containers"]
                    ],
                },
            },
        )
    assert error.value.message.startswith('pods "p" is forbidden: violates PodSecurity')


def test_a_level_that_rises_tells_who_would_not_get_in(cluster: Booted) -> None:
    for name in ("c", "a", "b"):
        cluster.create(PODS, pod(name, containers=privileged()))
    cluster.create(PODS, pod("net", hostNetwork=True))
    label(cluster, enforce="baseline")
    assert cluster.warnings == [
        'existing pods in namespace "default" violate the new PodSecurity enforce level '
        '"baseline:latest"',
        "a (and 2 other pods): privileged",
        "net: host namespaces",
    ]
    cluster.warnings.clear()
    label(cluster, enforce="privileged")
    assert cluster.warnings == []


def test_labels_that_mean_nothing_are_refused(cluster: Booted) -> None:
    metadata = {"name": "new", "labels": {f"{P}enforce": "secure"}}
    assert cluster.refused(NAMESPACES, {"metadata": metadata}) == (
        422,
        f'Namespace "new" is invalid: metadata.labels[{P}enforce]: Invalid value: "secure": '
        "must be one of privileged, baseline, restricted",
    )
