"""The constraints of all kinds, read from ``constraints.json`` when they are first asked for.

The file has parts, with object types, of each type its fields, and of each field its rules, in the
order in which upstream evaluates them. Rules are written as calls with literals: of the functions
of the part's own module (:data:`PARTS`), or of those that all share (:data:`COMMON`). A type is
written without ``io.k8s.api.``, and the empty field is the object itself. The sentences are those
that a real API server was recorded to answer with, where there is a recording.
"""

import ast
from collections import ChainMap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from berth.cluster.data import read
from berth.cluster.strategies import (
    autoscaling_validation,
    certificates,
    constraints,
    job_policies,
    kind_constraints,
    metadata,
    pod_constraints,
    quantities,
    quotas,
    rbac,
    selectors,
    service_constraints,
    syntax,
    workload_constraints,
)
from berth.cluster.strategies.constraints import Constraints, Rules, Table
from berth.cluster.strategies.device_constraints import DEVICE_TABLE
from berth.cluster.strategies.pod_groups import POD_GROUP_TABLE
from berth.cluster.strategies.pod_groups_beta import GROUP_TABLE

PARTS: Final[Mapping[str, ModuleType]] = {
    "pods": pod_constraints,
    "services": service_constraints,
    "workloads": workload_constraints,
    "rbac": rbac,
    "autoscaling": autoscaling_validation,
    "certificates": certificates,
    "quotas": quotas,
    "others": kind_constraints,
}
COMMON: Final = (constraints, syntax, quantities, selectors, pod_constraints)
_MODULES: Final = {"job_policies": job_policies, "metadata": metadata, "quantities": quantities}


class RecordedTable(Mapping[str, Mapping[str, Rules]]):
    """The table in ``constraints.json``; the rules of a type are made when it is looked up."""

    def __init__(self) -> None:
        kind = dict[str, dict[str, dict[str, str]]]
        parts = read("berth.cluster.strategies", "constraints.json", kind)
        self._texts = {name: (part, parts[part][name]) for part in parts for name in parts[part]}
        self._rules: dict[str, Mapping[str, Rules]] = {}

    def __getitem__(self, name: str) -> Mapping[str, Rules]:
        if (rules := self._rules.get(name)) is None:
            part, fields = self._texts[name]
            known: Mapping[str, Any] = ChainMap(vars(PARTS[part]), *map(vars, COMMON), _MODULES)
            rules = {field: rules_of(text, known) for field, text in fields.items()}
            self._rules[name] = rules
        return rules

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def rules_of(text: str, known: Mapping[str, Any]) -> Rules:
    """Return the rules in *text*, with commas between; KeyError for a name that is not *known*."""
    listed = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(listed, ast.List)
    return tuple(_value(node, known) for node in listed.elts)


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            return known[name]
        case ast.Attribute(owner, name):
            return getattr(_value(owner, known), name)
        case ast.Call(function, arguments, keywords):
            named = {str(each.arg): _value(each.value, known) for each in keywords}
            return _value(function, known)(*(_value(each, known) for each in arguments), **named)
    return ast.literal_eval(node)


TABLE: Final[Table] = ChainMap(
    {**POD_GROUP_TABLE, **GROUP_TABLE, **DEVICE_TABLE},
    RecordedTable(),  # type: ignore[arg-type]
)
CONSTRAINTS: Final = Constraints(TABLE)
