"""Whether a FlowSchema's priority level exists: what its status says."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.flow_schema import FlowSchemaController, FlowSchemaView
from berth.cluster.controllers.table import Table
from berth.cluster.object_views import Meta, ObjectView
from berth.runtime.clock import FakeClock, rfc3339

REFERENCES = "This FlowSchema references the PriorityLevelConfiguration object named"
FOUND = {
    "type": "Dangling",
    "status": "False",
    "reason": "Found",
    "message": f'{REFERENCES} "high" and it exists',
}
MISSING = {
    "type": "Dangling",
    "status": "True",
    "reason": "NotFound",
    "message": f'{REFERENCES} "high" but there is no such object',
}
OTHER = {"type": "Other", "status": "True"}
BEFORE = "2026-01-01T00:00:00Z"
CLOCK = FakeClock()
NOW = rfc3339(CLOCK.now())


class World:
    def __init__(self) -> None:
        self.schemas: Table[FlowSchemaView] = Table()
        self.levels: Table[ObjectView] = Table()
        self.controller = FlowSchemaController(self.schemas, self.levels, clock=CLOCK)
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)

    def conditions(self) -> Any:
        """Return the conditions that are written of ``web``; None: none."""
        actions = self.controller.plan("web").actions
        if not actions:
            return None
        (action,) = actions
        assert isinstance(action, Patch)
        assert action.path == "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/web/status"
        return action.body["status"]["conditions"]


@pytest.fixture
def world() -> World:
    return World()


def schema(*conditions: Any, level: str = "high") -> FlowSchemaView:
    body = {
        "metadata": {"name": "web", "uid": "u"},
        "spec": {"priorityLevelConfiguration": {"name": level}},
        "status": {"conditions": conditions} if conditions else {},
    }
    return FlowSchemaView.decoder()(msgspec.json.encode(body))


LEVEL = ObjectView(Meta("high", "l"))


@pytest.mark.parametrize(
    ("levels", "known", "want"),
    [
        pytest.param([LEVEL], [], [{**FOUND, "lastTransitionTime": NOW}], id="it exists"),
        pytest.param([], [], [{**MISSING, "lastTransitionTime": NOW}], id="it does not exist"),
        pytest.param([LEVEL], [{**FOUND, "lastTransitionTime": BEFORE}], None, id="as was said"),
        pytest.param(
            [LEVEL],
            [{**MISSING, "lastTransitionTime": BEFORE}, OTHER],
            [OTHER, {**FOUND, "lastTransitionTime": NOW}],
            id="it exists now, other conditions stay",
        ),
        pytest.param(
            [LEVEL],
            [{**FOUND, "message": "of another level", "lastTransitionTime": BEFORE}],
            [{**FOUND, "lastTransitionTime": BEFORE}],
            id="another message is no transition",
        ),
    ],
)
def test_dangling(world: World, levels: list[ObjectView], known: list[Any], want: Any) -> None:
    for level in levels:
        world.levels.on_add(level)
    world.schemas.on_add(schema(*known))
    assert world.conditions() == want


def test_levels_that_come_and_go_are_told_to_the_schemas_that_name_them(world: World) -> None:
    world.schemas.on_add(schema())
    world.levels.on_add(LEVEL)
    world.levels.on_add(ObjectView(Meta("low", "m")))
    world.levels.on_delete(LEVEL)
    assert world.enqueued == ["web", "web", "web"]

    world.schemas.on_update(schema(), schema(level="low"))
    world.enqueued.clear()
    world.levels.on_add(LEVEL)
    assert world.enqueued == []
