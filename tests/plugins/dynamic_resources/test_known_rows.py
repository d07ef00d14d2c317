"""What is kept of searches: a plugin that has seen every change says what a new one says."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.allocator import allocate
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.plugin import DynamicResources
from berth_plugins.dynamic_resources.pools import ResourcePools
from berth_plugins.dynamic_resources.requests import requests_of
from berth_plugins.dynamic_resources.state import KEY, DevicesOfPod
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node, pod, term
from tests.builders import requirement as where
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    with_claims,
)
from tests.plugins.dynamic_resources.device_world import World

GPU = "example.com/gpu"
NODES = st.sampled_from(["n1", "n2", "n3", "n4"])
POD = pod("p", uid="me")
PODS = st.sampled_from(
    [
        with_claims(POD, "one"),
        with_claims(POD, "same"),
        with_claims(POD, "two"),
        with_claims(POD, "one", "two"),
        with_claims(POD, "net"),
        pod("p", uid="me", requests={GPU: 1}),
        pod("p", uid="me", requests={GPU: 1, "example.com/npu": 1}),
    ]
)
NET = {"net": True}
ON_THE_NET = 'has(device.attributes["gpu.example.com"].net)'
SHARED = st.sampled_from(
    [
        resource_slice(
            "net", device("s", attributes=NET), pool="net", selects=term(where("zone", "In", "a"))
        ),
        resource_slice("net", device("s", attributes=NET), device("t"), pool="net", all_nodes=True),
        resource_slice(
            "net",
            device("s", node="n3", attributes=NET),
            device("t", all_nodes=True),
            pool="net",
            per_device=True,
        ),
    ]
)
Answers = dict[str, tuple[Status | None, list[str] | None]]


def answers(plugin: DynamicResources, a_pod: Pod, nodes: NodeTable) -> Answers:
    """Return for each node what is wrong with it, and what would be taken there."""
    state = CycleState(nodes.exists.copy())
    assert plugin.pre_filter(state, PodInfo(a_pod), nodes) is None
    verdict = plugin.filter(state, PodInfo(a_pod), nodes)
    devices: DevicesOfPod = state.read(KEY)
    found: Answers = {}
    for name, row in nodes.row_of.items():
        find, status = devices.found.get(name), verdict.status_of(row)
        taken = [str(pick.found.id) for of in find.picks for pick in of.picks] if find else []
        found[name] = status, None if status is not None else taken
    return found


def searched_alone(world: World, a_pod: Pod, node_name: str) -> list[str] | None:
    """Search on one node with nothing kept, and nothing shared with other nodes."""
    listers, nodes = world.cluster.listers, world.nodes
    claims = listers.shared(ResourceClaimTracker)
    named = [
        claims.get("default", resource_claim.name) for resource_claim in a_pod.spec.resource_claims
    ]
    a_node = nodes.nodes[nodes.row_of[node_name]]
    assert a_node is not None
    picks = allocate(
        [requests_of(each, DeviceClassResolver(listers)) for each in named if each is not None],
        a_node,
        ResourcePools(listers).pools_of(a_node),
        claims.in_use,
        is_late=lambda: False,
    )
    return None if picks is None else [str(pick.found.id) for of in picks for pick in of.picks]


@st.composite
def changes(draw: st.DrawFn, world: World) -> None:
    """Change something that answers follow from."""
    nodes, listers, name = world.nodes, world.cluster.listers, draw(NODES)
    match draw(st.sampled_from(["claim", "slice", "node", "gone", "everywhere", "class"])):
        case "claim":
            key = draw(st.sampled_from(["x", "y"]))
            taken = draw(st.lists(st.sampled_from("abst"), unique=True))
            pool = draw(st.sampled_from(["n1", "n2", "net"]))
            world.cluster.resource_claims.put(
                claim(key, allocated=allocation(*taken, pool=pool) if taken else None)
            )
        case "slice":
            devices = [device(each) for each in draw(st.sampled_from(["a", "ab", "abc"]))]
            offered = resource_slice(f"s-{name}", *devices, node=name)
            old = listers.resource_slices.get("", f"s-{name}")
            if old is None:
                listers.resource_slices.on_add(offered)
            elif draw(st.booleans()):
                listers.resource_slices.on_update(old, offered)
            else:
                listers.resource_slices.on_delete(old)
        case "node":
            of_node = node(
                name,
                labels={"zone": draw(st.sampled_from("ab"))},
                allocatable={GPU: draw(st.integers(0, 1)), "cpu": "4"},
            )
            if name in nodes.row_of:
                nodes.set_node(nodes.row_of[name], of_node)
            else:
                nodes.add_node(of_node)
        case "gone":
            if name in nodes.row_of and len(nodes) > 1:
                nodes.remove_node(nodes.row_of[name])
        case "everywhere":
            old = listers.resource_slices.get("", "net")
            if old is None:
                listers.resource_slices.on_add(draw(SHARED))
            else:
                listers.resource_slices.on_delete(old)
        case "class":
            known = listers.device_classes.get("", "ext")
            assert known is not None
            again = msgspec.structs.replace(known)
            listers.device_classes.on_update(known, again)


def asked_for(name: str, count: int) -> ResourceClaim:
    return claim(name, exactly(count))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_known_is_what_a_search_finds(data: st.DataObject) -> None:
    world = World(
        device_class("ext", extended_resource=GPU),
        device_class("other", extended_resource="example.com/npu"),
        asked_for("one", 1),
        asked_for("same", 1),
        asked_for("two", 2),
        claim("net", exactly(where=[ON_THE_NET])),
    )
    for _ in range(data.draw(st.integers(2, 12))):
        data.draw(changes(world))
        for a_pod in data.draw(st.lists(PODS, max_size=3)):
            new = DynamicResources(None, world.cluster.handle)
            told = answers(world.plugin, a_pod, world.nodes)
            assert told == answers(new, a_pod, world.nodes)
            if a_pod.spec.resource_claims:
                searched = {name: searched_alone(world, a_pod, name) for name in told}
                assert {name: taken for name, (_, taken) in told.items()} == searched
