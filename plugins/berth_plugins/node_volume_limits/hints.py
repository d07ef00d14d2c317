"""Events that may make room for a pod."""

from berth.kube.objects.pod import Pod, Volume
from berth.kube.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from berth.scheduler.framework.events import QueueingHint
from berth_plugins.node_volume_limits.volume_names import may_pod_attach
from berth_plugins.shared.csi_translation import kind_of
from berth_plugins.shared.volume_claims import references


def after_csi_node_update(pod: Pod, old: CSINode, new: CSINode) -> QueueingHint:
    """Queue if the node takes more volumes of some driver than before."""
    before = old.limits
    raised = any(limit > before.get(driver, 0) for driver, limit in new.limits.items())
    return QueueingHint.QUEUE if raised else QueueingHint.SKIP


def after_driver_installation(pod: Pod, old: CSINode, new: CSINode) -> QueueingHint:
    """Queue if the node has a driver more, or takes more volumes of some driver than before.

    kube-scheduler looks at the limits only, so that a driver without one wakes nobody (G16.2).
    """
    if new.drivers - old.drivers:
        return QueueingHint.QUEUE
    return after_csi_node_update(pod, old, new)


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Queue if the deleted pod had a place, and volumes."""
    had_place = old.spec.node_name or old.status.nominated_node_name
    return QueueingHint.QUEUE if had_place and may_pod_attach(old) else QueueingHint.SKIP


def after_new_claim(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    """Queue if the claim is one of the pod's."""
    return QueueingHint.QUEUE if references(pod, new) else QueueingHint.SKIP


def after_detachment(pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None) -> QueueingHint:
    """Queue if the detached volume may have taken the room that this pod needs."""
    may_help = any(_may_wait_for(volume, old.spec.attacher) for volume in pod.spec.volumes)
    return QueueingHint.QUEUE if may_help else QueueingHint.SKIP


def _may_wait_for(volume: Volume, driver: str) -> bool:
    kind = kind_of(volume)
    return volume.persistent_volume_claim is not None or (
        kind is not None and kind.driver == driver
    )
