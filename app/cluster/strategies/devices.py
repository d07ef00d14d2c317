"""Claims of devices, their templates, the classes that they name, and the devices of drivers.

What a real server checks of CEL expressions, device names and counters is not checked here.
"""

from app.cluster.resources import FieldError, Object
from app.cluster.strategies import field_errors, plain

EXACT_COUNT = "ExactCount"


def _default_claim(spec: Object) -> None:
    devices = spec.get("devices") or {}
    for request in devices.get("requests") or ():
        for each in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if each is not None:
                each.setdefault("allocationMode", EXACT_COUNT)
                if each["allocationMode"] == EXACT_COUNT:
                    each.setdefault("count", 1)


def _default_template(spec: Object) -> None:
    _default_claim(spec.get("spec") or {})


def _check_claim(spec: Object) -> list[FieldError]:
    errors = []
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        path = f"spec.devices.requests[{index}]"
        if not request.get("name"):
            errors.append(field_errors.required(f"{path}.name"))
        if not request.get("exactly") and not request.get("firstAvailable"):
            detail = "exactly one of `exactly` or `firstAvailable` is required"
            errors.append(field_errors.required(path, detail))
        elif request.get("exactly") and not request["exactly"].get("deviceClassName"):
            errors.append(field_errors.required(f"{path}.exactly.deviceClassName"))
    return errors


def _check_slice(spec: Object) -> list[FieldError]:
    errors = [field_errors.required("spec.driver")] if not spec.get("driver") else []
    if not (spec.get("pool") or {}).get("name"):
        errors.append(field_errors.required("spec.pool.name"))
    return errors


RESOURCE_CLAIM = plain.of_spec(
    namespaced=True,
    default=_default_claim,
    check=_check_claim,
    check_update=plain.immutable,
    status={},
)
RESOURCE_CLAIM_TEMPLATE = plain.of_spec(
    namespaced=True, default=_default_template, check_update=plain.immutable
)
DEVICE_CLASS = plain.of_spec(namespaced=False, generation=True)
RESOURCE_SLICE = plain.of_spec(namespaced=False, check=_check_slice, generation=True)
