"""NodeResourcesFit leaves to DynamicResources what devices stand for (spec §5.8, §3.9)."""

import pytest

from berth.kube.objects.devices import DeviceClass
from berth.kube.objects.node import Node
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.status import Status
from berth_plugins.node_resources_fit import (
    NodeResourcesFit,
    after_device_class_change,
    after_node_change,
)
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node, pod
from tests.device_builders import device_class, listers
from tests.harness import PluginCluster
from tests.plugins.evaluating import table, verdicts

GPU = "example.com/gpu"
ASKS = pod("p", cpu="1", requests={GPU: 2})
EXT = device_class("ext", extended_resource=GPU)


def test_nodes_without_the_resource_are_left_to_others() -> None:
    nodes = table(
        node("has-none"),
        node("has-zero", allocatable={GPU: 0}),
        node("has-one", allocatable={GPU: 1}),
        node("has-two", allocatable={GPU: 2}),
    )
    cluster = PluginCluster(FakeClock(), nodes=nodes)
    lacking = Status.unresolvable(f"Insufficient {GPU}")
    plugin = NodeResourcesFit(None, cluster.handle)
    assert verdicts(plugin, ASKS, nodes) == {
        "has-none": lacking,
        "has-zero": lacking,
        "has-one": lacking,
        "has-two": None,
    }
    cluster.listers.device_classes.on_add(EXT)
    assert verdicts(plugin, ASKS, nodes) == {
        "has-none": None,
        "has-zero": None,
        "has-one": lacking,
        "has-two": None,
    }


def test_where_nobody_knows_the_resource() -> None:
    nodes = table(node("n1"))
    cluster = PluginCluster(FakeClock(), nodes=nodes)
    cluster.listers.device_classes.on_add(EXT)
    assert verdicts(NodeResourcesFit(None, cluster.handle), ASKS, nodes) == {"n1": None}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, node("n1"), QueueingHint.QUEUE, id="a new node without the resource"),
        pytest.param(
            None, node("n1", allocatable={GPU: 1}), QueueingHint.SKIP, id="one with too little"
        ),
        pytest.param(
            node("n1"), node("n1"), QueueingHint.QUEUE, id="devices always count as gained"
        ),
        pytest.param(
            None, node("n1", cpu="500m"), QueueingHint.SKIP, id="too little of something else"
        ),
    ],
)
def test_hint_after_a_node_changed(old: Node | None, new: Node, want: QueueingHint) -> None:
    assert after_node_change(ASKS, old, new, classes=DeviceClassResolver(listers(EXT))) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, EXT, QueueingHint.QUEUE, id="a class for the resource is new"),
        pytest.param(
            device_class("ext"), EXT, QueueingHint.QUEUE, id="a class is for it since now"
        ),
        pytest.param(EXT, EXT, QueueingHint.SKIP, id="it was before"),
        pytest.param(
            None, device_class("other"), QueueingHint.SKIP, id="a class for something else"
        ),
    ],
)
def test_hint_after_a_class_changed(
    old: DeviceClass | None, new: DeviceClass, want: QueueingHint
) -> None:
    assert after_device_class_change(ASKS, old, new) is want


def test_a_class_is_an_extended_resource_by_its_own_name_too() -> None:
    implicit = pod("p", requests={"deviceclass.resource.kubernetes.io/ext": 1})
    assert after_device_class_change(implicit, None, device_class("ext")) is QueueingHint.QUEUE
