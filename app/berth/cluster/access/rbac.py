"""The RBAC authorizer: which rule, if any, lets a user do something.

Reads roles and bindings from the store; one that cannot be read grants nothing. What it has made of
them is kept until one of them changes, and so are decisions, because a client asks the same thing
again and again.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.policy import beyond_roles
from berth.cluster.access.rules import ALL, Rule
from berth.cluster.access.users import User, service_account_user
from berth.cluster.kinds.builtin import find
from berth.cluster.reading import completing, readable
from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies.rbac import GROUP
from berth.cluster.strategies.selectors import LabelSelector, matches

ROLES: Final = f"roles.{GROUP}"
ROLE_BINDINGS: Final = f"rolebindings.{GROUP}"
CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"
CLUSTER_ROLE_BINDINGS: Final = f"clusterrolebindings.{GROUP}"
KINDS: Final = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
"""Where the store keeps them."""

DECISIONS_KEPT: Final = 10_000
"""Then all are forgotten: a bound, not a policy."""


class Decision(NamedTuple):
    """Whether something is allowed, and by what."""

    allowed: bool
    reason: str = ""
    """What SubjectAccessReviews and audit logs say."""
    rule: Rule | None = None
    """None: refused, or allowed whatever the rules say."""


class Grant(NamedTuple):
    """What one subject of one binding has."""

    namespace: str
    """Empty: everywhere."""
    reason: str
    rules: tuple[Rule, ...]


REFUSED: Final = Decision(allowed=False)
UNCONDITIONAL: Final = Decision(allowed=True)
"""Of system:masters."""

Observer = Callable[[User, Attributes, Decision], None]


class Authorizer:
    """Decides by the roles and bindings in *store*.

    *observer*, if there is one, is told of every request that was to be authorized.
    """

    def __init__(self, store: Store, *, observer: Observer | None = None) -> None:
        self._store = store
        self.observer = observer
        self._is_stale = True
        self._grants: dict[tuple[str, str], list[Grant]] = {}
        """By kind (``User`` or ``Group``) and name of subject."""
        self._roles: dict[tuple[str, str, str], tuple[Rule, ...]] = {}
        """By kind, namespace and name."""
        self._named: set[str] = set()
        """Resources of which some rule names objects: with others, names do not matter."""
        self._decisions: dict[tuple[str, tuple[str, ...], Attributes], Decision] = {}
        for kind in KINDS:
            store.follow(kind, self._forget)

    def authorize(self, user: User, wanted: Attributes) -> Decision:
        """Decide, and tell the observer."""
        decision = self.decide(user, wanted)
        if self.observer is not None:
            self.observer(user, wanted, decision)
        return decision

    def decide(self, user: User, wanted: Attributes) -> Decision:
        """Return whether *user* may do what is *wanted*, and why."""
        if user.is_master:
            return UNCONDITIONAL
        self._refresh()
        if wanted.resource:
            matters = wanted.full_resource in self._named or ALL in self._named
            verb, group, resource, subresource, namespace, name, _ = wanted
            wanted = Attributes(
                verb, group, resource, subresource, namespace, name if matters else ""
            )
        key = (user.name, user.groups, wanted)
        known = self._decisions.get(key)
        if known is None:
            if len(self._decisions) >= DECISIONS_KEPT:
                self._decisions.clear()
            known = self._decisions[key] = self._decide(user, wanted)
        return known

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """Return all rules that *user* has in a namespace, the cluster-wide ones included."""
        self._refresh()
        return [rule for grant in self._grants_of(user, namespace) for rule in grant.rules]

    def rules_of_role(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a Role, or of a ClusterRole (no namespace); None: there is none."""
        self._refresh()
        return self._roles.get((kind, namespace, name))

    def _decide(self, user: User, wanted: Attributes) -> Decision:
        # A path is nowhere, so what is granted in a namespace does not reach it.
        for grant in self._grants_of(user, wanted.namespace if wanted.resource else ""):
            for rule in grant.rules:
                if rule.allows(wanted):
                    return Decision(True, grant.reason, rule)  # noqa: FBT003 - a field of a tuple
        return REFUSED

    def _grants_of(self, user: User, namespace: str) -> Iterator[Grant]:
        for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
            for grant in self._grants.get(subject, ()):
                if grant.namespace in ("", namespace):
                    yield grant

    def _forget(self, _change: Change) -> None:
        self._is_stale = True

    def _refresh(self) -> None:
        """Read everything again, if anything changed."""
        if not self._is_stale:
            return
        self._decisions.clear()
        roles = self._roles = _rules_by_role(self._store)
        self._grants = {
            subject: [Grant("", "", tuple(rules))] for subject, rules in beyond_roles().items()
        }
        for kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for stored, binding in readable(self._store.list(kind), _read[kind], kind):
                self._bind(stored.key, binding, roles)
        self._named = {
            resource
            for rules in roles.values()
            for rule in rules
            if rule.resource_names
            for resource in rule.resources
        }
        # A rule on */status may name objects of any resource.
        if any(resource.startswith(ALL) for resource in self._named):
            self._named.add(ALL)
        self._is_stale = False

    def _bind(
        self,
        key: tuple[str, str],
        binding: "_Binding",
        roles: Mapping[tuple[str, str, str], tuple[Rule, ...]],
    ) -> None:
        namespace, name = key
        role = binding.role_ref
        rules = roles.get((role.kind, namespace if role.kind == "Role" else "", role.name), ())
        said = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        for subject in binding.subjects:
            reason = f'RBAC: allowed by {said} of {role.kind} "{role.name}" to {subject.text}'
            self._grants.setdefault(subject.key(namespace), []).append(
                Grant(namespace, reason, rules)
            )


