"""The object types and kinds that a server has from the start, read from the data files.

There is a file for each release of Kubernetes. It is read when the first kind of that release is
asked for, some milliseconds; the fields of an object type are made when somebody looks at them.
Who names no release is about what the latest one has.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from berth.cluster.schemas.types import ABSENT, Field, ListOf, MapOf, Scalar, Schema, Type
from berth.runtime.release import RELEASE

DESCRIPTIONS = "descriptions.json.gz"
"""Of the object types of all releases."""
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
JSON_SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class SubresourceData(NamedTuple):
    """A subresource as discovery announces it."""

    name: str
    verbs: tuple[str, ...]
    group: str
    """Of what it speaks; with an empty version: as the resource."""
    version: str
    kind: str


class ColumnData(NamedTuple):
    """A column of a table, without what is in its cells."""

    name: str
    type: str
    format: str
    priority: int
    description: str


class KindData(NamedTuple):
    """A kind as a server of this release serves it by default."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    subresources: tuple[SubresourceData, ...]
    columns: tuple[ColumnData, ...]


def kinds(release: str = RELEASE) -> tuple[KindData, ...]:
    """Return the kinds that a server of *release* serves by default."""
    data = _data(release)
    return tuple(
        _kind(path, each, data["columns"].get(path, ())) for path, each in data["resources"].items()
    )


def schema(name: str, release: str = RELEASE) -> Schema:
    """Return the object type of that full name; raises KeyError when there is none."""
    return _schema(name, release)


@cache
def _schema(name: str, release: str) -> Schema:
    data = _data(release)["schemas"][name]

    def fields() -> Mapping[str, Field]:
        return {field: _field(each, release) for field, each in data["fields"].items()}

    return Schema(name, fields, map_type=data.get("map_type", ""))


def schema_of(group: str, version: str, kind: str, release: str = RELEASE) -> Schema | None:
    """Return the object type of a kind; None when the API has none."""
    name = _by_kind(release).get((group, version, kind))
    return None if name is None else schema(name, release)


def meta(name: str) -> Schema:
    """Return an object type of ``meta/v1``: ``ObjectMeta``, ``DeleteOptions``."""
    return schema(META + name)


def description(name: str) -> str:
    """Return what an object type is; "" if nothing is said."""
    found: str = _descriptions()["types"].get(name, "")
    return found


def descriptions(name: str) -> Mapping[str, str]:
    """Return what the fields of an object type are for."""
    found: Mapping[str, str] = _descriptions()["fields"].get(name, {})
    return found


@cache
def _data(release: str) -> Any:
    return _read(f"kubernetes-{release}.json.gz")


@cache
def _descriptions() -> Any:
    return _read(DESCRIPTIONS)


@cache
def _by_kind(release: str) -> dict[tuple[str, str, str], str]:
    return {
        (group, version, kind): name
        for name, each in _data(release)["schemas"].items()
        for group, version, kind in each.get("kinds", ())
    }


def _read(name: str) -> Any:
    packed = files("berth.cluster.schemas").joinpath(name).read_bytes()
    return msgspec.json.decode(gzip.decompress(packed))


def _kind(path: str, data: Any, columns: Any) -> KindData:
    group, version, plural = path.split("/") if path.count("/") == 2 else ("", *path.split("/"))
    return KindData(
        group=group,
        version=version,
        kind=data["kind"],
        plural=plural,
        singular=data["singular"],
        namespaced=data["scope"] == "Namespaced",
        short_names=tuple(data["shortNames"]),
        categories=tuple(data["categories"]),
        verbs=tuple(data["verbs"]),
        subresources=tuple(
            SubresourceData(subresource["name"], tuple(subresource["verbs"]), **subresource["kind"])
            for subresource in data["subresources"]
        ),
        columns=tuple(ColumnData(**column) for column in columns),
    )


def _field(data: Any, release: str) -> Field:
    return Field(
        type=_type(data["type"], release),
        is_required=data.get("required", False),
        default=data.get("default"),
        enum=tuple(data.get("enum", ())),
        list_type=data.get("list_type", ""),
        list_keys=tuple(data.get("list_keys", ())),
        map_type=data.get("map_type", ""),
        patch_strategy=data.get("strategy", ""),
        merge_key=data.get("merge_key", ""),
        zero=data.get("zero", ABSENT),
        by_value=data.get("by_value", False),
        number=tuple(data.get("number", ())),
        go_type=data.get("go_type", ""),
        inside=data.get("inside", ""),
    )


def _type(text: str, release: str) -> Type:
    """Read a type as the compiler writes it."""
    if text.startswith("[]"):
        return ListOf(_type(text[2:], release))
    if text.startswith("map[]"):
        return MapOf(_type(text[5:], release))
    return schema(text, release) if "." in text else Scalar(text)
