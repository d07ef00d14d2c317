"""Which resource, namespace, name and subresource a URL means."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.cluster import errors
from app.cluster.resources import ResourceType

NAMESPACES = "namespaces"
EVICTION = "eviction"
"""Refused, and not announced, so that ``kubectl drain`` deletes instead; but not unknown: to those
who evict, a 404 means that the pod is gone."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about."""

    resource: ResourceType
    namespace: str = ""
    """Empty: cluster-scoped, or all namespaces."""
    name: str = ""
    """Empty: the collection."""
    subresource: str = ""


class Paths:
    """Reads URLs of the resources that are served."""

    def __init__(self, resources: Iterable[ResourceType]) -> None:
        self._resources = {(each.path, each.plural): each for each in resources}

    def target(self, path: str) -> Target:
        """Return what ``/api/v1/...`` or ``/apis/group/version/...`` means, or raise a 404."""
        segments = path.strip("/").split("/")
        depth = 2 if segments[0] == "api" else 3
        prefix, rest = "/" + "/".join(segments[:depth]), segments[depth:]
        if not rest or not all(rest):
            raise errors.path_not_found()
        namespace = ""
        if rest[0] == NAMESPACES and len(rest) > 2 and rest[2] not in self._below(prefix):
            namespace, rest = rest[1], rest[2:]
        resource = self._resources.get((prefix, rest[0]))
        if resource is None or len(rest) > 3:
            raise errors.path_not_found()
        name, subresource = (*rest[1:], "", "")[:2]
        if bool(namespace) > resource.namespaced or (
            resource.namespaced and name and not namespace
        ):
            raise errors.path_not_found()
        if subresource not in ("", EVICTION, *resource.subresources):
            raise errors.path_not_found()
        return Target(resource, namespace, name, subresource)

    def _below(self, prefix: str) -> tuple[str, ...]:
        """Return the subresources of namespaces, which look like a kind inside one."""
        resource = self._resources.get((prefix, NAMESPACES))
        return resource.subresources if resource else ()
