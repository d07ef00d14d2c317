"""Kinds, selectors and paths as scenario files write them, checked when the file is read."""

from typing import Annotated, Final

from pydantic import AfterValidator

from berth.cluster.json_path import JsonPath
from berth.cluster.kinds.builtin import STORED
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.resources import ResourceType
from berth.kube.objects.quantity import parse
from berth.kube.objects.selector_text import parse_label_selector
from berth.runtime.release import RELEASE
from berth.scheduler.config.kube_features import FEATURE_GATES

_BY_KIND: Final[dict[str, ResourceType]] = {}
for _resource in (*STORED, *gated_kinds(FEATURE_GATES[RELEASE])):
    if not _resource.is_view:
        _BY_KIND.setdefault(_resource.kind, _resource)


def resource_of(kind: str) -> ResourceType:
    """Return the resource of a kind that clusters have without definitions. Raises ValueError."""
    resource = _BY_KIND.get(kind)
    if resource is None:
        raise ValueError(f"kind {kind!r} is not built in; kinds are written as in manifests")
    return resource


def _kind(text: str) -> str:
    resource_of(text)
    return text


def _selector(text: str) -> str:
    parse_label_selector(text)
    return text


def _path(text: str) -> str:
    JsonPath(text)
    return text


def _quantity(text: str) -> str:
    parse(text)
    return text


KindName = Annotated[str, AfterValidator(_kind)]
"""A built-in kind, as in `Deployment`."""
LabelSelector = Annotated[str, AfterValidator(_selector)]
"""A label selector as kubectl takes it, as in `app=web,tier!=cache`; empty: everything."""
Path = Annotated[str, AfterValidator(_path)]
"""A JSONPath as kubectl takes it, as in `.status.conditions[?(@.type=="Ready")].status`."""
Amount = Annotated[str, AfterValidator(_quantity)]
"""A quantity, as in `500m` or `2Gi`."""
