"""Attributes of a request for authorization: verb, resource or path."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from berth.cluster.options import flag
from berth.cluster.resource_paths import parse_path

VERBS: Final = {
    "DELETE": "delete",
    "GET": "get",
    "HEAD": "get",
    "PATCH": "patch",
    "POST": "create",
    "PUT": "update",
}
NAME_SELECTOR: Final = "metadata.name="


class Attributes(NamedTuple):
    """What is to be authorized. With a ``resource`` it is about that, else about ``path``."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """How rules name it: ``pods``, ``pods/binding``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Return what a request means, whether or not such a resource is served.

    As the API server's RequestInfo: below ``/api/v1`` and ``/apis/group/version`` a request is
    about a resource; ``status`` and ``finalize`` below a namespace are not resources in it; a GET
    or DELETE without a name is a ``list``, ``watch`` or ``deletecollection``, which concerns one
    name when a field selector says so.
    """
    parsed = parse_path(path)
    if parsed is None:
        return Attributes(method.lower(), path=path)
    name = parsed.name
    verb = VERBS.get(method, method.lower())
    if parsed.is_watch:
        verb = "watch"
    elif not name:
        if verb == "get":
            verb = "watch" if flag(query, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
        if verb in ("deletecollection", "list", "watch"):
            name = _selected_name(query.get("fieldSelector", ""))
    return Attributes(
        verb,
        group=parsed.group,
        resource=parsed.resource,
        subresource=parsed.subresource,
        namespace=parsed.namespace,
        name=name,
        path=path,
    )


def _selected_name(selector: str) -> str:
    """Return the one name that a field selector lets through; "" when it is not about names."""
    for term in selector.split(","):
        if term.startswith(NAME_SELECTOR):
            return term.removeprefix(NAME_SELECTOR).removeprefix("=")
    return ""
