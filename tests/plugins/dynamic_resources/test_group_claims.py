"""Claims that the pods of a group share: whose they are, and what becomes of them (spec G15.4)."""

import msgspec
import pytest

from berth.kube.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from berth.kube.objects.pod import Pod, PodSpec
from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.group_claims import GroupClaims
from berth_plugins.dynamic_resources.resolution import UnresolvedError, claims_of
from tests.builders import node, pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    resource_slice,
    with_claims,
    with_template_claim,
)
from tests.plugins.dynamic_resources.group_world import (
    GATE,
    check_devices,
    devices_of,
    group_with,
    owned_by_group,
    users,
    world,
)
from tests.scheduler.pod_group.building import group, group_harness, member, members

GROUP = ("podgroups", "uid-g")


def sharing(*names: str, of: str = "g", claim: str = "c", cpu: str = "1") -> list[Pod]:
    return [with_claims(each, claim) for each in members(*names, of=of, cpu=cpu)]


def resolve(a_pod: Pod, *objects: ResourceClaim | PodGroup, on: bool = True) -> str | list[str]:
    """Return the group of each claim of a pod, "" for none; or why one cannot be used."""
    listers = Listers()
    for obj in objects:
        if isinstance(obj, PodGroup):
            listers.pod_groups.on_add(obj)
        else:
            listers.resource_claims.on_add(obj)
    handle = Handle(NodeTable(), listers=listers, features=Features.of(*[GATE] if on else ()))
    try:
        found = claims_of(a_pod, listers.shared(ResourceClaimTracker), GroupClaims(handle))
    except UnresolvedError as exc:
        return str(exc)
    return [group.metadata.name if group is not None else "" for _, group in found]


NOT_OWNED = "ResourceClaim default/made was not created for Pod default/p"
MADE = with_template_claim(member("p"), "c", made="made")


@pytest.mark.parametrize(
    ("a_pod", "objects", "want"),
    [
        pytest.param(
            with_claims(member("p"), "c"), [group_with("c"), claim("c")], ["g"], id="of the group"
        ),
        pytest.param(
            with_claims(member("p"), "c"),
            [group_with("d"), claim("c")],
            [""],
            id="the group has another",
        ),
        pytest.param(
            with_claims(member("p"), "c"), [claim("c")], [""], id="the group is not there"
        ),
        pytest.param(
            MADE,
            [group_with("c"), owned_by_group("made")],
            [""],
            id="of the group's name, but made from a template: owned, and not shared",
        ),
        pytest.param(
            MADE,
            [group_with("c"), owned_by_group("made", uid="an older one")],
            f"{NOT_OWNED} (neither Pod nor PodGroup g is the owner)",
            id="made for a group that had the name before",
        ),
        pytest.param(
            MADE,
            [group_with("c"), owned_by_group("made", of="h")],
            f"{NOT_OWNED} (neither Pod nor PodGroup g is the owner)",
            id="made for another group",
        ),
        pytest.param(
            MADE,
            [group_with("c"), claim("made")],
            f"{NOT_OWNED} (neither Pod nor PodGroup g is the owner)",
            id="made by nobody",
        ),
    ],
)
def test_whose_a_claim_is(
    a_pod: Pod, objects: list[ResourceClaim | PodGroup], want: str | list[str]
) -> None:
    assert resolve(a_pod, *objects) == want


def test_without_the_gate_no_claim_is_a_groups() -> None:
    a_pod = with_claims(member("p"), "c")
    assert resolve(a_pod, group_with("c"), claim("c"), on=False) == [""]
    assert resolve(MADE, group_with("c"), owned_by_group("made"), on=False) == (
        f"{NOT_OWNED} (Pod is not owner)"
    )


# From the queue to the API.


@pytest.mark.parametrize("turns", [0, 3])
async def test_a_gang_shares_one_allocation_and_one_reservation(turns: int) -> None:
    harness = world("n1", "n2")
    server = harness.cluster.resource_claims
    server.turns = turns
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert len(set(harness.placements().values())) == 1
    assert len(harness.placements()) == 3
    assert users(harness, "c") == [GROUP]
    assert [write.verb for write in server.writes] == ["update", "update status"]
    check_devices(harness)


async def test_claims_of_single_pods_are_shared_in_one_cycle_as_well() -> None:
    harness = world("n1", "n2", gates=())
    harness.cluster.resource_claims.turns = 3
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert len(harness.placements()) == 3
    reserved = users(harness, "c")
    assert sorted(reserved) == [("pods", f"pod-default-{name}") for name in "abd"]
    check_devices(harness)