class _Subject(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    name: str = ""
    namespace: str = ""

    def key(self, namespace: str) -> tuple[str, str]:
        """As whom it makes requests; a service account may be one of the binding's *namespace*."""
        if self.kind == "ServiceAccount":
            return "User", service_account_user(self.namespace or namespace, self.name)
        return self.kind, self.name

    @property
    def text(self) -> str:
        name = f"{self.name}/{self.namespace}" if self.kind == "ServiceAccount" else self.name
        return f'{self.kind} "{name}"'


class _RoleRef(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    role_ref: _RoleRef = _RoleRef()
    subjects: tuple[_Subject, ...] = ()


class _Aggregation(msgspec.Struct, frozen=True, rename="camel"):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class _Role(msgspec.Struct, frozen=True, rename="camel"):
    rules: tuple[Rule, ...] | None = None
    aggregation_rule: _Aggregation | None = None


def _reader(storage_key: str, type_: type[Any]) -> Callable[[bytes], Any]:
    schema = find(GROUP, "v1", storage_key.partition(".")[0]).schema
    return completing(schema, msgspec.json.Decoder(type_).decode)


_read: Final = {
    ROLES: _reader(ROLES, _Role),
    CLUSTER_ROLES: _reader(CLUSTER_ROLES, _Role),
    ROLE_BINDINGS: _reader(ROLE_BINDINGS, _Binding),
    CLUSTER_ROLE_BINDINGS: _reader(CLUSTER_ROLE_BINDINGS, _Binding),
}


def _rules_by_role(store: Store) -> dict[tuple[str, str, str], tuple[Rule, ...]]:
    """Return the rules of all roles by kind, namespace and name, with those they aggregate."""

    def read(kind: str) -> Iterator[tuple[Stored, _Role]]:
        return readable(store.list(kind), _read[kind], kind)

    found = {("Role", *stored.key): role.rules or () for stored, role in read(ROLES)}
    cluster_roles: dict[str, _Role] = {}
    labels: dict[str, Mapping[str, str]] = {}
    for stored, role in read(CLUSTER_ROLES):
        cluster_roles[stored.name], labels[stored.name] = role, stored.labels

    def members(name: str, seen: set[str]) -> Iterator[Rule]:
        """Yield the rules of a cluster role; those that it aggregates stand in for its own."""
        seen.add(name)
        role = cluster_roles[name]
        if role.aggregation_rule is None:
            yield from role.rules or ()
            return
        for selector in role.aggregation_rule.cluster_role_selectors:
            for other in cluster_roles:
                if other not in seen and matches(selector, labels[other]):
                    yield from members(other, seen)

    for name in cluster_roles:
        found["ClusterRole", "", name] = tuple(members(name, set()))
    return found
