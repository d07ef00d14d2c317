"""Defaults of objects beyond those that the schema says.

``defaults.json`` has them: object type without ``io.k8s.api.`` → field → value. A field that is
missing gets the value; for the empty field a function of this module fills in what depends on
others, before what is in the object gets its own. Source: ``SetDefaults_*`` of ``pkg/apis``.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, NamedTuple

from berth.cluster.data import read
from berth.cluster.resources import Object, section
from berth.cluster.schemas.types import Field, Schema, object_of, objects_in
from berth.kube.objects import pod_defaults
from berth.kube.objects.volume_defaults import default_source

ITSELF: Final = ""
RBAC: Final = "rbac.authorization.k8s.io"

Filling = Callable[[Object], None]


def fill_rolling(strategy: Object) -> None:
    if strategy["type"] == "RollingUpdate":
        section(strategy, "rollingUpdate")


def fill_claim_templates(spec: Object) -> None:
    for claim in spec.get("volumeClaimTemplates") or []:
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        section(claim, "status").setdefault("phase", "Pending")


def fill_event_times(event: Object) -> None:
    """Give the times that are not known as null, as API servers do.

    ``kubectl get events --sort-by=.lastTimestamp`` shows nothing where no event has that field.
    """
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)


def fill_namespace(namespace: Object) -> None:
    if name := section(namespace, "metadata").get("name"):
        section(namespace, "metadata", "labels")["kubernetes.io/metadata.name"] = name


def fill_node(node: Object) -> None:
    spec, status = section(node, "spec"), section(node, "status")
    if primary := spec.get("podCIDR"):  # of which the list is the newer form
        if (spec.get("podCIDRs") or [""])[0] != primary:
            spec["podCIDRs"] = [primary]
    elif ranges := spec.get("podCIDRs"):
        spec["podCIDR"] = ranges[0]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def fill_volume(volume: Object) -> None:
    spec = section(volume, "spec")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def fill_secret(secret: Object) -> None:
    """Keep what is written as plain text as bytes, like the rest."""
    if texts := secret.pop("stringData", None):
        encoded = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def fill_limits(item: Object) -> None:
    """A container's limit is what it gets when it asks for none, and so on downwards."""
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    if limits:
        item["default"] = limits
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if requests:
        item["defaultRequest"] = requests


def fill_network_policy(spec: Object) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def fill_subject(subject: Object) -> None:
    if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
        subject["apiGroup"] = RBAC


def fill_priority_level(spec: Object) -> None:
    if spec.get("type") == "Limited":
        section(spec, "limited")


def fill_limit_response(response: Object) -> None:
    if response["type"] == "Queue":
        section(response, "queuing")


def fill_scaling(behavior: Object) -> None:
    """Where there is a behavior, say what it does not say."""
    all_at_once = {"type": "Percent", "value": 100, "periodSeconds": 15}
    some = {"type": "Pods", "value": 4, "periodSeconds": 15}
    for direction, policies in (("scaleUp", [some, all_at_once]), ("scaleDown", [all_at_once])):
        rules = section(behavior, direction)
        if not rules.get("policies"):
            rules["policies"] = [dict(policy) for policy in policies]
    behavior["scaleUp"].setdefault("stabilizationWindowSeconds", 0)


def fill_device_count(request: Object) -> None:
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)


WHOLE: Final[Mapping[str, Filling]] = {"core.v1.PodSpec": pod_defaults.default_template}
"""Object types that one function fills in, with all that is in them."""

DEFAULTS: Final = read("berth.cluster.strategies", "defaults.json", dict[str, dict[str, Any]])


class _Plan(NamedTuple):
    """What is to be done with objects of a type."""

    values: tuple[tuple[str, Any, bool], ...]
    """Field, what it gets, and whether an empty value is as good as none."""
    fill: Filling | None
    below: tuple[tuple[str, Field], ...]
    """Fields that lead to others with defaults."""


def fill_defaults(schema: Schema, obj: Object) -> None:
    """Give the missing fields of *obj*, and of what is in it, their defaults."""
    values, fill, below = _plan(schema)
    for name, value, replaces_empty in values:
        if (given := obj.get(name)) is None or (replaces_empty and not given):
            obj[name] = deepcopy(value) if isinstance(value, dict | list) else value
    if fill is not None:
        fill(obj)
    for name, field in below:
        if (given := obj.get(name)) is not None:
            for inner, child, _ in objects_in(field.type, given):
                fill_defaults(inner, child)


@cache
def _plan(schema: Schema) -> _Plan:
    name = schema.name.removeprefix("io.k8s.api.")
    if name in WHOLE:
        return _Plan((), WHOLE[name], ())
    own = DEFAULTS.get(name, {})
    fields = schema.fields
    said = {field: each.default for field, each in fields.items() if each.default is not None}
    values = {**said, **{field: value for field, value in own.items() if field}}
    return _Plan(
        tuple((field, value, fields[field].by_value) for field, value in values.items()),
        globals()[own[ITSELF]] if ITSELF in own else None,
        tuple(
            (field, each)
            for field, each in fields.items()
            if _leads_to_defaults(object_of(each.type), {schema})
        ),
    )


def _leads_to_defaults(schema: Schema | None, seen: set[Schema]) -> bool:
    if schema is None or schema in seen:
        return False
    seen.add(schema)
    name = schema.name.removeprefix("io.k8s.api.")
    return (
        name in DEFAULTS
        or name in WHOLE
        or any(
            field.default is not None or _leads_to_defaults(object_of(field.type), seen)
            for field in schema.fields.values()
        )
    )
