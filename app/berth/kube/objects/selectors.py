"""Label selectors and node selectors, compiled once from what users write.

Two families share :class:`Requirement`. A :class:`Selector` is about labels (pods, namespaces,
services). A :class:`RequiredNodeAffinity` is about nodes: labels and, by field, the name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.names import is_label_value, is_qualified_name
from berth.kube.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec


class Operator(StrEnum):
    """How a requirement compares; ``GT`` and ``LT`` are for nodes and query strings only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(msgspec.Struct, frozen=True):
    """One condition on the value of *key* (spec §5, selector semantics).

    Made as written, without checks; :func:`check_requirement` says what the API would refuse.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether *value* will do; None where there is no such label."""
        operator = self.operator
        if operator is Operator.IN:
            return value in self.values
        if operator is Operator.NOT_IN:
            return value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        if value is None or len(self.values) != 1:
            return False
        number, bound = parse_int64(value), parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if operator is Operator.GT else number < bound


def check_requirement(requirement: Requirement) -> None:
    """Raise ``ValueError`` naming the part that no selector may have."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if not is_qualified_name(key):
        raise ValueError(f"key {key!r}: not a label key")
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                raise ValueError(f"values of {key!r}: {operator} needs at least one")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                raise ValueError(f"values of {key!r}: {operator} takes none, got {list(values)}")
        case Operator.GT | Operator.LT:
            if len(values) != 1 or parse_int64(values[0]) is None:
                raise ValueError(f"values of {key!r}: {operator} needs one integer")
    for value in values:
        if not is_label_value(value):
            raise ValueError(f"values of {key!r}: {value!r} is not a label value")


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled label selector: all requirements must hold.

    Equal content is equal and hashes alike, so a selector can be a key. Make one with
    :func:`compile_selector` and its neighbours, which put the requirements in canonical order.
    """

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False
    """Whether it comes from an absent selector, which matches nothing."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requirements, self.is_nothing)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything; ``NOTHING`` is not empty."""
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.is_nothing:
            return False
        for requirement in self.requirements:
            if not requirement.matches(labels.get(requirement.key)):
                return False
        return True

    def and_also(self, other: "Selector") -> "Selector":
        """Return the selector of what both match."""
        if self.is_nothing or other.is_nothing:
            return NOTHING
        return all_of((*self.requirements, *other.requirements))


_OF_LABELS: Final = frozenset(
    {Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST}
)
"""The operators of label selectors as objects write them."""

EVERYTHING: Final = Selector()
NOTHING: Final = Selector(is_nothing=True)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a selector as written: None is ``NOTHING``, ``{}`` matches everything (spec §5).

    Raises ``ValueError`` naming the part that cannot be.
    """
    if selector is None:
        return NOTHING
    requirements = [_equals(key, value) for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        if expression.operator not in _OF_LABELS:
            raise ValueError(f"{expression.operator!r} is not a valid label selector operator")
        operator = Operator(expression.operator)
        requirements.append(Requirement(expression.key, operator, expression.values))
    for requirement in requirements:
        check_requirement(requirement)
    return all_of(requirements)


def selector_from_map(labels: Mapping[str, str] | None) -> Selector:
    """Compile ``key: value`` pairs that must all be there, unchecked; no pairs match everything."""
    return all_of(_equals(key, value) for key, value in (labels or {}).items())


def _equals(key: str, value: str) -> Requirement:
    return Requirement(key, Operator.IN, (value,))


def all_of(requirements: Iterable[Requirement]) -> Selector:
    """Return the selector of what meets all *requirements*, which are not checked."""
    distinct = {Requirement(r.key, r.operator, tuple(sorted(set(r.values)))) for r in requirements}
    return Selector(tuple(sorted(distinct, key=lambda r: (r.key, r.operator, r.values))))


NAME_FIELD: Final = "metadata.name"
"""The one field that node selector terms can be about."""


class CompiledTerm(msgspec.Struct, frozen=True):
    """A node selector term: all of its label and field requirements must hold (spec §5.6)."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    """Requirements on ``metadata.name``, each with one value."""
    error: str = ""
    """What is wrong with the term as written; such a term matches no node."""

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        return (
            not self.error
            and all(requirement.matches(labels.get(requirement.key)) for requirement in self.labels)
            and all(requirement.matches(node_name) for requirement in self.fields)
        )


class NodeSelectorMatcher(msgspec.Struct, frozen=True):
    """A compiled node selector: any term will do, and without terms nothing matches (spec §5.6)."""

    terms: tuple[CompiledTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        return any(term.matches(labels, node_name) for term in self.terms)


class RequiredNodeAffinity(msgspec.Struct, frozen=True):
    """What a pod demands of its node: the nodeSelector and the required affinity (spec §5.6)."""

    selector: Selector = EVERYTHING
    affinity: NodeSelectorMatcher | None = None

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        return self.selector.matches(labels) and (
            self.affinity is None or self.affinity.matches(labels, node_name)
        )


def compile_node_selector_term(term: NodeSelectorTerm) -> CompiledTerm | None:
    """Compile *term*; None if it is empty and so to be left out, with ``error`` if it is wrong."""
    if not term.match_expressions and not term.match_fields:
        return None
    try:
        labels = tuple(_label_requirement(written) for written in term.match_expressions)
        fields = tuple(_field_requirement(written) for written in term.match_fields)
    except ValueError as exc:
        return CompiledTerm(error=str(exc))
    return CompiledTerm(labels, fields)


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    compiled = map(compile_node_selector_term, selector.node_selector_terms)
    return NodeSelectorMatcher(tuple(term for term in compiled if term is not None))


def required_node_affinity(spec: PodSpec) -> RequiredNodeAffinity | None:
    """Return what *spec* demands of a node, None if any node will do."""
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required if node_affinity else None
    if not spec.node_selector and required is None:
        return None
    return RequiredNodeAffinity(
        selector=selector_from_map(spec.node_selector),
        affinity=None if required is None else compile_node_selector(required),
    )


def _label_requirement(written: NodeSelectorRequirement) -> Requirement:
    requirement = Requirement(written.key, _operator(written), written.values)
    check_requirement(requirement)
    return requirement


def _field_requirement(written: NodeSelectorRequirement) -> Requirement:
    operator = _operator(written)
    if written.key != NAME_FIELD:
        raise ValueError(f"field {written.key!r}: only {NAME_FIELD} can be selected by")
    if operator not in (Operator.IN, Operator.NOT_IN) or len(written.values) != 1:
        raise ValueError(f"field {NAME_FIELD}: want In or NotIn with one value")
    return Requirement(written.key, operator, written.values)


def _operator(written: NodeSelectorRequirement) -> Operator:
    try:
        return Operator(written.operator)
    except ValueError:
        raise ValueError(f"operator {written.operator!r} of {written.key!r}: unknown") from None


_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")


_CANONICAL: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


@lru_cache(maxsize=4096)
def parse_canonical_int64(text: str) -> int | None:
    """Return the number that *text* is as :class:`int` writes it, None if it is not an int64."""
    return parse_int64(text) if _CANONICAL.fullmatch(text) else None


@lru_cache(maxsize=4096)
def parse_int64(text: str) -> int | None:
    """Return the decimal number that *text* is, None if it is none or not an int64."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
