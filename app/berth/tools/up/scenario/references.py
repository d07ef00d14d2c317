"""Kinds, selectors and paths as scenario files write them, checked when the file is read."""

from functools import cache
from typing import Annotated

from pydantic import AfterValidator

from berth.cluster.json_path import JsonPath
from berth.cluster.kinds.gated import served
from berth.cluster.resources import ResourceType
from berth.kube.objects.quantity import parse
from berth.kube.objects.selector_text import parse_label_selector
from berth.runtime.release import RELEASES
from berth.scheduler.config.kube_features import FEATURE_GATES


@cache
def _by_kind(release: str) -> dict[str, ResourceType]:
    found: dict[str, ResourceType] = {}
    for resource in served(FEATURE_GATES[release], release):
        if resource.is_stored and not resource.is_view:
            found.setdefault(resource.kind, resource)
    return found


def resource_of(kind: str, release: str) -> ResourceType:
    """Return the resource of a kind that clusters of a release have without definitions.

    Raises KeyError.
    """
    return _by_kind(release)[kind]


def _kind(text: str) -> str:
    if not any(text in _by_kind(release) for release in reversed(RELEASES)):
        raise ValueError(f"kind {text!r} is not built in; kinds are written as in manifests")
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


def _release(text: str) -> str:
    if text not in RELEASES:
        raise ValueError(f"{text!r} is not among the releases: {', '.join(RELEASES)}")
    return text


Release = Annotated[str, AfterValidator(_release)]
"""A release of Kubernetes, as in `1.37`."""
KindName = Annotated[str, AfterValidator(_kind)]
"""A built-in kind, as in `Deployment`."""
LabelSelector = Annotated[str, AfterValidator(_selector)]
"""A label selector as kubectl takes it, as in `app=web,tier!=cache`; empty: everything."""
Path = Annotated[str, AfterValidator(_path)]
"""A JSONPath as kubectl takes it, as in `.status.conditions[?(@.type=="Ready")].status`."""
Amount = Annotated[str, AfterValidator(_quantity)]
"""A quantity, as in `500m` or `2Gi`."""
