"""Drivers' names for the volumes of pods."""

from collections.abc import Iterable, Iterator
from random import Random
from string import ascii_lowercase, digits
from typing import Any, NamedTuple

from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.status import Status
from berth_plugins.shared.csi_translation import BY_PLUGIN, kind_of, volume_handle
from berth_plugins.shared.volume_claims import claim_volumes, ownership_error


class CSIVolume(NamedTuple):
    """A volume as its driver knows it: what is counted, once per node."""

    driver: str
    handle: str


class Used(NamedTuple):
    """The volumes that pods use."""

    volumes: set[CSIVolume]
    looked_up: set[str]
    """The claims (with namespace) and PersistentVolumes that this goes by, by name."""


def may_attach(template: PodTemplate) -> bool:
    """Whether pods of *template* have volumes that a driver might have to attach."""
    if not template.pod.spec.volumes:
        return False
    return template.memo("may attach", lambda: may_pod_attach(template.pod))


def may_pod_attach(pod: Pod) -> bool:
    """Whether *pod* has volumes that a driver might have to attach."""
    return any(claim_volumes(pod)) or any(kind_of(volume) for volume in pod.spec.volumes)


class VolumeNames:
    """Tells what volumes of pods are called by their drivers, on nodes that have a CSINode.

    There the migration of in-tree volumes is always on; other nodes have no limits at all, and the
    names there are those that are not *migrated*.
    """

    def __init__(self, listers: Listers, rng: Random) -> None:
        """*rng* makes up part of the name of volumes that are yet to come."""
        self._listers = listers
        self._prefix = "".join(rng.choices(ascii_lowercase + digits, k=32))

    def wanted_by(self, pod: Pod, *, migrated: bool = True) -> set[CSIVolume] | Status:
        """Return the volumes of a pod that is to be scheduled, or what is wrong with them."""
        namespace, volumes = pod.metadata.namespace, set(_inline(pod)) if migrated else set()
        for name, is_ephemeral in claim_volumes(pod):
            if not name:
                return Status.error("PersistentVolumeClaim had no name")
            claim = self._listers.persistent_volume_claims.get(namespace, name)
            if claim is None:
                return Status.unresolvable(
                    f'looking up PVC {namespace}/{name}: persistentvolumeclaim "{name}" not found'
                )
            error = ownership_error(pod, claim) if is_ephemeral else ""
            if error:
                return Status.error(error)
            volume = self._of_claim(claim, migrated=migrated)
            if volume is not None:
                volumes.add(volume)
        return volumes

    def used_by(self, pods: Iterable[PodInfo]) -> Used:
        """Return the volumes of running pods; what cannot be found out is nobody's."""
        volumes: set[CSIVolume] = set()
        looked_up: set[str] = set()
        claims = self._listers.persistent_volume_claims
        for pod in pods:
            volumes.update(_inline(pod.pod))
            for name, _ in claim_volumes(pod.pod):
                looked_up.add(f"{pod.namespace}/{name}")
                claim = claims.get(pod.namespace, name)
                if claim is None:
                    continue
                looked_up.add(claim.spec.volume_name)
                volume = self._of_claim(claim, migrated=True)
                if volume is not None:
                    volumes.add(volume)
        return Used(volumes, looked_up)

    def _of_claim(self, claim: PersistentVolumeClaim, *, migrated: bool) -> CSIVolume | None:
        volume = self._listers.persistent_volumes.get("", claim.spec.volume_name)
        if volume is not None:
            return _of_volume(volume, migrated=migrated)
        storage_class = self._listers.storage_classes.get("", claim.storage_class)
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        in_tree = BY_PLUGIN.get(driver)
        if in_tree is not None:
            driver = in_tree.driver if in_tree.is_migrated and migrated else ""
        return CSIVolume(driver, f"{self._prefix}-{claim.metadata.key}") if driver else None


def _of_volume(volume: PersistentVolume, *, migrated: bool) -> CSIVolume | None:
    source = volume.spec.csi
    if source is not None:
        known = source.driver and source.volume_handle
        return CSIVolume(source.driver, source.volume_handle) if known else None
    return _translated(volume.spec, volume.metadata.labels) if migrated else None


def _inline(pod: Pod) -> Iterator[CSIVolume]:
    for written in pod.spec.volumes:
        volume = _translated(written)
        if volume is not None:
            yield volume


def _translated(source: Any, labels: dict[str, str] | None = None) -> CSIVolume | None:
    kind = kind_of(source)
    if kind is None:
        return None
    try:
        handle = volume_handle(source, labels)
    except ValueError:
        return None
    return CSIVolume(kind.driver, handle) if handle else None
