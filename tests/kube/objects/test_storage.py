"""Volumes and claims as the API writes them, and as they are written back."""

from collections.abc import Callable

import msgspec
import pytest

from berth.kube.objects.quantity import NANO
from berth.kube.objects.raw import decoder
from berth.kube.objects.storage import (
    BETA_CLASS,
    CSINode,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    claim_body,
    volume_body,
)
from tests.volume_builders import claim, csi_node, reference, storage_capacity, volume

GIB = 1024**3


def test_a_volume_as_the_api_writes_it() -> None:
    data = b"""{"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "pv", "uid": "pv-pv", "resourceVersion": "1"},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": "data",
                "namespace": "default", "uid": "pvc-default-data", "resourceVersion": "1"},
            "storageClassName": "local", "volumeMode": "Filesystem", "unknown": {"x": 1},
            "csi": {"driver": "csi.example.com", "volumeHandle": "pv", "fsType": "ext4"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]}}},
        "status": {"phase": "Bound"}}"""
    assert msgspec.json.decode(data, type=PersistentVolume) == volume(hosts=["n1"], claim=claim())


def test_a_claim_as_the_api_writes_it() -> None:
    data = b"""{"metadata": {"name": "data", "namespace": "default", "uid": "pvc-default-data",
            "resourceVersion": "1", "annotations": {"volume.kubernetes.io/selected-node": "n1"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "local", "volumeMode": "Block",
            "volumeAttributesClassName": "gold"},
        "status": {"phase": "Pending"}}"""
    assert msgspec.json.decode(data, type=PersistentVolumeClaim) == claim(
        selected="n1", volume_mode="Block", volume_attributes_class_name="gold"
    )


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        pytest.param(
            PersistentVolume,
            b'{"spec":{"capacity":{"storage":"much"}}}',
            "capacity\\[storage\\]: quantity 'much'",
            id="capacity of a volume",
        ),
        pytest.param(
            PersistentVolumeClaim,
            b'{"spec":{"resources":{"requests":{"storage":"-1"}}}}',
            "requests\\[storage\\]: quantity '-1': must not be negative",
            id="request of a claim",
        ),
        pytest.param(
            CSIStorageCapacity,
            b'{"maximumVolumeSize":"1Xi"}',
            "maximumVolumeSize\\[storage\\]: quantity '1Xi'",
            id="largest volume of a driver",
        ),
    ],
)
def test_nonsense_quantities_name_the_field(
    kind: type[msgspec.Struct], data: bytes, error: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=error):
        msgspec.json.decode(data, type=kind)


def test_sizes_are_exact() -> None:
    assert volume(size="1500m").size == 1_500_000_000
    assert claim(size="1Gi").requested_size == GIB * NANO
    assert claim(size=None).requested_size == 0
    assert claim(size=None).request is None


@pytest.mark.parametrize("make", [volume, claim])
def test_the_old_annotation_names_the_class(
    make: Callable[..., PersistentVolume | PersistentVolumeClaim],
) -> None:
    assert make("x", storage_class="new").storage_class == "new"
    old = make("x", storage_class="new", annotations={BETA_CLASS: "old"})
    assert old.storage_class == "old"


@pytest.mark.parametrize(
    ("held_by", "want"),
    [
        pytest.param(None, False, id="nobody has it"),
        pytest.param(reference(claim()), True, id="the claim has it"),
        pytest.param(reference(claim(), uid=""), True, id="reserved for a claim of the name"),
        pytest.param(reference(claim(), uid="older"), False, id="an older claim of the name"),
        pytest.param(reference(claim("other")), False, id="another claim"),
        pytest.param(reference(claim(ns="other")), False, id="in another namespace"),
    ],
)
def test_is_bound_to(held_by: ObjectReference | None, want: bool) -> None:
    assert volume(claim=held_by).is_bound_to(claim()) is want


def test_a_claim_is_fully_bound_when_the_controller_says_so() -> None:
    assert claim(bound_to="pv").is_fully_bound
    assert not claim(volume="pv").is_fully_bound
    assert not claim(annotations={"pv.kubernetes.io/bind-completed": "yes"}).is_fully_bound


def test_limits_of_a_node() -> None:
    assert csi_node(limits={"a": 3, "b": None, "c": 0}).limits == {"a": 3, "c": 0}
    assert msgspec.json.decode(b'{"spec":{"drivers":null}}', type=CSINode).limits == {}


def test_largest_volume() -> None:
    assert storage_capacity().largest_volume is None
    assert storage_capacity(size="1500m").largest_volume == 2
    assert storage_capacity(size="9Gi", largest="1Gi").largest_volume == GIB


# Writing back.


def test_a_written_volume_keeps_what_is_unknown() -> None:
    data = (
        b'{"metadata":{"name":"pv","resourceVersion":"7","annotations":{"a":"b"},'
        b'"managedFields":[{"manager":"m"}]},"spec":{"capacity":{"storage":"1Gi"},"nfs":{"p":1}}}'
    )
    known = decoder(PersistentVolume)(data)
    assert known.raw == data
    changed = msgspec.structs.replace(
        known,
        metadata=msgspec.structs.replace(known.metadata, annotations={"a": "b", "c": "d"}),
        spec=msgspec.structs.replace(known.spec, claim_ref=reference(claim())),
    )
    assert msgspec.json.decode(volume_body(changed)) == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": "pv",
            "resourceVersion": "7",
            "annotations": {"a": "b", "c": "d"},
            "managedFields": [{"manager": "m"}],
        },
        "spec": {
            "capacity": {"storage": "1Gi"},
            "nfs": {"p": 1},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": "default",
                "name": "data",
                "uid": "pvc-default-data",
                "resourceVersion": "1",
            },
        },
    }


def test_a_written_claim_keeps_what_is_unknown() -> None:
    known = decoder(PersistentVolumeClaim)(b'{"metadata":{"name":"d","x":1},"spec":{"y":2}}')
    changed = msgspec.structs.replace(
        known, metadata=msgspec.structs.replace(known.metadata, annotations={"a": "b"})
    )
    assert msgspec.json.decode(claim_body(changed)) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d", "x": 1, "annotations": {"a": "b"}},
        "spec": {"y": 2},
    }


def test_what_was_not_read_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="PersistentVolume pv: not decoded from the API"):
        volume_body(volume())
