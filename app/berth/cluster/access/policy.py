"""The roles and bindings that every cluster has from the start, and what needs no role.

``policy.json`` has them as kube-apiserver 1.36 makes them, without those of feature gates that are
off by default. A rule is a line, ``VERBS | GROUPS | RESOURCES [| NAMES]`` or ``VERBS | PATHS``,
with ``core`` for the group without a name; a subject is its kind and its name. ``controllerRoles``
are each bound to the service account of that name. ``rulesOfServedKinds`` are more rules of the
roles above, where the server has the kind (gated spec G7.3; for 1.37 they are inferred).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from berth.cluster.access.rules import Rule, on, on_paths
from berth.cluster.access.users import CONTROLLER_MANAGER, NODES, SCHEDULER
from berth.cluster.data import read
from berth.cluster.resources import Object
from berth.cluster.strategies.rbac import GROUP

BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AUTO_UPDATE: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
AGGREGATE: Final = f"{GROUP}/aggregate-to-"
CONTROLLER: Final = "system:controller:"

EVERYTHING: Final = (on("*", "*", groups="*"), on_paths("*", "*"))

NODE_RULES: Final = (
    on("nodes", "delete"),
    on("resourceslices", "get list watch create update patch delete", groups="resource.k8s.io"),
)
"""What kubelets do beyond the role ``system:node``."""

CONTROLLER_RULES: Final = (
    on("*", "get list watch create delete deletecollection patch update", groups="*"),
    on("clusterroles", "escalate", groups=GROUP),  # what is aggregated, it does not have
    on("signers", "approve sign", groups="certificates.k8s.io"),
)

SCHEDULER_RULES: Final = (
    on("podgroups", "get list watch", groups="scheduling.x-k8s.io scheduling.volcano.sh"),
)
"""Groups of pods as other schedulers have them."""

USER_ROLES: Final = {"view": "edit", "edit": "admin", "admin": ""}
"""Roles of users, which gather the rules of others, and which of them gathers theirs."""
METRICS_READER: Final = "system:aggregated-metrics-reader"
"""The role that metrics-server adds to those of users."""
METRICS: Final = "metrics.k8s.io"


class _Policy(msgspec.Struct, frozen=True, rename="camel"):
    """What ``policy.json`` has: rules and subjects by role, in namespaces where they are in one."""

    cluster_roles: dict[str, list[str]]
    controller_roles: dict[str, list[str]]
    cluster_role_bindings: dict[str, list[str]]
    roles: dict[str, dict[str, list[str]]]
    role_bindings: dict[str, dict[str, list[str]]]
    rules_of_served_kinds: dict[str, dict[str, list[str]]]


@cache
def _policy() -> _Policy:
    return read("berth.cluster.access", "policy.json", _Policy)


def rules_of(name: str, served: Collection[str] = ()) -> list[Rule]:
    """Return the rules of a ClusterRole from the start; KeyError when there is no such role.

    *served* are storage keys of kinds.
    """
    policy = _policy()
    lines = [*policy.cluster_roles[name]]
    for kind, rules in policy.rules_of_served_kinds.items():
        if kind in served:
            lines += rules.get(name, ())
    return [*map(_rule, lines)]


@cache
def beyond_roles() -> Mapping[tuple[str, str], Sequence[Rule]]:
    """Return what is granted without a role, by kind and name of subject.

    Decision (2026-11): the controllers share one user that may do everything; because they run in
    one process with one client; instead of a service account for each, as a real cluster has.
    Nodes have all that the Node authorizer might give them, whichever pods they run.
    """
    return {
        ("User", CONTROLLER_MANAGER.name): CONTROLLER_RULES,
        ("User", SCHEDULER.name): SCHEDULER_RULES,
        ("Group", NODES): [*rules_of("system:node"), *NODE_RULES],
    }


def cluster_roles(served: Collection[str]) -> Iterator[Object]:
    """Yield the ClusterRoles to create in a server with the kinds *served*, by storage key."""
    policy = _policy()
    for name in policy.cluster_roles:
        of_users = name.removeprefix("system:aggregate-to-")
        labels = [of_users] if of_users in USER_ROLES else []
        yield _role(name, rules_of(name, served), labels=labels)
    for name, above in USER_ROLES.items():
        whole = _role(name, (), labels=[above] if above else [])
        selector = {"matchLabels": {f"{AGGREGATE}{name}": "true"}}
        yield whole | {"aggregationRule": {"clusterRoleSelectors": [selector]}}
    for name, rules in policy.controller_roles.items():
        yield _role(CONTROLLER + name, map(_rule, rules))
    if f"pods.{METRICS}" in served:
        measured = on("pods nodes", "get list watch", groups=METRICS)
        yield _role(METRICS_READER, [measured], labels=USER_ROLES)


def roles() -> Iterator[Object]:
    """Yield the Roles to create."""
    for namespace, rules_by_name in _policy().roles.items():
        for name, rules in rules_by_name.items():
            yield _role(name, map(_rule, rules), namespace=namespace)


def cluster_role_bindings() -> Iterator[Object]:
    """Yield the ClusterRoleBindings to create."""
    policy = _policy()
    for role, subjects in policy.cluster_role_bindings.items():
        yield _binding(role, subjects)
    for name in policy.controller_roles:
        yield _binding(CONTROLLER + name, [f"ServiceAccount kube-system/{name}"])


def role_bindings() -> Iterator[Object]:
    """Yield the RoleBindings to create, with names that begin with ``system:`` as all do."""
    for namespace, subjects_by_role in _policy().role_bindings.items():
        for role, subjects in subjects_by_role.items():
            name = role if role.startswith("system:") else f"system::{role}"
            yield _binding(role, subjects, namespace=namespace, name=name)


def _rule(line: str) -> Rule:
    verbs, *about = line.split(" | ")
    if len(about) == 1:
        return on_paths(about[0], verbs)
    groups, resources, *names = about
    return on(resources, verbs, groups=groups, names=names[0].split() if names else ())


def _role(
    name: str, rules: Iterable[Rule], *, namespace: str = "", labels: Iterable[str] = ()
) -> Object:
    """Return a role; *labels* are the roles of users that gather its rules."""
    metadata = _metadata(name, namespace)
    metadata["labels"] |= {f"{AGGREGATE}{each}": "true" for each in labels}
    return {"metadata": metadata, "rules": [rule.as_object() for rule in rules]}


def _binding(role: str, subjects: Sequence[str], *, namespace: str = "", name: str = "") -> Object:
    return {
        "metadata": _metadata(name or role, namespace),
        "roleRef": {
            "apiGroup": GROUP,
            "kind": "Role" if namespace else "ClusterRole",
            "name": role,
        },
        "subjects": [*map(_subject, subjects)],
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


def _subject(text: str) -> Object:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": GROUP, "name": name}
