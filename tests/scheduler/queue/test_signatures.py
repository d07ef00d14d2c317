"""Pods of one signature: an event asks one for all, and one failed attempt stands for all."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    QueueingHint,
)
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.queue.backoff import Backoff
from berth.scheduler.queue.failure_cache import CachedFailure
from tests.builders import pod
from tests.scheduler.queue.world import PROFILE, World, listens

FITS_NOWHERE = CachedFailure(
    "default/a", frozenset({"Fit"}), "fits nowhere", num_nodes=1, reasons={"too small": 1}
)


def helps_big(waiting: Pod, _old: Any, new: Any) -> QueueingHint:
    """Queue if what is new is for those that wait."""
    return QueueingHint.QUEUE if new == "helps" else QueueingHint.SKIP


def crowd(*pods: Pod, by_signature: bool = True) -> World:
    """A world where *pods* wait, all rejected by Fit, and the first stands for the others."""
    world = World(
        listens("Fit", NODE_ADD, helps_big),
        listens("Fit", ASSIGNED_POD_ADD, lambda _waiting, _old, new: attracts(new)),
        listens("Ports", NODE_DELETE),
        by_signature=by_signature,
    )
    for n, waiting in enumerate(pods):
        world.reject(waiting, "Fit", cached_failure=None if n else FITS_NOWHERE)
    return world


def attracts(new: Pod) -> QueueingHint:
    return QueueingHint.QUEUE if new.metadata.labels.get("app") == "magnet" else QueueingHint.SKIP


def failure_of_one_more(world: World, newcomer: Pod | None = None) -> CachedFailure | None:
    world.add(newcomer or pod("newcomer"))
    failure = world.queue.cached_failure(world.pop())
    world.queue.check_invariants()
    return failure


def test_an_event_asks_one_pod_of_a_signature_and_moves_all() -> None:
    world = crowd(*(pod(f"p{n}") for n in range(50)))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps nobody")
    assert world.hints_called == [("Fit", "NodeAdd", "QueueSkip")]
    assert set(world.places().values()) == {"unschedulable"}

    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps")
    assert world.hints_called[1:] == [("Fit", "NodeAdd", "Queue")]
    assert set(world.places().values()) == {"backoff"}
    world.queue.check_invariants()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("other", labels={"app": "b"}), id="other labels"),
        pytest.param(pod("other", ns="elsewhere"), id="another namespace"),
        pytest.param(pod("other", cpu=1), id="other requests"),
        pytest.param(pod("other", priority=5), id="another priority"),
        pytest.param(pod("other", preemption_policy="Never"), id="another preemption policy"),
        pytest.param(pod("other", owner="set"), id="another owner"),
        pytest.param(pod("other", nominated="n1"), id="a nomination of its own"),
        pytest.param(pod("other", claims=["data"]), id="a volume of its own"),
    ],
)
def test_pods_that_differ_are_asked_one_by_one(other: Pod) -> None:
    world = crowd(pod("p"), other)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps nobody")

    assert len(world.hints_called) == 2


def test_pods_with_something_of_their_own_have_no_signature() -> None:
    world = crowd(pod("a", claims=["data"]), pod("b", claims=["data"]))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps nobody")

    assert len(world.hints_called) == 2
    assert failure_of_one_more(world, pod("c", claims=["data"])) is None


def test_a_pod_that_others_rejected_waits_for_other_events() -> None:
    world = crowd(pod("a"), pod("b"))
    world.reject(pod("c"), "Ports")
    world.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)

    assert world.places() == {"a": "unschedulable", "b": "unschedulable", "c": "backoff"}


def test_the_pre_check_is_for_each_pod() -> None:
    world = crowd(pod("a"), pod("b"), pod("c"))
    not_a_or_c = {"b"}
    world.queue.move_all_to_active_or_backoff_queue(
        NODE_ADD, new="helps", pre_check=lambda waiting: waiting.metadata.name in not_a_or_c
    )

    assert world.places() == {"a": "unschedulable", "b": "backoff", "c": "unschedulable"}


def test_in_a_profile_with_other_plugins_no_pod_has_a_signature() -> None:
    world = crowd(pod("a"), pod("b"), by_signature=False)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps nobody")

    assert len(world.hints_called) == 2
    assert failure_of_one_more(world) is None


Happening = Callable[[World], object]


def nothing_relevant(world: World) -> None:
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps nobody")
    world.queue.move_all_to_active_or_backoff_queue(NODE_DELETE)
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, old=pod("gone", node="n1"))
    world.queue.assumed(PodInfo(pod("equal", priority=0)).on_node("n1"))
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD, new=pod("equal", node="n1"))


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda _: None, id="nothing"),
        pytest.param(nothing_relevant, id="events that help nobody"),
        pytest.param(
            lambda world: world.queue.delete(world.pods["default/a"]), id="who was tried is gone"
        ),
        pytest.param(
            lambda world: world.update(pod("b", labels={"app": "new"})),
            id="another waiting pod changes its signature",
        ),
        pytest.param(
            lambda world: world.update(pod("a", version="2")), id="who was tried was told so"
        ),
    ],
)
def test_a_failure_stands_for_its_signature_while(happens: Happening) -> None:
    world = crowd(pod("a"), pod("b"))
    happens(world)

    assert failure_of_one_more(world) == FITS_NOWHERE


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(
            lambda world: world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps"),
            id="an event that helps",
        ),
        pytest.param(
            lambda world: [world.queue.delete(world.pods[f"default/{p}"]) for p in "ab"],
            id="no pod of the signature waits any more",
        ),
        pytest.param(
            lambda world: [world.update(pod(p, labels={"app": "new"})) for p in "ab"],
            id="all pods have got another signature",
        ),
        pytest.param(
            lambda world: world.queue.activate([world.pods["default/b"]]),
            id="a plugin asks for a try",
        ),
        pytest.param(
            lambda world: [
                world.clock.advance(400),
                world.queue.flush_unschedulable_pods_leftover(),
            ],
            id="all have waited for long",
        ),
        pytest.param(
            lambda world: world.queue.assumed(PodInfo(pod("x", priority=-1)).on_node("n1")),
            id="a lesser pod has a node, and may be evicted",
        ),
        pytest.param(
            lambda world: world.queue.move_all_to_active_or_backoff_queue(
                ASSIGNED_POD_ADD, new=pod("x", priority=-1, node="n1")
            ),
            id="a lesser pod has a node from somebody else",
        ),
        pytest.param(
            lambda world: world.queue.assumed(
                PodInfo(pod("x", labels={"app": "magnet"})).on_node("n1")
            ),
            id="a pod has a node that will be an event that helps",
        ),
    ],
)
def test_the_next_of_a_signature_is_tried_after(happens: Happening) -> None:
    world = crowd(pod("a"), pod("b"))
    happens(world)
    world.queue.check_invariants()
    while world.queue.pop():
        pass

    assert failure_of_one_more(world) is None


def test_an_assumed_pod_moves_nobody_before_it_is_bound() -> None:
    world = crowd(pod("a"))
    magnet = pod("x", labels={"app": "magnet"})
    world.queue.assumed(PodInfo(magnet).on_node("n1"))

    assert world.places() == {"a": "unschedulable"}


def test_a_failure_is_not_known_if_something_that_may_help_happened_during_the_attempt() -> None:
    world = crowd()
    world.add(pod("a"))
    queued = world.pop()
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="helps")
    world.give_back(queued, "Fit", cached_failure=FITS_NOWHERE)

    assert world.places() == {"a": "backoff"}
    assert failure_of_one_more(world, pod("b")) is None


def test_a_pod_that_is_nominated_in_memory_is_tried() -> None:
    world = crowd(pod("a"))
    world.add(pod("newcomer"))
    queued = world.pop()
    world.queue.nominator.add_nominated_pod(queued.pod_info, node_name="n1")

    assert world.queue.cached_failure(queued) is None


def test_other_profiles_know_nothing_after_a_reload() -> None:
    world = crowd(pod("a"))
    world.queue.reconfigure(
        pre_enqueue={PROFILE: ()},
        hints={PROFILE: [listens("Fit", NODE_ADD)]},
        backoff=Backoff(),
        observers={},
        signature_profiles={PROFILE: ()},
    )
    while world.queue.pop():
        pass

    assert failure_of_one_more(world) is None
