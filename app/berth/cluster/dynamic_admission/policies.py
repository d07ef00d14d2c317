"""ValidatingAdmissionPolicies and their bindings, read and compiled.

Source: ``k8s.io/apiserver/pkg/admission/plugin/policy/validating``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from berth.cluster.dynamic_admission.conditions import NamedExpression
from berth.cluster.dynamic_admission.matching import CONFIGURATION_GROUP, Rule
from berth.cluster.storage.store import Stored
from berth.cluster.strategies.expressions import compiled
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import Shape

if TYPE_CHECKING:
    from berth.cel.expressions import Expression

POLICIES: Final = f"validatingadmissionpolicies.{CONFIGURATION_GROUP}"
BINDINGS: Final = f"validatingadmissionpolicybindings.{CONFIGURATION_GROUP}"


class ParamKind(Shape, frozen=True):
    api_version: str = ""
    kind: str = ""


class MatchResources(Shape, frozen=True):
    """Of a policy or a binding; without rules it is about everything."""

    resource_rules: list[Rule] | None = None
    exclude_resource_rules: list[Rule] | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None


class ParamRef(Shape, frozen=True):
    name: str | None = None
    namespace: str | None = None
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class BindingSpec(Shape, frozen=True):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: list[str] | None = None


class _Validation(Shape, frozen=True):
    expression: str = ""
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None


class _PolicySpec(Shape, frozen=True):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources = MatchResources()
    validations: list[_Validation] | None = None
    failure_policy: str | None = None
    match_conditions: list[NamedExpression] | None = None
    variables: list[NamedExpression] | None = None


class _Policy(Shape, frozen=True):
    spec: _PolicySpec = _PolicySpec()


class _Binding(Shape, frozen=True):
    spec: BindingSpec = BindingSpec()


@dataclass(frozen=True, slots=True)
class Validation:
    """One condition of a policy; its fields as there."""

    expression: "Expression"
    message: str
    message_expression: "Expression | None"
    reason: str


class Policy:
    """A policy with its expressions, compiled when they are needed for the first time.

    They compile: that is a condition of being stored.
    """

    def __init__(self, name: str, spec: _PolicySpec, bindings: Sequence[tuple[str, BindingSpec]]):
        self.name = name
        self.match = spec.match_constraints
        self.param_kind = spec.param_kind
        self.match_conditions = spec.match_conditions or ()
        self.fails_closed = spec.failure_policy != "Ignore"
        self.bindings = tuple(bindings)
        """With their names."""
        self._spec = spec

    @cached_property
    def variables(self) -> list[tuple[str, "Expression"]]:
        return [(each.name, compiled(each.expression)) for each in self._spec.variables or ()]

    @cached_property
    def validations(self) -> list[Validation]:
        return [
            Validation(
                compiled(each.expression),
                each.message or "",
                compiled(each.message_expression) if each.message_expression else None,
                each.reason or "Invalid",
            )
            for each in self._spec.validations or ()
        ]


def read_policies(policies: Sequence[Stored], bindings: Sequence[Stored]) -> list[Policy]:
    """Return the policies that something binds, in the order of their names."""
    bound: dict[str, list[tuple[str, BindingSpec]]] = {}
    for stored in bindings:
        spec = msgspec.json.decode(stored.body, type=_Binding).spec
        bound.setdefault(spec.policy_name, []).append((stored.name, spec))
    return [
        Policy(stored.name, msgspec.json.decode(stored.body, type=_Policy).spec, bound[stored.name])
        for stored in policies
        if stored.name in bound
    ]
