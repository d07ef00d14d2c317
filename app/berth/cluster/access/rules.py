"""PolicyRules: what one rule allows."""

from collections.abc import Iterable

import msgspec

from berth.cluster.access.attributes import Attributes
from berth.cluster.resources import Object

ALL = "*"


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A PolicyRule: verbs on resources, or on paths that are no resources."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """``pods``, ``pods/binding``, ``*/scale`` (of everything), ``*``."""
    resource_names: tuple[str, ...] = ()
    """Empty: all."""
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    """Paths; a ``*`` at the end stands for any continuation."""

    def allows(self, wanted: Attributes) -> bool:
        """Tell whether this rule alone is enough for what is *wanted*, as kube-apiserver's RBAC."""
        if wanted.verb not in self.verbs and ALL not in self.verbs:
            return False
        if not wanted.resource:
            return any(_covers_path(pattern, wanted.path) for pattern in self.non_resource_urls)
        return (
            (wanted.group in self.api_groups or ALL in self.api_groups)
            and self._covers_resource(wanted)
            and (not self.resource_names or wanted.name in self.resource_names)
        )

    def _covers_resource(self, wanted: Attributes) -> bool:
        if wanted.full_resource in self.resources or ALL in self.resources:
            return True
        return bool(wanted.subresource) and f"{ALL}/{wanted.subresource}" in self.resources

    def as_object(self) -> Object:
        """Return the PolicyRule as JSON has it."""
        return {key: list(words) for key, words in msgspec.to_builtins(self).items()}


def on(resources: str, verbs: str, *, groups: str = "", names: Iterable[str] = ()) -> Rule:
    """Write a rule about resources: words in a string, ``core`` for the group without a name."""
    api_groups = tuple("" if each == "core" else each for each in (groups or "core").split())
    return Rule(tuple(verbs.split()), api_groups, tuple(resources.split()), tuple(names))


def on_paths(paths: str, verbs: str) -> Rule:
    """Write a rule about paths."""
    return Rule(tuple(verbs.split()), non_resource_urls=tuple(paths.split()))


def _covers_path(pattern: str, path: str) -> bool:
    if pattern.endswith(ALL):
        return path.startswith(pattern[:-1])
    return pattern == path
