"""StorageObjectInUseProtection and PersistentVolumeClaimResize."""

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.writes.booted import Booted

CLAIMS = find("", "v1", "persistentvolumeclaims")
VOLUMES = find("", "v1", "persistentvolumes")
STORAGE_CLASSES = find("storage.k8s.io", "v1", "storageclasses")


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def claim(**spec: object) -> Object:
    requests = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests, **spec},
    }


def sized(storage: str) -> Object:
    return {"resources": {"requests": {"storage": storage}}}


def test_claims_and_volumes_are_held(cluster: Booted) -> None:
    volume = {
        "metadata": {"name": "v", "finalizers": ["example.com/mine"]},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},
        },
    }
    assert cluster.create(CLAIMS, claim())["metadata"]["finalizers"] == [
        "kubernetes.io/pvc-protection"
    ]
    assert cluster.create(VOLUMES, volume)["metadata"]["finalizers"] == [
        "example.com/mine",
        "kubernetes.io/pv-protection",
    ]


@pytest.mark.parametrize(
    ("class_name", "phase", "why"),
    [
        pytest.param("grows", "Bound", "", id="a bound claim of a class that allows it"),
        pytest.param(
            "stays",
            "Bound",
            "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize",
            id="not of every class",
        ),
        pytest.param(
            "",
            "Bound",
            "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize",
            id="not without one",
        ),
    ],
)
def test_claims_grow(cluster: Booted, class_name: str, phase: str, why: str) -> None:
    for name, grows in (("grows", True), ("stays", False)):
        body = {"metadata": {"name": name}, "provisioner": "p", "allowVolumeExpansion": grows}
        cluster.create(STORAGE_CLASSES, body)
    cluster.create(CLAIMS, claim(storageClassName=class_name))
    status = {"status": {"phase": phase}}
    cluster.update(CLAIMS, "default/data", lambda obj: {**obj, **status}, subresource="status")

    def grow(obj: Object) -> Object:
        return {**obj, "spec": {**obj["spec"], **sized("2Gi")}}

    if not why:
        assert cluster.update(CLAIMS, "default/data", grow)["spec"]["resources"] == {
            "requests": {"storage": "2Gi"}
        }
        return
    with pytest.raises(StatusError) as error:
        cluster.update(CLAIMS, "default/data", grow)
    assert error.value.message == f'persistentvolumeclaims "data" is forbidden: {why}'
