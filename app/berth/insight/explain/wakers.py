"""Changes in the cluster that are worth another try for a waiting pod."""

from collections.abc import Collection, Iterator

from berth.scheduler.framework.events import ActionType, ClusterEvent
from berth.scheduler.profile.profile import Profile

ANY_CHANGE = "any change"


def woken_by(profile: Profile, plugins: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return by plugin, of *plugins*, what it registered for: ``Node/Add``, ``Pod/Delete``.

    A hint of the plugin looks at the change before the pod is tried, so not each of them wakes it.
    """
    found: dict[str, dict[str, None]] = {}
    for plugin, registered in profile.queueing_hints():
        if plugin in plugins:
            found.setdefault(plugin, {}).update(dict.fromkeys(_changes(registered.event)))
    return {plugin: tuple(changes) for plugin, changes in sorted(found.items())}


def _changes(event: ClusterEvent) -> Iterator[str]:
    if event.is_wildcard:
        yield ANY_CHANGE
        return
    left = event.action
    for action in (ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, *ActionType):
        if action & left == action:
            left &= ~action
            words = (action.name or "").split("_")
            yield f"{event.resource}/{''.join(word.capitalize() for word in words)}"
