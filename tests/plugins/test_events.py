"""Which events each plugin registers for (spec §3.9); the hints are tested with their plugins."""

import pytest

from berth.scheduler.framework.events import ActionType, EventResource
from berth.scheduler.framework.interface import EnqueueExtensions
from berth_plugins.node_affinity import NodeAffinity
from berth_plugins.node_name import NodeName
from berth_plugins.node_ports import NodePorts
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.node_unschedulable import NodeUnschedulable
from berth_plugins.scheduling_gates import SchedulingGates
from berth_plugins.taint_toleration import TaintToleration

NODE, POD = EventResource.NODE, EventResource.POD
ADD, DELETE = ActionType.ADD, ActionType.DELETE


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            SchedulingGates(),
            {(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, True)},
            id="SchedulingGates",
        ),
        pytest.param(
            NodeUnschedulable(),
            {
                (NODE, ADD | ActionType.UPDATE_NODE_TAINT, True),
                (POD, ActionType.UPDATE_POD_TOLERATION, True),
            },
            id="NodeUnschedulable",
        ),
        pytest.param(NodeName(), {(NODE, ADD, False)}, id="NodeName"),
        pytest.param(
            TaintToleration(),
            {
                (NODE, ADD | ActionType.UPDATE_NODE_TAINT, True),
                (POD, ActionType.UPDATE_POD_TOLERATION, True),
            },
            id="TaintToleration",
        ),
        pytest.param(
            NodeAffinity(), {(NODE, ADD | ActionType.UPDATE_NODE_LABEL, True)}, id="NodeAffinity"
        ),
        pytest.param(NodePorts(), {(POD, DELETE, True), (NODE, ADD, False)}, id="NodePorts"),
        pytest.param(
            NodeResourcesFit(),
            {
                (POD, DELETE, True),
                (POD, ActionType.UPDATE_POD_SCALE_DOWN, True),
                (NODE, ADD | ActionType.UPDATE_NODE_ALLOCATABLE, True),
                (EventResource.DEVICE_CLASS, ADD | ActionType.UPDATE, True),
            },
            id="NodeResourcesFit",
        ),
    ],
)
def test_registered_events(
    plugin: EnqueueExtensions, want: set[tuple[EventResource, ActionType, bool]]
) -> None:
    """Each pattern, and whether a hint narrows it."""
    registered = plugin.events_to_register()
    assert {(r.event.resource, r.event.action, r.hint is not None) for r in registered} == want
