"""The kinds that a CustomResourceDefinition defines: one for each version that is served."""

from collections.abc import Callable
from typing import Any, Final

from berth.cluster import errors
from berth.cluster.custom import columns, defaulting, fields, pruning
from berth.cluster.custom.strategy import strategy_of
from berth.cluster.custom.versions import version_order
from berth.cluster.custom.walk import PRESERVES, Schema
from berth.cluster.json_path import JsonPath
from berth.cluster.resources import (
    VERBS,
    Object,
    ResourceType,
    ScalePaths,
    Subresource,
    same,
)

VERBS_WHILE_TERMINATING: Final = tuple(verb for verb in VERBS if verb != "create")
"""While the objects of a deleted definition are on their way out, none is made."""

ANYTHING: Final[Schema] = {"type": "object", PRESERVES: True}
"""What a definition without schema says; today's have one."""


def resource_types(definition: Object) -> list[ResourceType]:
    """Return what is served by a CustomResourceDefinition whose names are accepted."""
    return [
        _resource_type(definition, version)
        for version in definition["spec"]["versions"]
        if version.get("served")
    ]


def storage_type(definition: Object) -> ResourceType:
    """Return the version that objects are stored in, served or not."""
    versions = definition["spec"]["versions"]
    return _resource_type(
        definition, next(version for version in versions if version.get("storage"))
    )


def _resource_type(definition: Object, version: Any) -> ResourceType:
    spec = definition["spec"]
    names = definition["status"]["acceptedNames"]
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or ANYTHING
    namespaced = spec["scope"] == "Namespaced"
    declared = version.get("subresources") or {}
    scale = _scale_paths(declared.get("scale"))
    subresources = {}
    if scale is not None:
        subresources["scale"] = Subresource(
            "scale", group="autoscaling", version="v1", kind="Scale"
        )
    if declared.get("status") is not None:
        subresources["status"] = Subresource("status")
    group, kind = spec["group"], names["kind"]
    served_name = ".".join([*reversed(group.split(".")), version["name"], kind])
    is_storage = bool(version.get("storage"))
    shown = _from_storage(schema)
    if is_storage and len(spec["versions"]) == 1 and definition["metadata"].get("generation") == 1:
        shown = same  # as it was written, so it was pruned and defaulted
    convert: Callable[[Object], Object] = same if is_storage else _to_storage
    if not is_storage and spec["conversion"]["strategy"] == "Webhook":
        convert = shown = _not_converted(definition, kind)
    return ResourceType(
        group=group,
        version=version["name"],
        kind=kind,
        plural=names["plural"],
        singular=names.get("singular") or "",
        namespaced=namespaced,
        schema=fields.object_type(served_name, schema),
        structural=schema,
        deprecation=_deprecation(spec, version),
        storage_version=f"{group}/{_stored_version(spec)}",
        list_kind=names.get("listKind") or f"{kind}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=VERBS_WHILE_TERMINATING if is_terminating(definition) else VERBS,
        subresources=subresources,
        scale_paths=scale,
        needs_version=True,
        strategy=strategy_of(
            schema, namespaced=namespaced, status="status" in subresources, scale=scale
        ),
        columns=columns.columns(version.get("additionalPrinterColumns")),
        selectable_fields={
            field["jsonPath"].removeprefix("."): _selectable(field["jsonPath"])
            for field in version.get("selectableFields") or ()
        },
        to_storage=convert,
        from_storage=shown,
    )


def _deprecation(spec: Object, version: Object) -> str:
    """Return what is said to those who use a version that they should not (``crd_handler``)."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, name, kind = spec["group"], version["name"], spec["names"]["kind"]
    better = [
        each["name"]
        for each in spec["versions"]
        if each.get("served")
        and not each.get("deprecated")
        and version_order(each["name"]) < version_order(name)
    ]
    use = f"; use {group}/{min(better, key=version_order)} {kind}" if better else ""
    return f"{group}/{name} {kind} is deprecated{use}"


def is_terminating(definition: Object) -> bool:
    """Tell whether a definition is on its way out."""
    return "deletionTimestamp" in definition["metadata"]


def _stored_version(spec: Object) -> str:
    return str(next(version["name"] for version in spec["versions"] if version.get("storage")))


def _to_storage(obj: Object) -> Object:
    """Return the stored form: the version is not part of what is stored (conversion ``None``)."""
    return obj


def _from_storage(schema: Schema) -> Callable[[Object], Object]:
    """Return what shows a stored object in a version: it may have been written in another one."""

    def show(obj: Object) -> Object:
        pruning.prune(schema, obj)
        defaulting.default(schema, obj)
        return obj

    return show


def _not_converted(definition: Object, kind: str) -> Callable[[Object], Object]:
    """Return what refuses objects of a version that only a webhook can make of the stored ones."""
    spec = definition["spec"]
    group_version = f"{spec['group']}/{_stored_version(spec)}"
    text = (
        f"conversion webhook for {group_version}, Kind={kind} failed: conversion webhooks are not "
        f"called by the embedded cluster; use {group_version}"
    )

    def refuse(_obj: Object) -> Object:
        raise errors.internal(text)

    return refuse


def _scale_paths(declared: Any) -> ScalePaths | None:
    if declared is None:
        return None
    selector = declared.get("labelSelectorPath")
    return ScalePaths(
        JsonPath(declared["specReplicasPath"]),
        JsonPath(declared["statusReplicasPath"]),
        JsonPath(selector) if selector else None,
    )


def _selectable(path: str) -> Callable[[Object], str]:
    compiled = JsonPath(path)

    def value(obj: Object) -> str:
        found = compiled.first(obj)
        if isinstance(found, bool):
            return "true" if found else "false"
        return "" if found is None else str(found)

    return value
