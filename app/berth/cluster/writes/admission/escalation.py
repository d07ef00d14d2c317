"""Nobody grants more than he has: what is asked of those who write roles and bindings."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import msgspec

from berth.cluster import errors
from berth.cluster.access.attributes import Attributes
from berth.cluster.access.policy import EVERYTHING
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.rules import Rule
from berth.cluster.access.users import User
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies.rbac import GROUP
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube import field_errors


class Escalation(Step):
    """Evaluates writes. What cannot be read is refused, as nobody knows what it grants."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, operation: Operation, resource: ResourceType, _subresource: str) -> bool:
        return resource.group == GROUP and operation in (Operation.CREATE, Operation.UPDATE)

    def admit(self, request: AdmissionRequest) -> None:
        """Raise a 403 unless the user may write the role or binding, where its grants change."""
        obj, old, user = request.object, request.old_object, request.context.user
        if obj is None or user.is_master or (old is not None and _grants(obj) == _grants(old)):
            return
        self._check(request.resource, request.namespace, obj, user)

    def _check(self, resource: ResourceType, namespace: str, obj: Object, user: User) -> None:
        """Raise a 403 unless *user* may write the role or binding *obj*.

        He may when he has all the rights that it grants, in *namespace* ("": everywhere), or the
        right to ``escalate`` the role, or to ``bind`` the role that the binding names.
        """
        name = obj["metadata"].get("name") or ""
        try:
            if "roleRef" in obj:
                rules = self._bound(msgspec.convert(obj, _Referring).role_ref, namespace, user)
            else:
                wanted = Attributes("escalate", GROUP, resource.plural, "", namespace, name)
                rules = () if self._may(user, wanted) else _granted(obj)
        except msgspec.ValidationError as exc:
            what, _, path = str(exc).rstrip("`").partition(" - at `$.")
            raise errors.invalid(resource, name, [field_errors.invalid(path, "", what)]) from exc
        lacking = [*missing(self._authorizer.rules_of(user, namespace), rules)]
        if lacking:
            said = "\n".join(map(compact, lacking))
            why = (
                f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant '
                f"RBAC permissions not currently held:\n{said}"
            )
            raise errors.access_denied(GROUP, resource.plural, name, why)

    def _bound(self, reference: "_Reference", namespace: str, user: User) -> Sequence[Rule]:
        """Return the rules that a binding grants; none when the user may bind that role."""
        kind, name = reference.kind, reference.name
        if kind not in ("Role", "ClusterRole") or not name:
            return ()
        where = namespace if kind == "Role" else ""
        plural = "roles" if kind == "Role" else "clusterroles"
        if self._may(user, Attributes("bind", GROUP, plural, "", namespace, name)):
            return ()
        rules = self._authorizer.rules_of_role(kind, where, name)
        if rules is None:
            raise errors.not_found(find(GROUP, "v1", plural), name)
        return rules

    def _may(self, user: User, wanted: Attributes) -> bool:
        return self._authorizer.authorize(user, wanted).allowed


def _grants(obj: Object) -> list[Any]:
    """Return what of a role or binding grants something."""
    return [obj.get(part) for part in ("rules", "aggregationRule", "roleRef", "subjects")]


def missing(held: Sequence[Rule], granted: Iterable[Rule]) -> Iterator[Rule]:
    """Yield, piece by piece, what *granted* allows and *held* does not.

    A wildcard is held by a wildcard only, also where all that it stands for now is held.
    """
    for rule in granted:
        for group, resource, name in product(
            rule.api_groups, rule.resources, rule.resource_names or ("",)
        ):
            plain, _, subresource = resource.partition("/")
            wanted = Attributes("", group, plain, subresource, name=name)
            verbs = _lacking(held, rule, wanted)
            if verbs:
                yield Rule(verbs, (group,), (resource,), (name,) if name else ())
        for path in rule.non_resource_urls:
            verbs = _lacking(held, rule, Attributes("", path=path))
            if verbs:
                yield Rule(verbs, non_resource_urls=(path,))


def compact(rule: Rule) -> str:
    """Write a rule as the API server does: ``{APIGroups:[""], Resources:["pods"], ...}``."""
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("ResourceNames", rule.resource_names),
        ("NonResourceURLs", rule.non_resource_urls),
        ("Verbs", rule.verbs),
    )
    written = [f"{name}:{quoted(words)}" for name, words in parts if words]
    return f"{{{', '.join(written)}}}"


def quoted(words: Iterable[str]) -> str:
    """Write a list as Go does: ``["get" "list"]``."""
    written = " ".join(f'"{word}"' for word in words)
    return f"[{written}]"


def _lacking(held: Sequence[Rule], rule: Rule, wanted: Attributes) -> tuple[str, ...]:
    """Return the verbs of *rule* that no rule that is held allows on what is *wanted*."""
    return tuple(
        verb
        for verb in rule.verbs
        if not any(each.allows(wanted._replace(verb=verb)) for each in held)
    )


def _granted(role: Object) -> Sequence[Rule]:
    """Return the rules of a role; one that aggregates may come to have any."""
    if role.get("aggregationRule") is not None:
        return EVERYTHING
    return msgspec.convert(role, _Rules).rules or ()


class _Rules(msgspec.Struct):
    rules: tuple[Rule, ...] | None = None


class _Reference(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Referring(msgspec.Struct, rename="camel"):
    role_ref: _Reference
