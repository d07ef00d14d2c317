"""Which resource, namespace, name and subresource a URL means."""

from typing import Final, NamedTuple

from berth.cluster import errors
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import ResourceType

NAMESPACES: Final = "namespaces"
WATCH: Final = "watch"
"""In front of what is watched, and what :class:`Target` has for subresource then."""
NAMESPACE_SUBRESOURCES: Final = frozenset({"finalize", "status"})
"""What looks like a kind inside a namespace, and is not."""


class ResourcePath(NamedTuple):
    """The parts of a URL below ``/api/v1`` or ``/apis/group/version``, whether or not served.

    As in the API server's RequestInfo, the namespace of a Namespace is itself.
    """

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    more: tuple[str, ...] = ()
    """Segments after the subresource."""
    is_watch: bool = False
    """Whether it is below ``/watch/``, as watches were asked for before there was ``?watch=``."""


def parse_path(path: str) -> ResourcePath | None:
    """Take a URL apart; None when it is not about resources."""
    segments = path.strip("/").split("/")
    if len(segments) >= 3 and segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    elif len(segments) >= 4 and segments[0] == "apis":
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return None
    is_watch = rest[0] == WATCH and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == NAMESPACES and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    more = tuple(rest[3:])
    return ResourcePath(group, version, resource, namespace, name, subresource, more, is_watch)


class Target(NamedTuple):
    """What a request is about."""

    resource: ResourceType
    namespace: str = ""
    """Empty: cluster-scoped, or all namespaces."""
    name: str = ""
    """Empty: the collection."""
    subresource: str = ""
    """One that the resource has, or refuses, or WATCH."""


class Paths:
    """Reads URLs of the resources that are served."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def target(self, path: str) -> Target:
        """Return what ``/api/v1/...`` or ``/apis/group/version/...`` means, or raise a 404."""
        parsed = parse_path(path) if is_below_version(path) and "//" not in path else None
        if parsed is None or parsed.more:
            raise errors.path_not_found()
        resource = self._registry.find(parsed.group, parsed.version, parsed.resource)
        if resource is None:
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
        elif parsed.is_watch or not (
            not subresource
            or subresource in resource.subresources
            or subresource in resource.refused_subresources
        ):
            raise errors.path_not_found()
        return Target(resource, namespace, name, subresource)


def is_below_version(path: str) -> bool:
    """Tell whether a path is about resources: longer than the URL of a group and version."""
    if not path.startswith(("/api/", "/apis/")):
        return False
    return path.rstrip("/").count("/") >= depth_of(path)


def depth_of(path: str) -> int:
    """Return how many segments (the first is empty) the prefix of group and version has."""
    return 3 if path.startswith("/api/") else 4
