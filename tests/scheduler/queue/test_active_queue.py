"""Pods that are bound to fail are tried after all others, and only these."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.runtime.tasks import at_once
from berth.scheduler.framework.events import NODE_ADD, TARGET_POD_UPDATE, QueueingHint
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.pod_signature import Demand, demand_of, signature_of
from berth.scheduler.outcome import Outcome, Unschedulable
from berth.scheduler.queue.active_queue import MOST_KINDS, PATIENCE, TRICKLE, ActiveQueue
from berth.scheduler.queue.failure_cache import CachedFailure, FailureCache
from berth.scheduler.queue.nominator import Nominator
from tests.builders import node, pod, pod_anti_affinity, pod_term, selector, spread
from tests.preempting import World as Cluster
from tests.scheduler.queue.world import PROFILE, START, World, listens, priority_sort

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


# Against looking at all that wait.


class Looks(FailureCache):
    """Counts how often it is looked at one pod."""

    count = 0

    def bound_to_fail(self, queued: QueuedPodInfo) -> Demand | None:
        self.count += 1
        return super().bound_to_fail(queued)


class Active:
    """An active queue by itself, and what is known of pods that failed."""

    def __init__(self) -> None:
        pods: dict[str, Pod] = {}
        self.nominator = Nominator(pods.get)
        self.known = Looks({PROFILE: ()}, self.nominator)
        self.queue = ActiveQueue(priority_sort, self.known, self.nominator, clock=FakeClock(START))
        self.now = START

    def queued(self, name: str, **fields: Any) -> QueuedPodInfo:
        self.now += 1
        return QueuedPodInfo(PodInfo(pod(name, **fields)), timestamp=self.now)

    def add(self, name: str, **fields: Any) -> None:
        self.queue.add(self.queued(name, **fields))

    def pop(self) -> str | None:
        queued = self.queue.pop()
        return None if queued is None else queued.pod.metadata.name

    def has_of_signature(self, failed: QueuedPodInfo) -> bool:
        signature = self.known.signature_of(failed)
        return any(self.known.signature_of(queued) == signature for queued in self.queue)

    def expected(self) -> str | None:
        """Return who is next: the first that may get a node, if there is none the first of all."""
        waiting = self.queue.in_order()
        for queued in waiting:
            if (
                self.nominator.nominated_node(queued.uid) is not None
                or self.known.bound_to_fail(queued) is None
            ):
                return queued.pod.metadata.name
        return waiting[0].pod.metadata.name if waiting else None


sizes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 4),
        "memory": st.integers(1, 4),
        "labels": st.sampled_from([{}, {"app": "a"}]),
    }
)
steps = st.one_of(
    st.tuples(st.just("add"), sizes, st.integers(0, 1)),
    st.tuples(st.sampled_from(["learn", "forget"]), sizes, st.integers(0, 1)),
    st.tuples(st.sampled_from(["pop", "pass over", "delete", "grow", "forget above"])),
)


@settings(max_examples=300)
@given(st.lists(steps, max_size=60), st.data())
def test_the_next_is_the_first_that_may_get_a_node(happens: list[Any], data: st.DataObject) -> None:
    active = Active()
    queue, known = active.queue, active.known
    for number, (kind, *about) in enumerate(happens):
        name = f"p{number}"
        waiting = [queued.key for queued in queue.in_order()]
        match kind, *about:
            case "add", fields, priority:
                active.add(name, priority=priority, **fields)
            case "learn", fields, priority:
                failed = active.queued(name, priority=priority, **fields)
                # One that is passed over stays so when its own signature is known to fail, too.
                if not active.has_of_signature(failed):
                    known.learn(failed, FITS_NOWHERE)
            case "forget", fields, priority:
                known.forget(active.queued(name, priority=priority, **fields))
            case ("forget above",):
                known.forget_above(0)
            case ("pass over",):
                at_once(queue.passing_over())
            case ("delete",) if waiting:
                queue.remove(data.draw(st.sampled_from(waiting)))
            case ("grow",) if waiting:
                queued = queue.get(data.draw(st.sampled_from(waiting)))
                assert queued is not None
                fields = data.draw(sizes)
                queued.pod_info = PodInfo(
                    pod(queued.pod.metadata.name, priority=queued.priority, **fields)
                )
                queue.reorder(queued)
            case ("pop",):
                expected = active.expected()
                if expected is not None and may_get_a_node(active, expected):
                    assert queue.has_promising
                assert active.pop() == expected
        queue.check_invariants()
    while (expected := active.expected()) is not None:
        assert active.pop() == expected
    assert active.pop() is None


def may_get_a_node(active: Active, name: str) -> bool:
    queued = active.queue.get(f"default/{name}")
    return queued is not None and active.known.bound_to_fail(queued) is None


def test_a_failure_that_comes_and_goes_does_not_have_all_looked_at_again() -> None:
    active = Active()
    failed: QueuedPodInfo | None = active.queued("failed", cpu=4)
    assert failed is not None
    active.known.learn(failed, FITS_NOWHERE)
    for number in range(1_000):
        active.add(f"p{number}", cpu=5 + number)
    active.add("small", cpu=1)
    assert active.pop() == "small"
    looks = active.known.count
    for number in range(100):
        active.known.forget(failed)
        failed = active.queue.pop()
        assert failed is not None
        assert failed.pod.metadata.name == f"p{number}"
        active.known.learn(failed, FITS_NOWHERE)
        active.add(f"small-{number}", cpu=1)
        assert active.pop() == f"small-{number}"

    assert active.known.count - looks < 1_000
    active.queue.check_invariants()


def test_a_pod_that_changes_while_it_gives_way_is_what_it_has_become() -> None:
    active = Active()
    failed = active.queued("failed", cpu=4)
    active.known.learn(failed, FITS_NOWHERE)
    active.add("grows", cpu=5)
    active.add("small", cpu=1)
    assert active.pop() == "small"
    queued = active.queue.get("default/grows")
    assert queued is not None
    queued.pod_info = PodInfo(pod("grows", cpu=7))
    active.queue.reorder(queued)
    active.add("another", cpu=8)
    active.known.forget(failed)
    active.known.learn(active.queued("failed", cpu=6), FITS_NOWHERE)
    active.add("small", cpu=1)

    assert active.pop() == "small"


def test_those_that_are_gone_are_dropped() -> None:
    active = Active()
    active.known.learn(active.queued("failed", cpu=4), FITS_NOWHERE)
    for number in range(1_000):
        active.add(f"p{number}", cpu=5)
    at_once(active.queue.passing_over())
    for number in range(1_000):
        active.queue.remove(f"default/p{number}")
    active.add("another", cpu=5)

    assert active.queue.num_kept < 100


def test_kinds_beyond_the_most_keep_their_place() -> None:
    active = Active()
    for number in range(MOST_KINDS + 1):
        labels = {"app": f"a{number}"}
        active.known.learn(active.queued(f"failed-{number}", cpu=4, labels=labels), FITS_NOWHERE)
        active.add(f"p{number}", cpu=5, labels=labels)
    active.add("small", cpu=1)

    assert [active.pop(), active.pop(), active.pop()] == [f"p{MOST_KINDS}", "small", "p0"]


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
