"""Admission policies and their bindings, as they are stored."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from berth.cluster.dynamic_admission.conditions import NamedExpression
from berth.cluster.dynamic_admission.matching import CONFIGURATION_GROUP, Rule
from berth.cluster.reading import readable
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies.selectors import LabelSelector
from berth.kube.objects.meta import KubeStruct

VALIDATING: Final = (
    f"validatingadmissionpolicies.{CONFIGURATION_GROUP}",
    f"validatingadmissionpolicybindings.{CONFIGURATION_GROUP}",
)
MUTATING: Final = (
    f"mutatingadmissionpolicies.{CONFIGURATION_GROUP}",
    f"mutatingadmissionpolicybindings.{CONFIGURATION_GROUP}",
)
"""Where the store keeps policies, and their bindings."""


class ParamKind(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""


class MatchResources(KubeStruct, frozen=True):
    """Of a policy or a binding; without rules it is about everything."""

    resource_rules: list[Rule] | None = None
    exclude_resource_rules: list[Rule] | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None


class ParamRef(KubeStruct, frozen=True):
    name: str | None = None
    namespace: str | None = None
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class BindingSpec(KubeStruct, frozen=True):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: list[str] | None = None


class Validation(KubeStruct, frozen=True):
    """A condition that objects must meet."""

    expression: str = ""
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None


class _Written(KubeStruct, frozen=True):
    expression: str = ""


class Mutation(KubeStruct, frozen=True):
    """A change of objects: of the two, that which ``patch_type`` names."""

    patch_type: str = ""
    apply_configuration: _Written | None = None
    json_patch: _Written | None = None


class PolicySpec(KubeStruct, frozen=True):
    """Of a ValidatingAdmissionPolicy, or, with mutations, of a MutatingAdmissionPolicy.

    Expressions compile: that is a condition of being stored.
    """

    param_kind: ParamKind | None = None
    match_constraints: MatchResources = MatchResources()
    validations: list[Validation] | None = None
    mutations: list[Mutation] | None = None
    failure_policy: str | None = None
    match_conditions: list[NamedExpression] | None = None
    variables: list[NamedExpression] | None = None
    reinvocation_policy: str | None = None

    @property
    def fails_closed(self) -> bool:
        return self.failure_policy != "Ignore"


class _Policy(KubeStruct, frozen=True):
    spec: PolicySpec = PolicySpec()


class _Binding(KubeStruct, frozen=True):
    spec: BindingSpec = BindingSpec()


class Policy(NamedTuple):
    """A policy, and what binds it."""

    name: str
    spec: PolicySpec
    bindings: Sequence[tuple[str, BindingSpec]]
    """With their names."""


def read_policies(policies: Sequence[Stored], bindings: Sequence[Stored]) -> list[Policy]:
    """Return the policies that something binds, in the order of their names."""
    bound: dict[str, list[tuple[str, BindingSpec]]] = {}
    for stored, binding in readable(bindings, _read_binding, "policy bindings"):
        spec = binding.spec
        bound.setdefault(spec.policy_name, []).append((stored.name, spec))
    return [
        Policy(stored.name, policy.spec, bound[stored.name])
        for stored, policy in readable(policies, _read_policy, "policies")
        if stored.name in bound
    ]


_read_binding = msgspec.json.Decoder(_Binding).decode
_read_policy = msgspec.json.Decoder(_Policy).decode
