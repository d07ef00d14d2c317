"""NetworkPolicies: no traffic flows here, but what users apply is taken."""

import msgspec

from berth.cluster.resources import Object
from berth.cluster.strategies import selectors
from berth.cluster.strategies.selectors import LabelSelector
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

TYPES = ("Ingress", "Egress")


def default(obj: Object) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in (rule or {}).get("ports") or ():
            port.setdefault("protocol", "TCP")


def check(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    selector = msgspec.convert(spec.get("podSelector") or {}, LabelSelector)
    errors = selectors.validate(selector, "spec.podSelector")
    for index, each in enumerate(spec.get("policyTypes") or ()):
        if each not in TYPES:
            path = f"spec.policyTypes[{index}]"
            errors.append(field_errors.not_supported(path, str(each), TYPES))
    return errors
