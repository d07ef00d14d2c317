"""The interface between a controller and the loop that runs it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from berth.cluster.actions import Action
from berth.kube.client.errors import ApiError


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one object."""

    actions: list[Action] = field(default_factory=list)
    """In order of importance; done side by side, so none may count on one before it."""
    again: float | None = None
    """Seconds until the object is to be looked at again although nothing changed."""
    is_independent: bool = False
    """Whether a failure of one says nothing about the others, which are all tried."""


NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended. ``error`` is None on success, and then ``answer`` is the body."""

    action: Action
    answer: bytes = b""
    error: ApiError | None = None
    skipped: bool = False
    """Not even tried, because others of the same plan failed."""


class Controller(Protocol):
    """Synchronous and free of I/O: told of changes by tables, asked for plans by a loop."""

    name: str

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        """Have *enqueue* called with the key of each object that is to be looked at."""
        ...

    def plan(self, key: str) -> Plan:
        """Return what is to be done about *key*; not called while a plan of it is under way."""
        ...

    def finished(self, key: str, outcome: Outcome) -> None:
        """Hear how an action of *key* ended. Called for every action of every plan."""
        ...
