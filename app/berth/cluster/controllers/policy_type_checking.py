"""Writes into ValidatingAdmissionPolicies what is wrong with their expressions.

The controller ``validatingadmissionpolicy-status`` of kube-controller-manager. Fields are checked,
types are not: see :mod:`berth.cluster.controllers.expression_fields`.
"""

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, Final

import msgspec

from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.kinds.registry import Registry
from berth.cluster.object_views import ObjectView
from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies.expressions import compiled

STORAGE_KEY: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
PATH: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
MOST_TYPES: Final = 10
"""Kinds that a policy is checked for."""


class PolicyView(ObjectView, frozen=True):
    """A ValidatingAdmissionPolicy."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class PolicyTypeCheckingController:
    """Checks each generation of a policy once. The key is its name."""

    name = "validatingadmissionpolicy-status"

    def __init__(self, policies: Table[PolicyView], *, registry: Registry) -> None:
        self._policies = policies
        self._registry = registry

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: PolicyView | None, new: PolicyView | None) -> None:
            if new is not None:
                enqueue(new.metadata.key)

        self._policies.listen(changed)

    def plan(self, key: str) -> Plan:
        policy = self._policies.get(key)
        if policy is None or policy.metadata.deletion_timestamp is not None:
            return NOTHING
        generation = policy.metadata.generation
        if policy.status.get("observedGeneration") == generation:
            return NOTHING
        warnings = list(self._warnings(policy.spec))
        status: Object = {
            "observedGeneration": generation,
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        }
        return Plan([Patch(f"{PATH}/{key}/status", {"status": status})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: the status is seen, or written again."""

    def _warnings(self, spec: Object) -> Iterator[Object]:
        kinds = list(islice(self._kinds(spec), MOST_TYPES))
        for index, validation in enumerate(spec.get("validations") or ()):
            for field in ("expression", "messageExpression"):
                source = validation.get(field)
                found = _check(source, kinds) if source else ""
                if found:
                    yield {"fieldRef": f"spec.validations[{index}].{field}", "warning": found}

    def _kinds(self, spec: Object) -> Iterator[ResourceType]:
        """Yield the built-in kinds that a policy names, in the order of their names."""
        rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
        named = {each for rule in rules for each in _named(rule)}
        found = [
            each
            for each in self._registry
            if (each.group, each.version, each.plural) in named and each.structural is None
        ]
        return iter(sorted(found, key=lambda each: (each.group, each.version, each.kind)))


def new_controller(context: ControllerContext) -> PolicyTypeCheckingController:
    return PolicyTypeCheckingController(
        context.table(STORAGE_KEY, PolicyView), registry=context.registry
    )


def _named(rule: Object) -> Iterator[tuple[str, str, str]]:
    """Yield what a rule is about; nothing if it is about any group or version."""
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    resources = [
        resource for resource in rule.get("resources") or () if not {"*", "/"} & set(resource)
    ]
    if any("*" in each for each in (*groups, *versions)):
        return iter(())
    return product(groups, versions, resources)


def _check(source: str, kinds: list[ResourceType]) -> str:
    """Return what is wrong with an expression about objects of *kinds*, empty if nothing."""
    from berth.cluster.controllers.expression_fields import undefined_fields
    from berth.kube.cel import ast  # here, for who has no policies does not need CEL

    checked = ast.decode(compiled(source).serialize())
    told = []
    for kind in kinds:
        scope = {"object": kind.schema, "oldObject": kind.schema}
        errors = undefined_fields(source, checked, scope)
        if errors:
            told.append(f"{kind.group_version}, Kind={kind.kind}: " + "\n".join(errors))
    return "\n".join(told)
