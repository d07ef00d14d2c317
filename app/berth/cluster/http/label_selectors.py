"""The ``labelSelector`` of requests: refused in kube-apiserver's words."""

from berth.cluster.strategies.syntax import label_value, qualified_name
from berth.kube.field_errors import invalid
from berth.kube.objects.selector_text import read_requirements
from berth.kube.objects.selectors import Operator, Requirement, Selector, all_of, parse_int64


def parse_label_selector(text: str) -> Selector:
    """Compile the ``labelSelector`` of a query. Raises ValueError as ``labels.Parse`` does."""
    return all_of(read_requirements(text, check_key=_check_key, check_values=_check_values))


def _check_key(key: str) -> None:
    if wrong := qualified_name(key):
        raise ValueError(str(invalid("key", key, "; ".join(wrong))))


def _check_values(requirement: Requirement) -> None:
    key, values, found = requirement.key, requirement.values, []
    if requirement.operator in (Operator.GT, Operator.LT):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        found += [invalid("values[0]", each, why) for each in values if parse_int64(each) is None]
    for index, value in enumerate(sorted(set(values))):
        if wrong := label_value(value):
            found.append(invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    if found:
        told = ", ".join(map(str, found))
        raise ValueError(told if len(found) == 1 else f"[{told}]")
