"""The order in which objects are created, so that each finds what it needs; much as helm has it."""

from berth.kube.manifests import Manifest

KINDS = (
    "Namespace",
    "CustomResourceDefinition",
    # Classes, and what objects refer to by name when they are admitted.
    "PriorityClass", "RuntimeClass", "StorageClass", "VolumeAttributesClass", "IngressClass",
    "DeviceClass", "CSIDriver",
    "Node", "CSINode", "CSIStorageCapacity", "ResourceSlice",
    # Rights and limits.
    "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount",
    "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
    # What pods refer to.
    "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim",
    "ResourceClaimTemplate", "ResourceClaim", "Service",
    # Pods, and what makes them.
    "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment",
    "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "Ingress",
)  # fmt: skip

LAST = (
    "APIService",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
)  # fmt: skip
"""These may refuse other objects, so they come after all others, custom ones too."""

_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_PLACES |= {kind: place for place, kind in enumerate(LAST, start=len(KINDS) + 1)}


def place(obj: Manifest) -> int:
    """Return where an object stands: the key to sort by. Objects of one kind keep their order."""
    group = obj["apiVersion"].rpartition("/")[0]
    # A Service of Knative is no Service.
    is_builtin = "." not in group or group.endswith(".k8s.io")
    return _PLACES.get(obj["kind"], len(KINDS)) if is_builtin else len(KINDS)
