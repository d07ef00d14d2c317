"""Volumes of pods: a PersistentVolume and a claim that are bound to each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from berth.tools.bench.scheduler_perf.templates import Object

CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
EBS_DRIVER: Final = "ebs.csi.aws.com"
EBS_PLUGIN: Final = "kubernetes.io/aws-ebs"


@dataclass(frozen=True, slots=True)
class Volume:
    """A kind of volumes of 1 GiB."""

    source: Callable[[str], Object]
    """Makes of the name of the volume the part of its spec that says where it is."""
    access_mode: str = "ReadOnlyMany"

    def persistent_volume(self, name: str, namespace: str, claim: str) -> Object:
        spec = {
            "accessModes": [self.access_mode],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
            **self.source(name),
        }
        return {"metadata": {"name": name}, "spec": spec}

    def claim(self, name: str, volume: str) -> Object:
        spec = {
            "accessModes": [self.access_mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            "volumeName": volume,
        }
        annotations = {"pv.kubernetes.io/bind-completed": "true"}
        return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def csi_node(name: str, limit: int, *, is_migrated: bool) -> Object:
    """Make the CSINode of a node that *limit* EBS volumes can be attached to."""
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": EBS_PLUGIN}
    driver = {"name": EBS_DRIVER, "nodeID": name, "allocatable": {"count": limit}}
    metadata = {"name": name, "annotations": migrated if is_migrated else {}}
    return {"metadata": metadata, "spec": {"drivers": [driver]}}


def claim_name(n: int) -> str:
    """Return the name of the claim of the n-th pod of a namespace."""
    return f"pvc-{n}"


def claim_source(n: int) -> Object:
    """Return the ``volumes`` of a pod that uses the claim of the n-th pod."""
    source = {"claimName": claim_name(n)}
    return {"volumes": [{"name": "vol", "persistentVolumeClaim": source}]}


def _csi(name: str) -> Object:
    return {"csi": {"driver": EBS_DRIVER, "volumeHandle": name}}


def _in_tree(name: str) -> Object:
    return {"awsElasticBlockStore": {"volumeID": name}}


CSI: Final = Volume(_csi)
CSI_ONCE_POD: Final = Volume(_csi, "ReadWriteOncePod")
IN_TREE: Final = Volume(_in_tree)
