"""The resource, namespace, name and subresource of a URL."""

from typing import NamedTuple

from berth.cluster import errors
from berth.cluster.kinds.registry import Registry
from berth.cluster.resource_paths import NAMESPACES, WATCH, parse_path
from berth.cluster.resources import ResourceType

PROXY = "proxy"


class Target(NamedTuple):
    """What a request is about."""

    resource: ResourceType
    namespace: str = ""
    """Empty: cluster-scoped, or all namespaces."""
    name: str = ""
    """Empty: the collection."""
    subresource: str = ""
    """One that the resource has, or WATCH where the path has it in front."""


class Paths:
    """Reads URLs of the resources that are served."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def target(self, path: str) -> Target:
        """Return what ``/api/v1/...`` or ``/apis/group/version/...`` means, or raise a 404."""
        parsed = parse_path(path)
        if parsed is None:
            raise errors.NothingThereError
        resource = self._registry.find(parsed.group, parsed.version, parsed.resource)
        if resource is None and not self._registry.serves(parsed.group, parsed.version):
            raise errors.NothingThereError
        # What is after a proxy is somebody else's path.
        is_too_long = parsed.subresource != PROXY and (parsed.more or "//" in path)
        if resource is None or is_too_long:
            raise errors.path_not_found()
        namespace, name, subresource = parsed.namespace, parsed.name, parsed.subresource
        if parsed.resource == NAMESPACES and parsed.namespace == parsed.name:
            namespace = ""
        if bool(namespace) > resource.namespaced or (
            resource.namespaced and name and not namespace
        ):
            raise errors.path_not_found()
        if parsed.is_watch and not subresource:
            subresource = WATCH
        elif parsed.is_watch or not (not subresource or subresource in resource.subresources):
            raise errors.path_not_found()
        return Target(resource, namespace, name, subresource)


def is_below_version(path: str) -> bool:
    """Tell whether a path is about resources: longer than the URL of a group and version."""
    if path.startswith("/api/"):
        return path.rstrip("/").count("/") >= len(("", "api", "version"))
    if path.startswith("/apis/"):
        return path.rstrip("/").count("/") >= len(("", "apis", "group", "version"))
    return False
