"""What berth cannot judge yet; such a pod gets no guess."""

from collections.abc import Collection, Mapping

from app.framework.node_table import NodeTable
from app.objects.pod import Affinity, Pod, Volume
from app.objects.resources import is_extended

_FEATURE_ACTIONS = frozenset({"RestartAllContainers"})


def unjudged(
    pod: Pod, *, nodes: NodeTable, missing: Collection[str], kinds: Mapping[str, int]
) -> str | None:
    """Say which of the *missing* plugins would have a say about *pod*, and why; None: none.

    *kinds* counts the objects in the cluster by kind.
    """
    reasons = {
        "InterPodAffinity": _pod_affinity(pod, nodes),
        "PodTopologySpread": _spread(pod, kinds),
        "VolumeBinding": _volumes(pod),
        "DynamicResources": _devices(pod, kinds),
        "NodeDeclaredFeatures": _declared_features(pod),
    }
    found = [f"{plugin}: {why}" for plugin, why in reasons.items() if why and plugin in missing]
    return "; ".join(found) or None


def _pod_affinity(pod: Pod, nodes: NodeTable) -> str | None:
    if _has_pod_terms(pod.spec.affinity):
        return "the pod has pod (anti)affinity"
    for on_node in nodes.pods:
        for other in on_node.values():
            if _has_pod_terms(other.pod.spec.affinity):
                return f"pod {other.key} has pod (anti)affinity"
    return None


def _has_pod_terms(affinity: Affinity | None) -> bool:
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def _spread(pod: Pod, kinds: Mapping[str, int]) -> str | None:
    if pod.spec.topology_spread_constraints:
        return "the pod has topology spread constraints"
    owners = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    present = [kind for kind in owners if kinds.get(kind)]
    if present:
        return f"default constraints may follow from a {present[0]}"
    return None


def _volumes(pod: Pod) -> str | None:
    for volume in pod.spec.volumes:
        if volume != Volume(name=volume.name, image=volume.image, csi=volume.csi):
            return f"volume {volume.name!r} needs a node that can have it"
    return None


def _devices(pod: Pod, kinds: Mapping[str, int]) -> str | None:
    if pod.spec.resource_claims:
        return "the pod has resource claims"
    if kinds.get("DeviceClass"):
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            for name in container.resources.requests:
                if is_extended(name) or name.startswith("deviceclass."):
                    return f"resource {name!r} may be backed by a device class"
    return None


def _declared_features(pod: Pod) -> str | None:
    if pod.spec.host_network and pod.spec.host_users is False:
        return "hostNetwork with hostUsers: false"
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if any(rule.action in _FEATURE_ACTIONS for rule in container.restart_policy_rules):
            return f"container {container.name!r} has a restart rule for all containers"
    return None
