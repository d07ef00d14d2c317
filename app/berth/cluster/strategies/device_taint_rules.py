"""DeviceTaintRules of ``resource.k8s.io/v1beta2`` (spec G15.1): a part of the constraint table."""

from typing import Final

from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import Table, at_most, enumerated, required, said, spelled

MAX_DRIVER_LENGTH: Final = 63
MAX_POOL_LENGTH: Final = 253
MAX_CONDITIONS: Final = 8


def _driver(name: str) -> list[str]:
    if len(name.encode(errors="replace")) > MAX_DRIVER_LENGTH:
        return [f"must be no more than {MAX_DRIVER_LENGTH} bytes"]
    return syntax.dns1123_subdomain(name)


def _pool(name: str) -> list[str]:
    """One or more subdomains, with slashes between."""
    if len(name.encode(errors="replace")) > MAX_POOL_LENGTH:
        return [f"must be no more than {MAX_POOL_LENGTH} bytes"]
    return [complaint for part in name.split("/") for complaint in syntax.dns1123_subdomain(part)]


TAINT_RULE_TABLE: Final[Table] = {
    "resource.v1beta2.DeviceTaintRuleSpec": {"deviceSelector": (), "taint": ()},
    "resource.v1beta2.DeviceTaintSelector": {
        "driver": (said(_driver),),
        "pool": (said(_pool),),
        "device": (said(syntax.dns1123_label),),
    },
    "resource.v1beta2.DeviceTaint": {
        "key": (spelled(syntax.qualified_name),),
        "value": (said(syntax.label_value),),
        "effect": (required(), enumerated("NoExecute", "NoSchedule", "None")),
    },
    "resource.v1beta2.DeviceTaintRuleStatus": {"conditions": (at_most(MAX_CONDITIONS),)},
}
