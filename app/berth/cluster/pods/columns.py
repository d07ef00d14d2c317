"""The parts of a pod that its columns and field selectors read: half of it, and quickly decoded.

The rest is mostly who manages which field, volumes, tolerations and probes.
"""

from typing import Any, TypedDict


class MetadataDigest(TypedDict, total=False):
    """What is read of the metadata."""

    name: str
    creationTimestamp: str | None
    deletionTimestamp: str | None


class ContainerDigest(TypedDict, total=False):
    """What is read of a container: the number of them matters."""

    name: str


class SpecDigest(TypedDict, total=False):
    """What is read of the spec."""

    containers: list[ContainerDigest] | None
    hostNetwork: Any
    initContainers: Any
    nodeName: Any
    readinessGates: Any
    restartPolicy: Any
    schedulerName: Any
    serviceAccountName: Any


class PodDigest(TypedDict, total=False):
    """What is read of a pod."""

    metadata: MetadataDigest
    spec: SpecDigest | None
    status: Any
