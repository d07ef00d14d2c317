"""NetworkPolicies: no traffic flows here, but what users apply is taken."""

from typing import Any

import msgspec

from berth.cluster.resources import Object
from berth.cluster.strategies import plain, selectors
from berth.cluster.strategies.selectors import LabelSelector
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

TYPES = ("Ingress", "Egress")


def _default(spec: Object) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in _rules(spec):
        for port in _objects(rule.get("ports")):
            port.setdefault("protocol", "TCP")


def _check(spec: Object) -> list[FieldError]:
    try:
        selector = msgspec.convert(spec.get("podSelector") or {}, LabelSelector)
    except msgspec.ValidationError as exc:
        return [field_errors.invalid("spec.podSelector", spec["podSelector"], str(exc))]
    errors = selectors.validate(selector, "spec.podSelector")
    for index, each in enumerate(spec.get("policyTypes") or ()):
        if each not in TYPES:
            path = f"spec.policyTypes[{index}]"
            errors.append(field_errors.not_supported(path, str(each), TYPES))
    return errors


def _rules(spec: Object) -> list[Object]:
    return [*_objects(spec.get("ingress")), *_objects(spec.get("egress"))]


def _objects(value: Any) -> list[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


NETWORK_POLICY = plain.of_spec(namespaced=True, default=_default, check=_check, generation=True)