async def test_a_gang_of_which_one_member_does_not_fit_writes_nothing() -> None:
    harness = world("n1", "n2", cpu="2")
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert harness.cluster.resource_claims.writes == []
    check_devices(harness)


@pytest.mark.parametrize("who", ["a", "b", "d"])
async def test_sharers_stay_where_the_binding_of_one_fails(who: str) -> None:
    harness = world("n1", "n2")
    harness.cluster.resource_claims.turns = 2
    harness.cluster.bind_errors[who] = OSError("no route")
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert set(harness.placements()) == {"a", "b", "d"} - {who}
    assert users(harness, "c") == [GROUP]
    harness.cluster.bind_errors.clear()
    await harness.pass_time(10)
    assert len(set(harness.placements().values())) == 1
    assert len(harness.placements()) == 3
    check_devices(harness)


async def test_another_member_writes_what_the_first_could_not() -> None:
    harness = world("n1")
    harness.cluster.resource_claims.turns = 1
    harness.cluster.resource_claims.faults = iter([OSError("no route"), *[None] * 10])
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert len(harness.placements()) == 2
    assert users(harness, "c") == [GROUP]
    await harness.pass_time(10)
    assert len(harness.placements()) == 3
    check_devices(harness)


async def test_members_use_what_was_written_though_the_answer_got_lost() -> None:
    harness = world("n1")
    harness.cluster.resource_claims.turns = 1
    harness.cluster.resource_claims.losses = iter([True, *[False] * 10])
    harness.put(group_with("c", min_count=3), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert len(harness.placements()) == 2
    assert users(harness, "c") == [GROUP]
    check_devices(harness)


async def test_members_do_not_use_what_another_scheduler_has_written() -> None:
    harness = world("n1", devices=2)
    harness.put(group_with("c", min_count=2), claim("c"), *sharing("a", "b"))
    bindings = await harness.core.schedule_next()
    assert bindings is not None
    harness.put(reserved("c", node="n2"))
    for binding in bindings:
        await harness.scheduler.binding_cycle.run(binding)
    assert harness.placements() == {}
    await harness.until_idle()
    why = "claim default/c got allocated elsewhere in the meantime"
    assert why in harness.cluster.conditions["default/a"].message
    tracker = harness.listers.shared(ResourceClaimTracker)
    assert tracker.pending_allocation("claim-default-c") is None


async def test_two_groups_compete_for_one_device() -> None:
    harness = world("n1")
    for name in "gh":
        shared = f"c{name}"
        pods = sharing(f"{name}1", f"{name}2", of=name, claim=shared)
        harness.put(group_with(shared, name=name, min_count=2), claim(shared), *pods)
    await harness.until_idle()
    started = {name[0] for name in harness.placements()}
    assert len(started) == 1
    assert len(harness.placements()) == 2
    (winner,) = started
    loser = "gh".replace(winner, "")
    assert users(harness, f"c{winner}") == [("podgroups", f"uid-{winner}")]
    assert (users(harness, f"c{loser}"), devices_of(harness, f"c{loser}")) == ([], [])
    check_devices(harness)


async def test_a_member_that_joins_later_uses_the_devices_of_the_group() -> None:
    harness = world("n1", "n2")
    harness.put(group_with("c", min_count=2), claim("c"), *sharing("a", "b"))
    await harness.until_idle()
    writes = list(harness.cluster.resource_claims.writes)
    harness.put(*sharing("d"))
    await harness.until_idle()
    assert len(set(harness.placements().values())) == 1
    assert len(harness.placements()) == 3
    assert harness.cluster.resource_claims.writes == writes


async def test_a_scheduler_that_starts_between_two_binds_goes_on() -> None:
    first = world("n1", "n2")
    first.cluster.bind_errors["b"] = OSError("no route")
    first.put(group_with("c", min_count=2), claim("c"), *sharing("a", "b"))
    await first.bind_at_once()
    second = world("n1", "n2")
    second.put(first.cluster.resource_claims.claim("c"), group_with("c", min_count=2))
    second.put(*first.cluster.pods.values())
    await second.until_idle()
    assert second.placements() == dict.fromkeys("ab", first.placements()["a"])
    assert users(second, "c") == [GROUP]
    assert second.cluster.resource_claims.writes == []
    check_devices(second)


def reserved(name: str, *, uid: str = "uid-g", node: str = "gone") -> ResourceClaim:
    """A claim that has a device for a group which only one node can use."""
    held = claim(name, allocated=allocation(f"{node}-0", pool=node, node=node))
    consumer = ResourceClaimConsumerReference(
        api_group="scheduling.k8s.io", resource="podgroups", name="g", uid=uid
    )
    status = msgspec.structs.replace(held.status, reserved_for=(consumer,))
    return msgspec.structs.replace(held, status=status)


async def test_devices_out_of_reach_are_given_up_if_no_member_is_on_a_node() -> None:
    harness = world("n1")
    harness.put(group_with("c", min_count=2), reserved("c"), *sharing("a", "b"))
    await harness.until_idle()
    condition = harness.cluster.conditions["default/a"]
    assert condition.message == (
        "0/1 nodes are available: 1 resourceclaim not available on the node."
        " ResourceClaim unreserved for PodGroup"
    )
    assert users(harness, "c") == []
    await harness.pass_time(30)
    assert harness.placements() == {"a": "n1", "b": "n1"}
    assert users(harness, "c") == [GROUP]
    check_devices(harness)


async def test_devices_that_a_member_uses_are_not_given_up() -> None:
    harness = world("n1", "n2", cpu="1")
    (running, *others) = sharing("a", "b")
    harness.put(reserved("c", node="n1"), group_with("c", min_count=2))
    harness.put(msgspec.structs.replace(running, spec=on(running, "n1")), *others)
    await harness.pass_time(20)
    assert set(harness.placements()) == {"a"}
    assert users(harness, "c") == [GROUP]


def on(pod: Pod, name: str) -> PodSpec:
    return msgspec.structs.replace(pod.spec, node_name=name)


async def test_a_group_that_was_made_again_gets_a_reservation_of_its_own() -> None:
    """The reservation of the old group is the controller's to take away."""
    harness = world("n1")
    harness.put(reserved("c", uid="uid-old", node="n1"), group_with("c", min_count=2))
    harness.put(*sharing("a", "b"))
    await harness.until_idle()
    assert harness.placements() == {"a": "n1", "b": "n1"}
    assert users(harness, "c") == [("podgroups", "uid-old"), GROUP]


async def test_a_pod_of_no_group_waits_for_a_claim_that_a_group_is_being_given() -> None:
    harness = world("n1")
    harness.put(group_with("c", min_count=2), claim("c"), *sharing("a", "b"))
    bindings = await harness.core.schedule_next()
    assert bindings is not None
    harness.put(with_claims(pod("alone", cpu="1"), "c"))
    assert await harness.core.schedule_next() == ()
    for binding in bindings:
        await harness.scheduler.binding_cycle.run(binding)
    await harness.pass_time(10)
    assert set(harness.placements()) == {"a", "b", "alone"}
    assert users(harness, "c") == [GROUP, ("pods", "pod-default-alone")]


async def test_claims_of_a_pod_and_of_its_group_are_not_mixed_up() -> None:
    harness = world("n1", devices=4)
    harness.put(group_with("shared", min_count=3), claim("shared"))
    for index, name in enumerate("abd"):
        claims = ["shared", f"own-{name}"] if index % 2 else [f"own-{name}", "shared"]
        harness.put(claim(f"own-{name}"), with_claims(member(name, cpu="1"), *claims))
    await harness.bind_at_once()
    assert len(harness.placements()) == 3
    assert users(harness, "shared") == [GROUP]
    for name in "abd":
        assert users(harness, f"own-{name}") == [("pods", f"pod-default-{name}")]
    check_devices(harness)


async def test_a_gang_on_one_rack_shares_a_claim() -> None:
    harness = group_harness(GATE, "TopologyAwareWorkloadScheduling")
    harness.put(device_class())
    for name, rack in (("n1", "x"), ("n2", "y"), ("n3", "y"), ("n4", "y")):
        harness.put(node(name, cpu="1", labels={"rack": rack}))
    anywhere = [device("a"), device("b")]
    harness.put(resource_slice("all", *anywhere, all_nodes=True, pool="all"))
    gang = group_with("c", min_count=3)
    racks = group(topology="rack").spec.scheduling_constraints
    spec = msgspec.structs.replace(gang.spec, scheduling_constraints=racks)
    harness.put(msgspec.structs.replace(gang, spec=spec), claim("c"), *sharing("a", "b", "d"))
    await harness.bind_at_once()
    assert sorted(harness.placements().values()) == ["n2", "n3", "n4"]
    assert users(harness, "c") == [GROUP]
    check_devices(harness)
