"""Changes that watches tell, each to wait for its turn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from berth.kube.informer.store import ResourceEventHandler


@dataclass(frozen=True, slots=True)
class Change:
    """An object that came, changed or went."""

    take_in: Callable[[], None]
    """Has the scheduler know it."""
    old: Any
    """None: it came."""
    new: Any
    """None: it went."""


class InOrder:
    """Hands the changes of one kind to *receive*, as changes that *handler* takes in."""

    def __init__(
        self, handler: ResourceEventHandler[Any], receive: Callable[[Change], None]
    ) -> None:
        self._handler = handler
        self._receive = receive

    def on_add(self, obj: Any) -> None:
        self._receive(Change(partial(self._handler.on_add, obj), None, obj))

    def on_update(self, old: Any, new: Any) -> None:
        self._receive(Change(partial(self._handler.on_update, old, new), old, new))

    def on_delete(self, obj: Any) -> None:
        self._receive(Change(partial(self._handler.on_delete, obj), obj, None))
