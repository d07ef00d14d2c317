"""DynamicResources: extended resources, PostFilter, Score, hints and args."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    ResourceClaim,
)
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.args import DynamicResourcesArgs
from berth_plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import node, pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    first_available,
    got,
    resource_slice,
    with_claims,
)
from tests.plugins.dynamic_resources.device_world import ELSEWHERE, NO, SLICES, Objects, World

POD = pod("p", uid="me")
MINE = with_claims(POD, "c")
GPU = "example.com/gpu"

# Extended resources.

ASKS = pod("p", uid="me", requests={GPU: 1})
EXTENDED = device_class("ext", extended_resource=GPU)


def test_devices_stand_for_an_extended_resource_where_the_node_has_none() -> None:
    world = World(EXTENDED, *SLICES)
    world.nodes.set_node(world.nodes.row_of["n2"], node("n2", allocatable={GPU: 4}))
    world.nodes.set_node(world.nodes.row_of["n3"], node("n3", allocatable={GPU: 0}))
    assert world.filter(ASKS) == {"n1": None, "n2": None, "n3": NO}
    assert world.found == {"n1": ["a"]}


def test_a_resource_that_nobody_has() -> None:
    world = World(EXTENDED, *SLICES)
    world.nodes.set_node(world.nodes.row_of["n2"], node("n2", allocatable={"example.com/x": 1}))
    both = pod("p", uid="me", requests={GPU: 1, "example.com/x": 1})
    nobody = Status.unresolvable("cannot fit resource")
    assert world.filter(both) == {"n1": nobody, "n2": None, "n3": nobody}


def test_a_claim_left_over_from_a_failed_attempt_is_deleted_first() -> None:
    left = claim("left", owner="me", annotations={EXTENDED_RESOURCE_CLAIM: "true"})
    world = World(EXTENDED, left, *SLICES)
    refusal = Status.unresolvable("cannot schedule extended resource claim")
    assert world.filter(ASKS) == {"n1": refusal, "n2": refusal, "n3": refusal}
    assert world.post_filter(ASKS) == Status.unschedulable("deletion of ResourceClaim completed")
    job = world.cluster.background.take()
    assert job is not None
    assert job.name == "delete claim default/left"


# PostFilter.


def test_without_state_post_filter_fails() -> None:
    assert World().post_filter(MINE) == Status.error("not found")


@pytest.mark.parametrize(
    ("users", "want", "jobs"),
    [
        pytest.param(
            [],
            Status.unschedulable("deallocation of ResourceClaim completed"),
            ["deallocate claim default/c"],
            id="nobody uses it",
        ),
        pytest.param(
            ["me"],
            Status.unschedulable("deallocation of ResourceClaim completed"),
            ["deallocate claim default/c"],
            id="only this pod does",
        ),
        pytest.param(["other"], Status.unschedulable("still not schedulable"), [], id="others do"),
    ],
)
async def test_a_claim_elsewhere_is_freed(
    users: Sequence[str], want: Status, jobs: list[str]
) -> None:
    world = World(claim("c", allocated=allocation("a", node="gone"), users=users))
    assert set(world.filter(MINE).values()) == {ELSEWHERE}
    assert world.post_filter(MINE) == want
    done = []
    while job := world.cluster.background.take():
        done.append(job.name)
        await world.cluster.background.do(job)
    assert done == jobs
    assert (world.cluster.resource_claims.claim("c").status.allocation is None) is bool(jobs)


def test_devices_that_do_not_get_ready_make_a_claim_useless() -> None:
    conditions = got("a", conditions=["Up"])
    world = World(claim("c", allocated=allocation(conditions, since="2001-01-01T00:00:00Z")))
    assert set(world.filter(MINE).values()) == {ELSEWHERE}


# Score.


def test_earlier_alternatives_score_higher() -> None:
    wanted = claim("c", first_available("r", two=exactly(2), one=exactly(1)), exactly(1))
    slices = [
        resource_slice("s1", device("a"), device("b"), device("c"), node="n1"),
        resource_slice("s2", device("a"), device("b"), node="n2"),
    ]
    world = World(wanted, *slices)
    world.filter(MINE)
    scores = world.plugin.score(world.state, PodInfo(MINE), world.nodes)
    rows = [world.nodes.row_of[name] for name in ("n1", "n2")]
    assert scores[rows].tolist() == [8, 7]
    assert world.plugin.normalize(world.state, PodInfo(MINE), scores[rows]).tolist() == [100, 87]


# Queueing.

FREE = claim("c")
TAKEN = claim("c", allocated=allocation("a"))
OTHER = claim("o", allocated=allocation("a"))


@pytest.mark.parametrize(
    ("known", "old", "new", "want"),
    [
        pytest.param([FREE], None, FREE, QueueingHint.QUEUE, id="its claim is there"),
        pytest.param([FREE], FREE, FREE, QueueingHint.SKIP, id="nothing of the status changed"),
        pytest.param([FREE], FREE, TAKEN, QueueingHint.QUEUE, id="its claim was allocated"),
        pytest.param(
            [FREE], OTHER, claim("o"), QueueingHint.QUEUE, id="another one gave devices back"
        ),
        pytest.param([FREE], claim("o"), OTHER, QueueingHint.SKIP, id="another one got devices"),
        pytest.param([], OTHER, claim("o"), QueueingHint.SKIP, id="but its own claim is missing"),
    ],
)
def test_hint_after_a_claim_changed(
    known: Objects, old: ResourceClaim | None, new: ResourceClaim, want: QueueingHint
) -> None:
    assert World(*known).plugin.after_claim_change(MINE, old, new) is want


@pytest.mark.parametrize(
    ("new", "known", "want"),
    [
        pytest.param(MINE, [FREE], QueueingHint.QUEUE, id="all claims are there"),
        pytest.param(MINE, [], QueueingHint.SKIP, id="one is missing"),
        pytest.param(pod("other"), [FREE], QueueingHint.SKIP, id="another pod"),
    ],
)
def test_hint_after_a_pod_changed(new: Pod, known: Objects, want: QueueingHint) -> None:
    assert World(*known).plugin.after_pod_change(MINE, MINE, new) is want


# Args.


@pytest.mark.parametrize(
    ("field", "value", "want"),
    [
        pytest.param("filterTimeout", "-1s", "must be zero or positive", id="filterTimeout"),
        pytest.param("bindingTimeout", "500ms", "must be at least 1 second", id="bindingTimeout"),
    ],
)
def test_args_out_of_range(field: str, value: str, want: str) -> None:
    with pytest.raises(ValueError, match=want):
        DynamicResourcesArgs.model_validate_json(f'{{"{field}": "{value}"}}')


def test_it_needs_a_handle() -> None:
    with pytest.raises(TypeError, match="needs a handle"):
        DynamicResources()
