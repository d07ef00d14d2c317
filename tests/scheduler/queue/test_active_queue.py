"""Pods that are bound to fail are tried after all others, and only these."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import NODE_ADD, TARGET_POD_UPDATE, QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_signature import demand_of, signature_of
from berth.scheduler.outcome import Outcome, Unschedulable
from berth.scheduler.queue.active_queue import PATIENCE, TRICKLE
from berth.scheduler.queue.failure_cache import CachedFailure
from tests.builders import node, pod, pod_anti_affinity, pod_term, selector, spread
from tests.preempting import World as Cluster
from tests.scheduler.queue.world import World, listens

FITS_NOWHERE = CachedFailure(
    "default/failed", frozenset({"Fit"}), "no", num_nodes=1, reasons={}, holds_for_more=True
)
FAILED = pod("failed", cpu=4, memory="1Gi")


def world(failure: CachedFailure = FITS_NOWHERE, failed: Pod = FAILED) -> World:
    """A world where *failed* waits, rejected by Fit."""
    made = World(
        listens("Fit", NODE_ADD, lambda *_: QueueingHint.QUEUE),
        listens("Fit", TARGET_POD_UPDATE, lambda *_: QueueingHint.SKIP),
        by_signature=True,
    )
    made.reject(failed, "Fit", cached_failure=failure)
    return made


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(pod("p", cpu=5, memory="1Gi"), id="more of one resource"),
        pytest.param(pod("p", cpu=5, memory="2Gi"), id="more of all"),
        pytest.param(pod("p", cpu="4001m", memory="1Gi", node=""), id="a little more"),
    ],
)
def test_a_pod_that_requests_more_gives_way(later: Pod) -> None:
    made = world()
    made.add(later, pod("small", cpu=1))

    assert made.pop_names() == ["small", "p"]
    made.queue.check_invariants()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("p", cpu=5), id="more of one resource, less of another"),
        pytest.param(pod("p", cpu=4, memory="1Gi"), id="equal, so that it needs no attempt"),
        pytest.param(pod("p", cpu=5, memory="1Gi", labels={"app": "a"}), id="other labels"),
        pytest.param(pod("p", ns="other", cpu=5, memory="1Gi"), id="another namespace"),
        pytest.param(pod("p", cpu=5, memory="1Gi", priority=1), id="another priority"),
        pytest.param(pod("p", cpu=5, memory="1Gi", node_selector={"a": "b"}), id="other nodes"),
        pytest.param(
            pod("p", cpu=5, memory="1Gi", preemption_policy="Never"), id="may not preempt"
        ),
        pytest.param(pod("p", cpu=5, memory="1Gi", nominated="n1"), id="nominated"),
        pytest.param(
            pod("p", cpu=5, memory="1Gi", requests={"example.com/gpu": 1}), id="other resources"
        ),
    ],
)
def test_others_keep_their_place(other: Pod) -> None:
    made = world()
    made.add(other, pod("small", cpu=1))

    assert made.pop_names() == ["p", "small"]


def test_a_pod_that_is_nominated_in_memory_keeps_its_place() -> None:
    made = world()
    later = pod("p", cpu=5, memory="1Gi")
    made.add(later, pod("small", cpu=1))
    made.queue.nominator.add_nominated_pod(PodInfo(later), node_name="n1")

    assert made.pop_names() == ["p", "small"]


def test_a_failure_that_may_have_other_reasons_holds_back_nobody() -> None:
    made = world(replace(FITS_NOWHERE, holds_for_more=False))
    made.add(pod("p", cpu=5, memory="1Gi"), pod("small", cpu=1))

    assert made.pop_names() == ["p", "small"]


def test_once_the_failure_is_known_no_more_all_come_in_order() -> None:
    made = world()
    made.add(pod("p0", cpu=5, memory="1Gi"), pod("p1", cpu=6, memory="1Gi"), pod("small", cpu=1))
    first = made.pop()
    made.queue.done(first.uid)
    made.add(pod("last", cpu=1))
    made.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new="larger")

    assert first.pod.metadata.name == "small"
    assert made.pop_names()[:3] == ["p0", "p1", "last"]


def test_pods_that_gave_way_can_be_found_and_go_while_they_wait() -> None:
    made = world()
    later = pod("p", cpu=5, memory="1Gi")
    made.add(later, pod("q", cpu=6, memory="1Gi"), pod("small", cpu=1))
    made.queue.done(made.pop().uid)

    assert not made.queue.has_active
    assert made.places()["p"] == "active"
    made.queue.check_invariants()
    made.queue.delete(later)
    made.queue.check_invariants()
    assert made.pop_names() == ["q"]


def test_they_are_tried_in_between_when_they_have_waited_for_long() -> None:
    made = world()
    made.add(pod("p", cpu=5, memory="1Gi"), *(pod(f"small-{n:03}", cpu=1) for n in range(100)))
    made.queue.done(made.pop().uid)
    assert "p" not in [made.pop().pod.metadata.name for _ in range(TRICKLE)]
    made.clock.advance(PATIENCE + 1)

    assert "p" in [made.pop().pod.metadata.name for _ in range(TRICKLE)]


def test_the_least_failures_are_kept() -> None:
    made = world()
    for name, cpu in (("more", 5), ("less", 3)):
        made.reject(pod(name, cpu=cpu, memory="1Gi"), "Fit", cached_failure=FITS_NOWHERE)
    made.add(pod("p", cpu="3500m", memory="1Gi"), pod("small", cpu=1))

    assert made.pop_names() == ["small", "p"]


# That such a pod is bound to fail.


ZONES = ("a", "b")
Amount = st.integers(0, 5)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes = [
        node(
            f"n{n}",
            cpu=draw(Amount),
            memory=draw(Amount),
            labels={"zone": draw(st.sampled_from(ZONES))},
        )
        for n in range(draw(st.integers(1, 4)))
    ]
    pods = [
        pod(
            f"running-{n}",
            cpu=draw(Amount),
            memory=draw(Amount),
            priority=draw(st.integers(0, 3)),
            labels={"app": draw(st.sampled_from(ZONES))},
            node=draw(st.sampled_from(nodes)).metadata.name,
        )
        for n in range(draw(st.integers(0, 6)))
    ]
    nominated = {
        "n0": [
            pod("nominee", cpu=draw(Amount), memory=draw(Amount), priority=draw(st.integers(0, 3)))
        ]
    }
    return Cluster(nodes, pods, nominated if draw(st.booleans()) else {})


CONSTRAINTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"spread": [spread("zone", selector=selector({"app": "a"}))]},
    {"affinity": pod_anti_affinity(required=[pod_term({"app": "a"}, key="zone")])},
)


@settings(max_examples=150)
@given(
    clusters(), st.tuples(Amount, Amount), st.tuples(Amount, Amount), st.sampled_from(CONSTRAINTS)
)
def test_what_fails_fails_for_more(
    cluster: Cluster,
    requests: tuple[int, int],
    more: tuple[int, int],
    constraints: dict[str, Any],
) -> None:
    """The full attempt, preemption included, for the one pod and for the other."""

    def asking(name: str, cpu: int, memory: int) -> Pod:
        return pod(name, cpu=cpu, memory=memory, priority=2, labels={"app": "a"}, **constraints)

    one = asking("one", *requests)
    other = asking("other", requests[0] + more[0], requests[1] + more[1])
    demands = []
    for each in (one, other):
        signature = signature_of(PodInfo(each))
        assert signature is not None
        demands.append(demand_of(signature))
    assert demands[0] is not None
    assert demands[1] is not None
    assert demands[0].of == demands[1].of
    assert demands[0].requests <= demands[1].requests
    if is_hopeless(cluster.outcome(one)):
        assert is_hopeless(cluster.outcome(other))


def is_hopeless(outcome: Outcome) -> bool:
    return isinstance(outcome, Unschedulable) and not outcome.nomination.override
