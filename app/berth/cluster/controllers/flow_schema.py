"""Writes into FlowSchemas whether the priority level that they name exists.

In a real cluster the API server does this (KEP-1040).
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgspec

from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import ObjectView, metadata_of
from berth.cluster.resources import Object
from berth.runtime.clock import Clock, rfc3339

GROUP: Final = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMAS: Final = find(GROUP, "v1", "flowschemas")
DANGLING: Final = "Dangling"


class FlowSchemaView(ObjectView, frozen=True):
    """A FlowSchema."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def level(self) -> str:
        """The name of its priority level."""
        name: str = (self.spec.get("priorityLevelConfiguration") or {}).get("name") or ""
        return name


class FlowSchemaController:
    """Keeps the condition ``Dangling`` true to what exists. The key is the name of a FlowSchema."""

    name = "flow-schema-status"

    def __init__(
        self, schemas: Table[FlowSchemaView], levels: Table[ObjectView], *, clock: Clock
    ) -> None:
        self._schemas = schemas
        self._levels = levels
        self._clock = clock
        self._by_level: defaultdict[str, set[str]] = defaultdict(set)

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def schema_changed(old: FlowSchemaView | None, new: FlowSchemaView | None) -> None:
            if old is not None:
                self._by_level[old.level].discard(old.metadata.name)
            if new is not None:
                self._by_level[new.level].add(new.metadata.name)
                enqueue(new.metadata.name)

        def level_changed(old: ObjectView | None, new: ObjectView | None) -> None:
            if old is None or new is None:
                for name in sorted(self._by_level.get(metadata_of(old, new).name, ())):
                    enqueue(name)

        self._schemas.listen(schema_changed)
        self._levels.listen(level_changed)

    def plan(self, key: str) -> Plan:
        schema = self._schemas.get(key)
        if schema is None or schema.metadata.deletion_timestamp is not None:
            return NOTHING
        is_dangling = self._levels.get(schema.level) is None
        conditions: list[Object] = schema.status.get("conditions") or []
        known: Object = next((each for each in conditions if each.get("type") == DANGLING), {})
        condition: Object = {
            "type": DANGLING,
            "status": "True" if is_dangling else "False",
            "reason": "NotFound" if is_dangling else "Found",
            "message": "This FlowSchema references the PriorityLevelConfiguration object named "
            f'"{schema.level}" {"but there is no such object" if is_dangling else "and it exists"}',
        }
        if condition.items() <= known.items():
            return NOTHING
        same = known.get("status") == condition["status"]
        since = known.get("lastTransitionTime") if same else rfc3339(self._clock.now())
        others = [each for each in conditions if each is not known]
        status = {"conditions": [*others, {**condition, "lastTransitionTime": since}]}
        uid = schema.metadata.uid
        path = f"{FLOW_SCHEMAS.path_of('', key)}/status"
        return Plan([Patch(path, {"metadata": {"uid": uid}, "status": status})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: the condition is seen, or written again."""


def new_controller(context: ControllerContext) -> FlowSchemaController:
    return FlowSchemaController(
        context.table(f"flowschemas.{GROUP}", FlowSchemaView),
        context.table(f"prioritylevelconfigurations.{GROUP}", ObjectView),
        clock=context.clock,
    )
