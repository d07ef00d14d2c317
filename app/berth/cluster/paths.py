"""Which resource, namespace, name and subresource a URL means."""

from collections.abc import Iterable
from typing import NamedTuple

from berth.cluster import errors
from berth.cluster.resources import ResourceType

NAMESPACES = "namespaces"


class Target(NamedTuple):
    """What a request is about."""

    resource: ResourceType
    namespace: str = ""
    """Empty: cluster-scoped, or all namespaces."""
    name: str = ""
    """Empty: the collection."""
    subresource: str = ""
    """One that the resource has, or refuses."""


class Paths:
    """Reads URLs of the resources that are served."""

    def __init__(self, resources: Iterable[ResourceType]) -> None:
        self._resources: dict[str, dict[str, ResourceType]] = {}
        """By prefix of group and version, then by plural."""
        for each in resources:
            self._resources.setdefault(each.path, {})[each.plural] = each

    def target(self, path: str) -> Target:
        """Return what ``/api/v1/...`` or ``/apis/group/version/...`` means, or raise a 404."""
        segments = path.rstrip("/").split("/")
        depth = depth_of(path)
        served = self._resources.get("/".join(segments[:depth]))
        rest = segments[depth:]
        if served is None or not rest or not all(rest):
            raise errors.path_not_found()
        namespace = ""
        if len(rest) > 2 and rest[0] == NAMESPACES and not _is_below_namespace(served, rest[2]):
            namespace, rest = rest[1], rest[2:]
        resource = served.get(rest[0])
        if resource is None or len(rest) > 3:
            raise errors.path_not_found()
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if bool(namespace) > resource.namespaced or (
            resource.namespaced and name and not namespace
        ):
            raise errors.path_not_found()
        if subresource and not (
            subresource in resource.subresources or subresource in resource.refused_subresources
        ):
            raise errors.path_not_found()
        return Target(resource, namespace, name, subresource)


def depth_of(path: str) -> int:
    """Return how many segments (the first is empty) the prefix of group and version has."""
    return 3 if path.startswith("/api/") else 4


def is_below_version(path: str) -> bool:
    """Tell whether a path is about resources: longer than the URL of a group and version."""
    return path.startswith(("/api/", "/apis/")) and path.count("/") >= depth_of(path)


def _is_below_namespace(served: dict[str, ResourceType], name: str) -> bool:
    """Tell whether *name* is a subresource of namespaces, which looks like a kind inside one."""
    namespaces = served.get(NAMESPACES)
    return namespaces is not None and name in namespaces.subresources
