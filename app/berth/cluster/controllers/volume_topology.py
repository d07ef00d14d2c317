"""From which nodes a new volume can be used: those of a zone, one node, or all of them.

As the provisioners of CSI drivers decide it: by the topology keys that the driver has registered in
the CSINode, or that the class names in ``allowedTopologies``. Drivers that nobody has registered
are known by name.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    CSINodeView,
    NodeView,
    StorageClassView,
    TopologySelectorTermView,
)

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

LOCAL_PROVISIONERS: Final = frozenset(
    {
        "docker.io/hostpath",
        "hostpath.csi.k8s.io",
        "k8s.io/minikube-hostpath",
        "local.csi.openebs.io",
        "microk8s.io/hostpath",
        "openebs.io/local",
        "rancher.io/local-path",
        "topolvm.io",
    }
)
"""Their volumes are directories or disks of one node."""

ZONAL_PROVISIONERS: Final = frozenset(
    {
        "cinder.csi.openstack.org",
        "disk.csi.azure.com",
        "ebs.csi.aws.com",
        "kubernetes.io/aws-ebs",
        "kubernetes.io/azure-disk",
        "kubernetes.io/cinder",
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
    }
)
"""Their volumes are disks that any node of one zone can attach."""

Segment = Mapping[str, str]
"""The labels of the nodes that can use a volume."""


class VolumeTopology:
    """Says where new volumes are."""

    def __init__(self, nodes: Table[NodeView], csi_nodes: Table[CSINodeView]) -> None:
        self._nodes = nodes
        self._csi_nodes = csi_nodes

    def segment(
        self, storage_class: StorageClassView, *, node_name: str | None, claim_key: str
    ) -> Segment | None:
        """Return which nodes can use a volume of *storage_class*; empty: all of them.

        It is made for the node that was chosen for a pod, or else for *claim_key*: then claims are
        spread over all that there is. None if the node is not known, or not yet.
        """
        keys = self._keys(storage_class, node_name)
        if node_name is not None:
            node = self._nodes.get(node_name)
            return None if node is None else _labels(node, keys)
        segments: list[Segment] = [
            dict(zip(keys, values, strict=True)) for values in self._values(keys)
        ]
        allowed = storage_class.allowed_topologies or ()
        if allowed:
            segments = [each for each in segments if any(_allows(term, each) for term in allowed)]
            segments = segments or [*_named(allowed)]
        return segments[zlib.crc32(claim_key.encode()) % len(segments)] if segments else {}

    def _keys(self, storage_class: StorageClassView, node_name: str | None) -> Sequence[str]:
        """Return the labels in which the nodes that can use the volume agree."""
        registered = self._registered(storage_class.provisioner, node_name)
        if registered is not None:
            return registered
        named = [
            expression.key
            for term in storage_class.allowed_topologies or ()
            for expression in term.match_label_expressions or ()
        ]
        if named:
            return [*dict.fromkeys(named)]
        if storage_class.provisioner in LOCAL_PROVISIONERS:
            return [HOSTNAME]
        return [ZONE] if storage_class.provisioner in ZONAL_PROVISIONERS else []

    def _registered(self, driver: str, node_name: str | None) -> Sequence[str] | None:
        """Return the keys that *driver* has on the node, or on any; None: it is not there."""
        if node_name is None:
            csi_nodes: Iterable[CSINodeView | None] = self._csi_nodes.values()
        else:
            csi_nodes = [self._csi_nodes.get(node_name)]
        for csi_node in csi_nodes:
            for each in (csi_node.spec.drivers if csi_node is not None else None) or ():
                if each.name == driver:
                    return each.topology_keys or []
        return None

    def _values(self, keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the values of *keys* that nodes have, sorted."""
        if not keys:
            return []
        found = (_labels(node, keys) for node in self._nodes.values())
        return sorted({tuple(each.values()) for each in found if len(each) == len(keys)})


def _labels(node: NodeView, keys: Sequence[str]) -> Segment:
    labels = node.metadata.labels or {}
    return {key: labels[key] for key in keys if key in labels}


def _allows(term: TopologySelectorTermView, segment: Segment) -> bool:
    return all(
        segment.get(expression.key) in (expression.values or ())
        for expression in term.match_label_expressions or ()
    )


def _named(terms: Iterable[TopologySelectorTermView]) -> Iterator[Segment]:
    """Yield for each of *terms* the first values that it allows: no node is there yet."""
    for term in terms:
        expressions = term.match_label_expressions or ()
        yield {
            expression.key: expression.values[0] for expression in expressions if expression.values
        }
