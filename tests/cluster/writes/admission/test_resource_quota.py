"""ResourceQuota: room that is charged when an object is stored, and refused when there is none."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.kube.objects.quota.evaluators import evaluator_of
from tests.cluster.serving import NOW
from tests.cluster.writes.booted import PODS, Booted

QUOTAS = find("", "v1", "resourcequotas")
SERVICES = find("", "v1", "services")
CLAIMS = find("", "v1", "persistentvolumeclaims")
SECRETS = find("", "v1", "secrets")
RESOURCE_CLAIMS = find("resource.k8s.io", "v1", "resourceclaims")


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def limit(cluster: Booted, hard: Object, *, used: Object | None = None, **spec: Any) -> None:
    """Create a quota that its controller has looked at."""
    metadata = {"name": "quota", "namespace": "default"}
    cluster.create(QUOTAS, {"metadata": metadata, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    cluster.update(
        QUOTAS, "default/quota", lambda obj: {**obj, "status": status}, subresource="status"
    )


def used(cluster: Booted) -> Object:
    found: Object = cluster.get(QUOTAS, "default/quota")["status"]["used"]
    return found


def pod(name: str = "p", resources: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "c", "image": "nginx", "resources": resources or {}}]
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def requests(**amounts: str) -> Object:
    return {"requests": amounts}


def test_what_is_stored_is_charged_at_once(cluster: Booted) -> None:
    limit(cluster, {"pods": "3", "requests.cpu": "1", "memory": "4Gi", "secrets": "5"})
    for name in "ab":
        cluster.create(PODS, pod(name, requests(cpu="400m", memory="1536Mi")))
    assert used(cluster) == {"pods": "2", "requests.cpu": "800m", "memory": "3Gi", "secrets": "0"}

    refused = cluster.refused(PODS, pod("c", requests(cpu="400m", memory="2Gi")))

    assert refused == (
        403,
        'pods "c" is forbidden: exceeded quota: quota, requested: memory=2Gi,requests.cpu=400m, '
        "used: memory=3Gi,requests.cpu=800m, limited: memory=4Gi,requests.cpu=1",
    )
    assert used(cluster)["pods"] == "2"


def test_what_is_not_stored_is_not_charged(cluster: Booted) -> None:
    limit(cluster, {"pods": "3"})
    cluster.create(PODS, pod())
    cluster.create(PODS, pod("dry"), dry_run=True)
    assert cluster.refused(PODS, pod())[0] == 409
    assert cluster.refused(PODS, pod("no-image", initContainers=[{"name": "i"}]))[0] == 422
    assert used(cluster) == {"pods": "1"}


def test_room_is_refused_in_a_dry_run_too(cluster: Booted) -> None:
    limit(cluster, {"count/secrets": "0"})
    secret = {"metadata": {"name": "s", "namespace": "default"}}
    assert cluster.refused(SECRETS, secret, dry_run=True) == (
        403,
        'secrets "s" is forbidden: exceeded quota: quota, requested: count/secrets=1, '
        "used: count/secrets=0, limited: count/secrets=0",
    )


def test_a_generated_name_is_told(cluster: Booted) -> None:
    limit(cluster, {"pods": "0"})
    obj = pod()
    obj["metadata"] = {"generateName": "web-", "namespace": "default"}
    _, message = cluster.refused(PODS, obj)
    name = message.split('"')[1]
    assert (name[:4], len(name)) == ("web-", 9)


@pytest.mark.parametrize(
    ("hard", "resources", "why"),
    [
        pytest.param(
            {"cpu": "1", "limits.memory": "1Gi"},
            {},
            "must specify cpu for: c; limits.memory for: c",
            id="a container that says nothing",
        ),
        pytest.param(
            {"requests.cpu": "1", "requests.memory": "1Gi"},
            requests(cpu="1"),
            "must specify requests.memory for: c",
            id="a container that says half of it",
        ),
    ],
)
def test_who_is_limited_must_say_how_much(
    cluster: Booted, hard: Object, resources: Object, why: str
) -> None:
    limit(cluster, hard)
    assert cluster.refused(PODS, pod("p", resources)) == (
        403,
        f'pods "p" is forbidden: failed quota: quota: {why}',
    )


def test_a_quota_that_nobody_has_counted_yet_refuses(cluster: Booted) -> None:
    limit(cluster, {"pods": "5"}, used={})
    assert cluster.refused(PODS, pod()) == (
        403,
        'pods "p" is forbidden: status unknown for quota: quota, resources: pods',
    )


IN_FRONT = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In",
                                  "values": ["system-node-critical"]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        pytest.param(
            {"scopes": ["BestEffort"]}, pod("in"), pod("out", requests(cpu="1")), id="BestEffort"
        ),
        pytest.param(
            {"scopes": ["NotBestEffort"]}, pod("in", requests(cpu="1")), pod("out"),
            id="NotBestEffort",
        ),
        pytest.param(
            {"scopes": ["Terminating"]}, pod("in", activeDeadlineSeconds=5), pod("out"),
            id="Terminating",
        ),
        pytest.param(
            {"scopes": ["NotTerminating"]}, pod("in"), pod("out", activeDeadlineSeconds=5),
            id="NotTerminating",
        ),
        pytest.param(
            {"scopeSelector": IN_FRONT}, pod("in", priorityClassName="system-node-critical"),
            pod("out"), id="PriorityClass",
        ),
    ],
)  # fmt: skip
def test_a_quota_is_about_the_pods_in_its_scopes(
    cluster: Booted, spec: Object, inside: Object, outside: Object
) -> None:
    limit(cluster, {"pods": "2"}, **spec)
    for each in (inside, outside):
        cluster.create(PODS, each)
    assert used(cluster) == {"pods": "1"}


@pytest.mark.parametrize(
    ("scope", "hard", "message"),
    [
        pytest.param("Terminating", "1", "", id="into a scope with room"),
        pytest.param(
            "Terminating",
            "0",
            'pods "p" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=0, '
            "limited: pods=0",
            id="into a scope without",
        ),
        pytest.param("NotTerminating", "1", "", id="out of a scope, which is counted later"),
    ],
)
def test_a_pod_that_gets_a_deadline_is_charged_where_it_comes_to(
    cluster: Booted, scope: str, hard: str, message: str
) -> None:
    cluster.create(PODS, pod())
    limit(cluster, {"pods": hard}, scopes=[scope])

    def change(obj: Object) -> Object:
        return {**obj, "spec": {**obj["spec"], "activeDeadlineSeconds": 5}}

    if message:
        with pytest.raises(StatusError) as error:
            cluster.update(PODS, "default/p", change)
        assert error.value.message == message
    else:
        cluster.update(PODS, "default/p", change)
    assert used(cluster) == {"pods": "1" if scope == "Terminating" and not message else "0"}


def volume_claim(name: str, attributes: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeAttributesClassName": attributes} if attributes else {}),
        },
    }


@pytest.mark.parametrize(
    ("operator", "values", "want"),
    [
        ("Exists", [], "2"),
        ("DoesNotExist", [], "1"),
        ("In", ["gold"], "1"),
        ("NotIn", ["gold"], "2"),
    ],
)
def test_a_quota_is_about_the_claims_of_its_classes(
    cluster: Booted, operator: str, values: list[str], want: str
) -> None:
    requirement = {"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}
    limit(
        cluster,
        {"persistentvolumeclaims": "2", "requests.storage": "4Gi"},
        scopeSelector={"matchExpressions": [requirement]},
    )
    for attributes in ("gold", "silver", ""):
        cluster.create(CLAIMS, volume_claim(f"c{attributes}", attributes))
    assert used(cluster) == {"persistentvolumeclaims": want, "requests.storage": f"{want}Gi"}


def test_a_claim_is_charged_for_the_class_that_its_status_says(cluster: Booted) -> None:
    limit(cluster, {"persistentvolumeclaims": "0"}, scopes=["VolumeAttributesClass"])
    cluster.create(CLAIMS, volume_claim("c", ""))
    status = {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "g", "status": "Pending"}}
    for _ in range(2):
        cluster.update(
            CLAIMS, "default/c", lambda obj: {**obj, "status": status}, subresource="status"
        )
    assert used(cluster) == {"persistentvolumeclaims": "1"}


def test_a_service_is_charged_for_what_it_becomes(cluster: Booted) -> None:
    limit(cluster, {"services": "1", "services.nodeports": "1", "services.loadbalancers": "0"})
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    service = {
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": ports[:1], "selector": {"a": "b"}},
    }
    cluster.create(SERVICES, service)

    def become(kind: str, ports: list[Object]) -> Object:
        def change(obj: Object) -> Object:
            return {**obj, "spec": {**obj["spec"], "type": kind, "ports": ports}}

        return cluster.update(SERVICES, "default/s", change)

    become("NodePort", ports[:1])
    assert used(cluster) == {
        "services": "1", "services.nodeports": "1", "services.loadbalancers": "0"
    }  # fmt: skip
    with pytest.raises(StatusError) as error:
        become("LoadBalancer", ports)
    assert error.value.message == (
        'services "s" is forbidden: exceeded quota: quota, requested: '
        "services.loadbalancers=1,services.nodeports=1, used: "
        "services.loadbalancers=0,services.nodeports=1, limited: "
        "services.loadbalancers=0,services.nodeports=1"
    )


@pytest.mark.parametrize(
    ("resource", "obj", "want"),
    [
        pytest.param(
            CLAIMS,
            {
                "metadata": {},
                "spec": {
                    "storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}},
                },
            },
            {
                "count/persistentvolumeclaims": "1",
                "persistentvolumeclaims": "1",
                "requests.storage": "2Gi",
                "fast.storageclass.storage.k8s.io/requests.storage": "2Gi",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            },
            id="a claim of a class",
        ),
        pytest.param(
            PODS,
            {"metadata": {}, "spec": {}, "status": {"phase": "Succeeded"}},
            {"count/pods": "1"},
            id="a finished pod takes no room but exists",
        ),
        pytest.param(
            PODS,
            {
                "metadata": {},
                "spec": {
                    "containers": [
                        {"resources": {"requests": {"cpu": "1"}, "limits": {"example.com/gpu": 2}}},
                        {"resources": {"requests": {"cpu": "500m", "example.com/gpu": 2}}},
                    ],
                    "initContainers": [{"resources": {"requests": {"cpu": "2"}}}],
                    "overhead": {"cpu": "250m"},
                },
            },
            {
                "count/pods": "1",
                "pods": "1",
                "cpu": "2250m",
                "requests.cpu": "2250m",
                "requests.example.com/gpu": "2",
            },
            id="a pod at its largest",
        ),
        pytest.param(
            RESOURCE_CLAIMS,
            {
                "metadata": {},
                "spec": {
                    "devices": {
                        "requests": [
                            {"exactly": {"deviceClassName": "gpu", "count": 2}},
                            {
                                "firstAvailable": [
                                    {"deviceClassName": "gpu", "count": 4},
                                    {"deviceClassName": "tpu", "allocationMode": "All"},
                                ]
                            },
                        ]
                    }
                },
            },
            {
                "count/resourceclaims.resource.k8s.io": "1",
                "gpu.deviceclass.resource.k8s.io/devices": "6",
                "tpu.deviceclass.resource.k8s.io/devices": "32",
            },
            id="devices",
        ),
    ],
)  # fmt: skip
def test_what_an_object_counts_for(resource: Any, obj: Object, want: Object) -> None:
    evaluator = evaluator_of(resource.qualified_plural)
    got = {name: str(each) for name, each in evaluator.usage(obj, NOW).items()}
    assert got == want
    assert all(evaluator.counts(name) for name in want)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"hard": {"bananas": "1"}},
            '[spec.hard[bananas]: Invalid value: "bananas": must be a standard resource type or '
            'fully qualified, spec.hard[bananas]: Invalid value: "bananas": must be a standard '
            "resource for quota]",
            id="an unknown resource",
        ),
        pytest.param(
            {"hard": {"pods": "500m"}},
            'spec.hard[pods]: Invalid value: "500m": must be an integer',
            id="half a pod",
        ),
        pytest.param(
            {"scopes": ["BestEffort", "NotBestEffort"]},
            'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
            id="scopes that exclude each other",
        ),
        pytest.param(
            {"hard": {"pods": "1", "cpu": "1"}, "scopes": ["BestEffort"]},
            'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
            id="cpu of pods that ask for none",
        ),
        pytest.param(
            {
                "hard": {"requests.cpu": "1", "count/jobs.batch": "1", "configmaps": "1"},
                "scopes": ["Terminating"],
            },
            'spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource',
            id="what are no pods, in a scope of pods",
        ),
        pytest.param(
            {
                "hard": {"requests.storage": "1Gi"},
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]
                },
            },
            'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "PriorityClass": '
            "unsupported scope applied to resource",
            id="or in a selector of scopes",
        ),
        pytest.param(
            {"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]},
            'spec.scopes: Invalid value: ["VolumeAttributesClass"]: unsupported scope applied to '
            "resource",
            id="pods, in a scope of claims",
        ),
    ],
)
def test_a_quota_that_makes_no_sense(cluster: Booted, spec: Object, why: str) -> None:
    code, message = cluster.refused(
        QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": spec}
    )
    assert (code, message) == (422, f'ResourceQuota "q" is invalid: {why}')


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"status": {"hard": {"pods": "many"}}}, "'many'"),
        ({"status": {"hard": {"pods": "3"}, "used": {"pods": ["1"]}}}, "list"),
        ({"status": "none"}, "str"),
        ({"spec": {"scopes": 3}, "status": {"hard": {"pods": "3"}}}, "int"),
    ],
)
def test_a_quota_that_cannot_be_read_refuses(cluster: Booted, part: Object, why: str) -> None:
    """An earlier version stored it; it may not open the namespace, and not end in a 500."""
    metadata = {"name": "quota", "namespace": "default"}
    cluster.store.create(QUOTAS.storage_key, {"metadata": metadata, **part})
    code, message = cluster.refused(PODS, pod())
    assert code == 403
    assert "quota quota cannot be read" in message
    assert why in message
    assert cluster.create(PODS, {**pod(), "metadata": {"name": "p", "namespace": "kube-system"}})
