"""Affinity of pods: node affinity, pod (anti)affinity, spread constraints."""

from collections.abc import Sequence

import msgspec

from berth.cluster.strategies import metadata, selectors, syntax
from berth.cluster.strategies.selectors import LabelSelector, Requirement
from berth.cluster.strategies.shape import Int32, Shape
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class NodeSelectorTerm(Shape, frozen=True):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Shape, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Shape, frozen=True):
    weight: Int32 | None = None
    preference: NodeSelectorTerm | None = None


class NodeAffinity(Shape, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(default=None, name=PREFERRED)


class PodAffinityTerm(Shape, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Shape, frozen=True):
    weight: Int32 | None = None
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(Shape, frozen=True):
    """Of affinity and of anti-affinity."""

    required: list[PodAffinityTerm] | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(default=None, name=PREFERRED)


class Affinity(Shape, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Shape, frozen=True):
    max_skew: Int32 | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


def validate_affinity(affinity: Affinity | None, path: str) -> list[FieldError]:
    if affinity is None:
        return []
    errors = []
    if affinity.node_affinity is not None:
        errors += _validate_node_affinity(affinity.node_affinity, f"{path}.nodeAffinity")
    for field, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if terms is not None:
            errors += _validate_pod_affinity(terms, f"{path}.{field}")
    return errors


def validate_spread(constraints: Sequence[TopologySpreadConstraint], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        errors += _validate_constraint(constraint, here)
        pair = (constraint.topology_key or "", constraint.when_unsatisfiable or "")
        if pair in seen:
            field = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(field_errors.duplicate(field, f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def _validate_node_affinity(affinity: NodeAffinity, path: str) -> list[FieldError]:
    errors = []
    if affinity.required is not None:
        here = f"{path}.{REQUIRED}.nodeSelectorTerms"
        terms = affinity.required.node_selector_terms or []
        if not terms:
            errors.append(field_errors.required(here, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            errors += _validate_node_selector_term(term, f"{here}[{index}]")
    for index, preferred in enumerate(affinity.preferred or []):
        here = f"{path}.{PREFERRED}[{index}]"
        errors += _validate_weight(preferred.weight, here)
        if preferred.preference is not None:
            errors += _validate_node_selector_term(preferred.preference, f"{here}.preference")
    return errors


def _validate_node_selector_term(term: NodeSelectorTerm, path: str) -> list[FieldError]:
    errors = []
    for index, requirement in enumerate(term.match_expressions or []):
        here = f"{path}.matchExpressions[{index}]"
        errors += selectors.validate_values(requirement, here)
        if requirement.operator not in NODE_OPERATORS:
            errors.append(_not_an_operator(requirement, here))
        key = requirement.key or ""
        errors += [
            field_errors.invalid(f"{here}.key", key, text) for text in syntax.qualified_name(key)
        ]
    for index, requirement in enumerate(term.match_fields or []):
        errors += _validate_match_field(requirement, f"{path}.matchFields[{index}]")
    return errors


def _validate_match_field(requirement: Requirement, path: str) -> list[FieldError]:
    errors = []
    if requirement.operator not in ("In", "NotIn"):
        errors.append(_not_an_operator(requirement, path))
    elif len(requirement.values or []) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(field_errors.required(f"{path}.values", detail))
    if requirement.key != "metadata.name":
        detail = "not a valid field selector key"
        errors.append(field_errors.invalid(f"{path}.key", requirement.key or "", detail))
        return errors
    for index, value in enumerate(requirement.values or []):
        errors += [
            field_errors.invalid(f"{path}.values[{index}]", value, text)
            for text in syntax.dns1123_subdomain(value)
        ]
    return errors


def _not_an_operator(requirement: Requirement, path: str) -> FieldError:
    operator = requirement.operator or ""
    return field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator")


def _validate_pod_affinity(affinity: PodAffinity, path: str) -> list[FieldError]:
    errors = []
    for index, term in enumerate(affinity.required or []):
        errors += _validate_pod_affinity_term(term, f"{path}.{REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred or []):
        here = f"{path}.{PREFERRED}[{index}]"
        errors += _validate_weight(weighted.weight, here)
        errors += _validate_pod_affinity_term(
            weighted.pod_affinity_term or PodAffinityTerm(), f"{here}.podAffinityTerm"
        )
    return errors


def _validate_pod_affinity_term(term: PodAffinityTerm, path: str) -> list[FieldError]:
    errors = selectors.validate(term.label_selector, f"{path}.labelSelector")
    errors += selectors.validate(term.namespace_selector, f"{path}.namespaceSelector")
    for name in term.namespaces or []:
        errors += [
            field_errors.invalid(f"{path}.namespace", name, text)
            for text in syntax.dns1123_label(name)
        ]
    errors += _validate_topology_key(term.topology_key, path)
    for field, keys in (
        ("matchLabelKeys", term.match_label_keys),
        ("mismatchLabelKeys", term.mismatch_label_keys),
    ):
        errors += _validate_label_keys(keys, term.label_selector, f"{path}.{field}")
    both = set(term.match_label_keys or []) & set(term.mismatch_label_keys or [])
    errors += [
        field_errors.invalid(
            f"{path}.matchLabelKeys[{index}]",
            key,
            "exists in both matchLabelKeys and mismatchLabelKeys",
        )
        for index, key in enumerate(term.match_label_keys or [])
        if key in both
    ]
    return errors


def _validate_weight(weight: int | None, path: str) -> list[FieldError]:
    if weight is not None and 1 <= weight <= 100:
        return []
    return [field_errors.invalid(f"{path}.weight", weight or 0, "must be in the range 1-100")]


def _validate_topology_key(key: str | None, path: str) -> list[FieldError]:
    if not key:
        return [field_errors.required(f"{path}.topologyKey", "can not be empty")]
    return [
        field_errors.invalid(f"{path}.topologyKey", key, text)
        for text in syntax.qualified_name(key)
    ]


def _validate_label_keys(
    keys: list[str] | None, selector: LabelSelector | None, path: str
) -> list[FieldError]:
    if keys and selector is None:
        detail = "must not be specified when labelSelector is not set"
        return [field_errors.forbidden(path, detail)]
    errors = []
    for index, key in enumerate(keys or []):
        errors += metadata.validate_labels({key: ""}, f"{path}[{index}]")
    return errors


def _validate_constraint(constraint: TopologySpreadConstraint, path: str) -> list[FieldError]:
    errors = []
    if (constraint.max_skew or 0) <= 0:
        errors.append(_not_positive(constraint.max_skew, f"{path}.maxSkew"))
    errors += _validate_topology_key(constraint.topology_key, path)
    when = constraint.when_unsatisfiable or ""
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = ("DoNotSchedule", "ScheduleAnyway")
        errors.append(field_errors.not_supported(f"{path}.whenUnsatisfiable", when, supported))
    if constraint.min_domains is not None:
        if constraint.min_domains <= 0:
            errors.append(_not_positive(constraint.min_domains, f"{path}.minDomains"))
        if when != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            errors.append(
                field_errors.invalid(f"{path}.minDomains", constraint.min_domains, detail)
            )
    for field, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy is not None and policy not in ("Honor", "Ignore"):
            errors.append(
                field_errors.not_supported(f"{path}.{field}", policy, ("Honor", "Ignore"))
            )
    errors += selectors.validate(constraint.label_selector, f"{path}.labelSelector")
    return errors + _validate_label_keys(
        constraint.match_label_keys, constraint.label_selector, f"{path}.matchLabelKeys"
    )


def _not_positive(value: int | None, path: str) -> FieldError:
    return field_errors.invalid(path, value or 0, "must be greater than zero")
