"""LimitRanger: defaults of containers, and what nobody may ask for."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.kube.objects.limit_ranges import ANNOTATION
from tests.cluster.writes.booted import PODS, Booted

LIMIT_RANGES = find("", "v1", "limitranges")
CLAIMS = find("", "v1", "persistentvolumeclaims")


def limit_range(**item: object) -> Object:
    metadata = {"name": "limits", "namespace": "default"}
    return {"metadata": metadata, "spec": {"limits": [{"type": "Container", **item}]}}


def pod(*containers: Object, **spec: object) -> Object:
    of_pod = [
        {"name": f"c{number}", "image": "nginx", "resources": each}
        for number, each in enumerate(containers)
    ]
    metadata = {"name": "p", "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": of_pod, **spec}}


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def test_containers_that_say_nothing_get_the_defaults(cluster: Booted) -> None:
    defaults = {"default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m", "memory": "1Gi"}}
    cluster.create(LIMIT_RANGES, limit_range(**defaults))
    init = [{"name": "i", "image": "nginx", "resources": {"limits": {"cpu": "2"}}}]

    got = cluster.create(PODS, pod({}, {"requests": {"cpu": "200m"}}, initContainers=init))

    assert [container["resources"] for container in got["spec"]["containers"]] == [
        {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
        {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
    ]
    assert got["spec"]["initContainers"][0]["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"cpu": "2"},
    }
    assert got["metadata"]["annotations"] == {
        ANNOTATION: (
            "LimitRanger plugin set: cpu, memory request for container c0; cpu limit for "
            "container c0; memory request for container c1; cpu limit for container c1; "
            "memory request for init container i"
        )
    }
    assert got["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        pytest.param(
            {"min": {"cpu": "100m"}},
            {"requests": {"cpu": "50m"}},
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="a request below the least",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "1"}},
            {},
            "minimum cpu usage per Pod is 1.  No request is specified",
            id="no request where there is a least",
        ),
        pytest.param(
            {"max": {"memory": "1Gi"}},
            {"limits": {"memory": "2048Mi"}},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            id="a limit above the most",
        ),
        pytest.param(
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {"requests": {"memory": "2Gi"}},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
            id="no limit where there is a most",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2500m"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
            id="a limit far above the request",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or "
            "request is 0",
            id="no ratio",
        ),
        pytest.param(
            {"max": {"cpu": "1"}, "min": {"memory": "1Gi"}},
            {"limits": {"cpu": "2"}, "requests": {"memory": "1Mi"}},
            "[minimum memory usage per Container is 1Gi, but request is 1Mi, "
            "maximum cpu usage per Container is 1, but limit is 2]",
            id="several things at once",
        ),
    ],
)
def test_what_nobody_may_ask_for(
    cluster: Booted, item: Object, resources: Object, why: str
) -> None:
    cluster.create(LIMIT_RANGES, limit_range(**item))
    assert cluster.refused(PODS, pod(resources)) == (403, f'pods "p" is forbidden: {why}')


def test_a_pod_counts_as_a_whole(cluster: Booted) -> None:
    cluster.create(LIMIT_RANGES, limit_range(type="Pod", max={"cpu": "3"}))
    half = {"limits": {"cpu": "1500m"}}
    cluster.create(PODS, pod(half, half))
    assert cluster.refused(PODS, pod(half, half, half)) == (
        403,
        'pods "p" is forbidden: maximum cpu usage per Pod is 3, but limit is 4500m',
    )


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        pytest.param(
            "1Gi",
            "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi",
            id="too small",
        ),
        pytest.param(
            "9Gi",
            "maximum storage usage per PersistentVolumeClaim is 8Gi, but request is 9Gi",
            id="too large",
        ),
    ],
)
def test_claims_have_a_size(cluster: Booted, storage: str, why: str) -> None:
    bounds = {"min": {"storage": "2Gi"}, "max": {"storage": "8Gi"}}
    cluster.create(LIMIT_RANGES, limit_range(type="PersistentVolumeClaim", **bounds))
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}
    assert cluster.refused(CLAIMS, claim) == (
        403,
        f'persistentvolumeclaims "data" is forbidden: {why}',
    )


def test_another_namespace_has_its_own_limits(cluster: Booted) -> None:
    other = {**limit_range(max={"cpu": "1"}), "metadata": {"name": "l", "namespace": "kube-system"}}
    cluster.create(LIMIT_RANGES, other)
    got = cluster.create(PODS, pod({"limits": {"cpu": "2"}}))
    assert "annotations" not in got["metadata"]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        pytest.param(
            {"min": {"cpu": "2"}, "max": {"cpu": "1"}},
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
            id="a least above the most",
        ),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "2"}},
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
            id="defaults of a pod",
        ),
        pytest.param(
            {"max": {"cpu": "much"}, "default": {"cpu": "1"}},
            'spec.limits[0].max[cpu]: Invalid value: "much": quantities must match the regular '
            "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="no quantity",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "500m"}},
            'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": '
            "ratio 500m is less than 1",
            id="a limit below the request",
        ),
    ],
)
def test_limits_that_contradict_themselves(cluster: Booted, item: Object, why: str) -> None:
    code, message = cluster.refused(LIMIT_RANGES, limit_range(**item))
    assert code == 422
    assert why in message


@pytest.mark.parametrize(
    "limits", [3, [{"type": "Container", "default": 3}], [{"type": "Container", "max": "all"}]]
)
def test_limits_that_cannot_be_read_refuse(limits: Any) -> None:
    cluster = Booted()
    metadata = {"name": "bad", "namespace": "default"}
    cluster.store.create("limitranges", {"metadata": metadata, "spec": {"limits": limits}})
    body = {"metadata": {"name": "p", "namespace": "default"}}
    code, message = cluster.refused(
        PODS, {**body, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    assert (code, "limit range bad cannot be read" in message) == (403, True)
