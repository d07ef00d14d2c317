"""The kinds that are served at present."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from berth.cluster.custom.versions import version_order
from berth.cluster.resources import ResourceType
from berth.runtime.release import RELEASE


class Registry:
    """Kinds by group, version and plural, in the order of discovery.

    Whoever computes something from the kinds keeps the :attr:`revision` beside it and computes it
    anew when that has changed.
    """

    def __init__(self, resources: Iterable[ResourceType] = (), *, release: str = RELEASE) -> None:
        self.release = release
        """Of Kubernetes, which the kinds from the start are of."""
        self._resources = {_key(resource): resource for resource in resources}
        self.revision = 1
        """One more after every change."""
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Have *listener* called after every change."""
        self._listeners.append(listener)

    def add(self, resource: ResourceType) -> None:
        """Serve a kind, or serve it in the place of the one at the same URL.

        In discovery custom resources come after what the server has from the start, by group.
        """
        is_new = _key(resource) not in self._resources
        self._resources[_key(resource)] = resource
        if is_new and resource.structural is not None:
            self._resources = dict(sorted(self._resources.items(), key=_order))
        self._note_change()

    def remove(self, resource: ResourceType) -> None:
        """Serve a kind no longer; what is stored of it stays. KeyError when it is not served."""
        del self._resources[_key(resource)]
        self._note_change()

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the kind with that URL; None if it is not served."""
        return self._resources.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Whether there are kinds of that group and version."""
        return any(key[:2] == (group, version) for key in self._resources)

    def stored(self, group: str, plural: str) -> ResourceType | None:
        """Return the kind, whatever its version, in the one that it is kept in; None: no such."""
        for (of_group, _, name), resource in self._resources.items():
            if (of_group, name) == (group, plural) and not resource.is_view:
                return resource
        return None

    def _note_change(self) -> None:
        self.revision += 1
        for listener in self._listeners:
            listener()

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._resources.values())

    def __len__(self) -> int:
        return len(self._resources)


def by_group(resources: Iterable[ResourceType]) -> dict[str, list[ResourceType]]:
    """Return *resources* by group, in order of first mention."""
    groups: dict[str, list[ResourceType]] = {}
    for resource in resources:
        groups.setdefault(resource.group, []).append(resource)
    return groups


def by_path(resources: Iterable[ResourceType]) -> dict[str, list[ResourceType]]:
    """Return *resources* by URL prefix of group and version, in order of first mention."""
    paths: dict[str, list[ResourceType]] = {}
    for resource in resources:
        paths.setdefault(resource.path, []).append(resource)
    return paths


def _order(entry: tuple[tuple[str, str, str], ResourceType]) -> tuple[Any, ...]:
    (group, version, plural), resource = entry
    if resource.structural is None:
        return ()
    return (group, version_order(version), plural)


def _key(resource: ResourceType) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def collected(resources: Iterable[ResourceType]) -> list[ResourceType]:
    """Return the kinds that the garbage collector must know: each stored object is of one."""
    return _once(
        resource
        for resource in resources
        if resource.garbage_collected and {"delete", "list", "watch"} <= set(resource.verbs)
    )


def swept(resources: Iterable[ResourceType]) -> list[ResourceType]:
    """Return the kinds that a namespace is emptied of: each stored object in it is of one."""
    return _once(
        resource
        for resource in resources
        if resource.namespaced and {"deletecollection", "list"} <= set(resource.verbs)
    )


def _once(resources: Iterable[ResourceType]) -> list[ResourceType]:
    """Return one kind of those that show the same objects: the one that they are stored as."""
    found: dict[str, ResourceType] = {}
    for resource in resources:
        if resource.is_stored and (resource.storage_key not in found or not resource.is_view):
            found[resource.storage_key] = resource
    return list(found.values())
