"""One event, two APIs: core/v1 and events.k8s.io/v1 are views of the same stored object.

It is stored in the core form, and its rules and columns are written for that form. The names
differ, the values do not: recorders of the new API leave the ``deprecated`` fields empty, recorders
of the old one fill only those.
"""

from collections.abc import Mapping
from dataclasses import replace

from berth.cluster.columns.cells import Cell
from berth.cluster.resources import Object, Strategy
from berth.kube.field_errors import FieldError

NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Core field to events.k8s.io field; fields not named here are called the same in both."""

CORE_NAMES = {new: core for core, new in NEW_NAMES.items()}


def to_core(event: Object) -> Object:
    """Return an events.k8s.io/v1 Event as core/v1."""
    return _renamed(event, CORE_NAMES, "v1")


def from_core(event: Object) -> Object:
    """Return a core/v1 Event as events.k8s.io/v1."""
    return _renamed(event, NEW_NAMES, "events.k8s.io/v1")


def core_cell(cell: Cell) -> Cell:
    """Return a cell of core/v1 events that can be shown an events.k8s.io/v1 one."""
    return lambda event: cell(to_core(event))


def core_strategy(strategy: Strategy) -> Strategy:
    """Return the strategy of core/v1 events for writers of events.k8s.io/v1."""

    def default(event: Object) -> None:
        core = to_core(event)
        strategy.default(core)
        event.clear()
        event.update(from_core(core))

    def validate(new: Object, old: Object | None) -> list[FieldError]:
        return strategy.validate(to_core(new), None if old is None else to_core(old))

    return replace(strategy, default=default, validate=validate)


def _renamed(event: Object, names: Mapping[str, str], api_version: str) -> Object:
    """Rename the fields; items of a list have no ``apiVersion`` and get none."""
    fields = {names.get(key, key): value for key, value in event.items()}
    return fields | {"apiVersion": api_version} if "apiVersion" in event else fields
