"""``matchConditions`` of webhooks and policies."""

from collections.abc import Iterable, Mapping
from typing import Any

from berth.cluster.strategies.expressions import compiled, environment
from berth.kube.objects.meta import KubeStruct


class NamedExpression(KubeStruct, frozen=True):
    """A match condition or a variable."""

    name: str = ""
    expression: str = ""


def are_met(conditions: Iterable[NamedExpression], values: Mapping[str, Any]) -> bool:
    """Tell whether all conditions are true of *values*; raise EvaluationError where one fails."""
    bound = environment().bind(values)
    return all(compiled(condition.expression).is_true(bound) for condition in conditions)
