"""The roles and bindings that every cluster has from the start, as far as they matter here.

Decision (2026-11): the controllers share one user and one wide role; because they run in one
process with one client; instead of a service account and a role for each, as a real cluster has.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from berth.cluster.access.rules import Rule, on, on_paths
from berth.cluster.access.users import (
    AUTHENTICATED,
    CONTROLLER_MANAGER,
    MASTERS,
    MONITORS,
    NODES,
    SCHEDULER,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
)
from berth.cluster.resources import Object
from berth.cluster.strategies.rbac import GROUP

BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AUTO_UPDATE: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
AGGREGATE: Final = f"{GROUP}/aggregate-to-"

READ: Final = "get list watch"
WRITE: Final = "create delete deletecollection patch update"
STORAGE: Final = "storage.k8s.io"
DEVICES: Final = "resource.k8s.io"

PUBLIC_PATHS: Final = "/healthz /livez /readyz /version /version/"
DISCOVERY_PATHS: Final = (
    "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"
)
ISSUER_PATHS: Final = (
    "/.well-known/openid-configuration /.well-known/openid-configuration/"
    " /openid/v1/jwks /openid/v1/jwks/"
)

SCHEDULER_RULES: Final = (
    on("events", "create patch update", groups="core events.k8s.io"),
    on("leases", "create", groups="coordination.k8s.io"),
    on("leases", "get update list watch", groups="coordination.k8s.io", names=["kube-scheduler"]),
    on("leasecandidates", f"{READ} {WRITE}", groups="coordination.k8s.io"),
    on("nodes", READ),
    on("pods", f"{READ} delete"),
    on("bindings pods/binding", "create"),
    on("pods/status", "patch update"),
    on("replicationcontrollers services", READ),
    on("replicasets", READ, groups="apps extensions"),
    on("statefulsets", READ, groups="apps"),
    on("poddisruptionbudgets", READ, groups="policy"),
    on("persistentvolumeclaims persistentvolumes", READ),
    on("tokenreviews", "create", groups="authentication.k8s.io"),
    on("subjectaccessreviews", "create", groups="authorization.k8s.io"),
    on("csinodes volumeattachments csidrivers csistoragecapacities", READ, groups=STORAGE),
    on("namespaces", READ),
    on("deviceclasses resourceslices", READ, groups=DEVICES),
    on("resourceclaims resourceclaims/status", f"{READ} update patch", groups=DEVICES),
    on("pods/finalizers", "update"),
    on("resourceclaims", "create delete", groups=DEVICES),
    on("devicetaintrules", READ, groups=DEVICES),
    on("resourceclaims/binding", "update patch", groups=DEVICES),
    on("podgroups", READ, groups="scheduling.k8s.io scheduling.x-k8s.io scheduling.volcano.sh"),
    on("compositepodgroups", READ, groups="scheduling.k8s.io"),
    on("podgroups/status", "patch update", groups="scheduling.k8s.io"),
)
"""Spec §11.4, with the rules of all feature gates."""

NODE_RULES: Final = (
    on("tokenreviews", "create", groups="authentication.k8s.io"),
    on("localsubjectaccessreviews subjectaccessreviews", "create", groups="authorization.k8s.io"),
    on("services", READ),
    on("nodes", f"create {READ} update patch delete"),
    on("nodes/status", "update patch"),
    on("events", "create patch update"),
    on("pods", f"{READ} create delete"),
    on("pods/status", "update patch"),
    on("pods/eviction", "create"),
    on("configmaps secrets", READ),
    on("persistentvolumeclaims persistentvolumes", "get"),
    on("persistentvolumeclaims/status", "get update patch"),
    on("serviceaccounts/token", "create"),
    on("volumeattachments", "get", groups=STORAGE),
    on("csidrivers", READ, groups=STORAGE),
    on("csinodes", "get create update patch delete", groups=STORAGE),
    on("leases", "get create update patch delete", groups="coordination.k8s.io"),
    on("resourceclaims", "get", groups=DEVICES),
    on("resourceslices", "get list watch create update patch delete deletecollection",
       groups=DEVICES),
)  # fmt: skip
"""What the Node authorizer limits further on a real cluster."""

VIEWED: Final = (
    on("configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
       " replicationcontrollers replicationcontrollers/scale serviceaccounts services"
       " services/status", READ),
    on("bindings events limitranges namespaces/status pods/log pods/status"
       " replicationcontrollers/status resourcequotas resourcequotas/status", READ),
    on("namespaces", READ),
    on("controllerrevisions daemonsets daemonsets/status deployments deployments/scale"
       " deployments/status replicasets replicasets/scale replicasets/status statefulsets"
       " statefulsets/scale statefulsets/status", READ, groups="apps"),
    on("horizontalpodautoscalers horizontalpodautoscalers/status", READ, groups="autoscaling"),
    on("cronjobs cronjobs/status jobs jobs/status", READ, groups="batch"),
    on("poddisruptionbudgets poddisruptionbudgets/status", READ, groups="policy"),
    on("ingresses ingresses/status networkpolicies", READ, groups="networking.k8s.io"),
    on(
        "compositepodgroups compositepodgroups/status podgroups podgroups/status workloads",
        READ,
        groups="scheduling.k8s.io",
    ),
)  # fmt: skip
EDITED: Final = (
    on("pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
    on("serviceaccounts", "impersonate"),
    on("pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
    on("pods/eviction", "create"),
    on("configmaps events persistentvolumeclaims replicationcontrollers"
       " replicationcontrollers/scale secrets serviceaccounts services services/proxy", WRITE),
    on("serviceaccounts/token", "create"),
    on("daemonsets deployments deployments/rollback deployments/scale replicasets"
       " replicasets/scale statefulsets statefulsets/scale", WRITE, groups="apps"),
    on("horizontalpodautoscalers", WRITE, groups="autoscaling"),
    on("cronjobs jobs", WRITE, groups="batch"),
    on("poddisruptionbudgets", WRITE, groups="policy"),
    on("ingresses networkpolicies", WRITE, groups="networking.k8s.io"),
    on("compositepodgroups podgroups workloads", WRITE, groups="scheduling.k8s.io"),
    on("leases", f"{WRITE} {READ}", groups="coordination.k8s.io"),
)  # fmt: skip
ADMINISTERED: Final = (
    on("localsubjectaccessreviews", "create", groups="authorization.k8s.io"),
    on("rolebindings roles", f"{READ} {WRITE}", groups=GROUP),
)

CERTIFICATES: Final = "certificates.k8s.io"
REQUESTS: Final = "certificatesigningrequests"

EVERYTHING: Final = (on("*", "*", groups="*"), on_paths("*", "*"))

CLUSTER_ROLES: Final[Mapping[str, Sequence[Rule]]] = {
    "cluster-admin": EVERYTHING,
    "system:discovery": (on_paths(DISCOVERY_PATHS, "get"),),
    "system:public-info-viewer": (on_paths(PUBLIC_PATHS, "get"),),
    "system:monitoring": (
        on_paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*",
                 "get"),
    ),
    "system:basic-user": (
        on("selfsubjectaccessreviews selfsubjectrulesreviews", "create",
           groups="authorization.k8s.io"),
        on("selfsubjectreviews", "create", groups="authentication.k8s.io"),
    ),
    "system:auth-delegator": (
        on("tokenreviews", "create", groups="authentication.k8s.io"),
        on("subjectaccessreviews", "create", groups="authorization.k8s.io"),
    ),
    "system:service-account-issuer-discovery": (on_paths(ISSUER_PATHS, "get"),),
    "system:kube-scheduler": SCHEDULER_RULES,
    "system:volume-scheduler": (
        on("persistentvolumes persistentvolumeclaims", f"{READ} update patch"),
        on("storageclasses", READ, groups=STORAGE),
    ),
    "system:kube-controller-manager": (
        on("*", f"{READ} {WRITE}", groups="*"),
        on("clusterroles", "escalate", groups=GROUP),  # what is aggregated, it does not have
        on("signers", "approve sign", groups=CERTIFICATES),
    ),
    "system:node": NODE_RULES,
    "system:node-bootstrapper": (on(REQUESTS, "create get list watch", groups=CERTIFICATES),),
    f"system:{CERTIFICATES}:{REQUESTS}:nodeclient": (
        on(f"{REQUESTS}/nodeclient", "create", groups=CERTIFICATES),
    ),
    f"system:{CERTIFICATES}:{REQUESTS}:selfnodeclient": (
        on(f"{REQUESTS}/selfnodeclient", "create", groups=CERTIFICATES),
    ),
}  # fmt: skip

METRICS_READER: Final = "system:aggregated-metrics-reader"
"""The role that metrics-server adds to those of users."""

AGGREGATED: Final[Mapping[str, tuple[Sequence[Rule], str]]] = {
    "view": (VIEWED, "edit"),
    "edit": (EDITED, "admin"),
    "admin": (ADMINISTERED, ""),
}
"""Roles of users: their own rules, and which other role gathers all of theirs."""

READS_AUTHENTICATION: Final = "extension-apiserver-authentication-reader"
LOCKS: Final = "system::leader-locking-kube-scheduler"

ROLES: Final[Mapping[str, Sequence[Rule]]] = {
    READS_AUTHENTICATION: (on("configmaps", READ, names=["extension-apiserver-authentication"]),),
    LOCKS: (on("leases leasecandidates", "get watch list create update",
               groups="coordination.k8s.io"),),
}  # fmt: skip
"""All in kube-system."""


def cluster_roles() -> list[Object]:
    """Return the ClusterRoles to create."""
    found = [_role(name, rules) for name, rules in CLUSTER_ROLES.items()]
    for name, (rules, above) in AGGREGATED.items():
        gathers = {f"{AGGREGATE}{name}": "true"}
        part = _role(f"system:aggregate-to-{name}", rules, labels=gathers)
        whole = _role(name, (), labels={f"{AGGREGATE}{above}": "true"} if above else {})
        whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
        found += [part, whole]
    measured = (on("pods nodes", READ, groups="metrics.k8s.io"),)
    gathered = {f"{AGGREGATE}{name}": "true" for name in AGGREGATED}
    return [*found, _role(METRICS_READER, measured, labels=gathered)]


def roles() -> list[Object]:
    """Return the Roles to create."""
    return [_role(name, rules, namespace="kube-system") for name, rules in ROLES.items()]


def cluster_role_bindings() -> list[Object]:
    """Return the ClusterRoleBindings to create."""
    return [
        _binding(role, subjects)
        for role, subjects in (
            ("cluster-admin", [_group(MASTERS)]),
            ("system:discovery", [_group(AUTHENTICATED)]),
            ("system:basic-user", [_group(AUTHENTICATED)]),
            ("system:public-info-viewer", [_group(AUTHENTICATED), _group(UNAUTHENTICATED)]),
            ("system:monitoring", [_group(MONITORS)]),
            ("system:service-account-issuer-discovery", [_group(SERVICE_ACCOUNTS)]),
            ("system:kube-scheduler", [_user(SCHEDULER.name)]),
            ("system:volume-scheduler", [_user(SCHEDULER.name)]),
            ("system:kube-controller-manager", [_user(CONTROLLER_MANAGER.name)]),
            ("system:node", [_group(NODES)]),
        )
    ]


def role_bindings() -> list[Object]:
    """Return the RoleBindings to create: the scheduler's, in kube-system."""
    account = {"kind": "ServiceAccount", "name": "kube-scheduler", "namespace": "kube-system"}
    reads = f"system::{READS_AUTHENTICATION}"
    return [
        _binding(LOCKS, [_user(SCHEDULER.name), account], namespace="kube-system"),
        _binding(
            READS_AUTHENTICATION,
            [_user(SCHEDULER.name), _user(CONTROLLER_MANAGER.name)],
            namespace="kube-system",
            name=reads,
        ),
    ]


def _role(
    name: str,
    rules: Iterable[Rule],
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
) -> Object:
    metadata = _metadata(name, namespace)
    metadata["labels"] |= labels or {}
    return {"metadata": metadata, "rules": [rule.as_object() for rule in rules]}


def _binding(
    role: str, subjects: Sequence[Object], *, namespace: str = "", name: str = ""
) -> Object:
    return {
        "metadata": _metadata(name or role, namespace),
        "roleRef": {
            "apiGroup": GROUP,
            "kind": "Role" if namespace else "ClusterRole",
            "name": role,
        },
        "subjects": subjects,
    }


def _metadata(name: str, namespace: str) -> Object:
    metadata: Object = {
        "name": name,
        "labels": dict(BOOTSTRAPPING),
        "annotations": dict(AUTO_UPDATE),
    }
    if namespace:
        metadata["namespace"] = namespace
    return metadata


def _user(name: str) -> Object:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def _group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}
