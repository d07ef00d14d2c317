"""Resources in URLs, whether or not they are served."""

from functools import lru_cache
from typing import Final, NamedTuple

NAMESPACES: Final = "namespaces"
WATCH: Final = "watch"
"""In front of what is watched."""

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


@lru_cache(maxsize=1_000)  # who authorizes and who routes ask the same; nodes, again and again
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
