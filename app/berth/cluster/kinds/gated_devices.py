"""Devices as a server has them with feature gates that are off by default.

The fields of DeviceTaintRule and their numbers are those of
``k8s.io/api/resource/v1alpha3/generated.proto``; that v1beta2 has the same numbers is a guess.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from berth.cluster.columns.cells import COMMON
from berth.cluster.kinds.builtin import resources
from berth.cluster.kinds.fields import field_of, kind_of, text
from berth.cluster.resources import Column, ResourceType, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, Schema
from berth.cluster.strategies import devices, resource_slices
from berth.cluster.strategies.by_schema import of_schema
from berth.kube.cel.features import LIST_TYPE_ATTRIBUTES

GROUP: Final = "resource.k8s.io"
TYPES: Final = "io.k8s.api.resource.v1beta2."

_STRATEGIES: Final = {
    "deviceclasses": devices.device_class,
    "resourceclaims": devices.resource_claim,
    "resourceclaimtemplates": devices.resource_claim_template,
    "resourceslices": resource_slices.resource_slice,
}


def changed_device_kinds(features: Collection[str], release: str) -> Iterator[ResourceType]:
    """Yield the kinds that a server with *features* on has instead of its own."""
    if LIST_TYPE_ATTRIBUTES in features or resource_slices.NODE_ALLOCATABLE_RESOURCES in features:
        for kind in resources(release):
            if kind.group == GROUP and kind.plural in _STRATEGIES:
                yield replace(kind, strategy=_STRATEGIES[kind.plural](features, release))


def _type(name: str, /, **fields: Field) -> Schema:
    return Schema(TYPES + name, lambda: fields)


def device_taint_rules() -> ResourceType:
    """Return DeviceTaintRules as Kubernetes 1.36 has them with the gate on."""
    taint = _type("DeviceTaint", **builtin.schema("io.k8s.api.resource.v1.DeviceTaint").fields)
    selector = _type("DeviceTaintSelector", driver=text(2), pool=text(3), device=text(4))
    spec = _type(
        "DeviceTaintRuleSpec",
        deviceSelector=field_of(1, selector),
        taint=field_of(2, taint, is_required=True),
    )
    conditions = field_of(1, ListOf(builtin.meta("Condition")), keys="type")
    schema = kind_of(
        TYPES + "DeviceTaintRule",
        spec=field_of(2, spec, is_required=True),
        status=field_of(3, _type("DeviceTaintRuleStatus", conditions=conditions)),
    )
    return ResourceType(
        group=GROUP,
        version="v1beta2",
        kind="DeviceTaintRule",
        plural="devicetaintrules",
        singular="devicetaintrule",
        namespaced=False,
        schema=schema,
        subresources={"status": Subresource("status", ("get", "patch", "update"))},
        strategy=of_schema(
            schema,
            namespaced=False,
            status=True,
            generation=True,
        ),
        columns=(
            Column("Name", "string", COMMON["Name"], "name"),
            Column("Age", "string", COMMON["Age"]),
        ),
    )
