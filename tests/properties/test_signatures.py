"""One failed attempt for a signature comes to the same as one attempt for each of its pods.

Whatever happens, a pod that was not tried would not have found a node, nor anybody to evict, had
it been tried: so nobody waits longer or gets less. What it is told may be older than that: the
words, and who rejected it, are those of the attempt that was made, which is what the pod that was
tried is told as well. Where words cannot age, for there is only one reason to reject anybody, all
that can be seen is the same as if each pod had been tried. Dice are taken away, for fewer attempts
throw fewer.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.outcome import CLEAR, Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.schedule_pod import schedule_pod
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
    taint,
)
from tests.harness import Harness


class NoDice(random.Random):
    """Always the first of several."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, k: int, /) -> int:
        return 0


@dataclass(frozen=True)
class Kind:
    """A template: few of them, so that many pods have the same signature."""

    cpu: int
    app: str
    priority: int
    near: str
    keeps_off: str
    spreads: bool

    def pod(self, name: str) -> Pod:
        near, off = self.near, self.keeps_off
        wanted = affinities(
            *([pod_anti_affinity(required=[pod_term({"app": off}, key=HOSTNAME)])] if off else []),
            *([pod_affinity(required=[pod_term({"app": near}, key=ZONE)])] if near else []),
        )
        return pod(
            name,
            labels={"app": self.app},
            cpu=self.cpu,
            priority=self.priority,
            affinity=wanted if near or off else None,
            spread=[spread(ZONE, selector=selector({"app": self.app}))] if self.spreads else [],
        )


Step = Callable[[Harness], None]
Histories = st.SearchStrategy[list[Step]]
NAMES = [f"p{n}" for n in range(8)]


def arrive(kind: Kind, names: list[str]) -> Step:
    def step(harness: Harness) -> None:
        for name in names:
            if f"default/{name}" not in harness.cluster.pods:
                harness.put(kind.pod(name))

    return step


def leave(name: str) -> Step:
    def step(harness: Harness) -> None:
        gone = harness.cluster.pods.get(f"default/{name}")
        if gone is not None:
            harness.delete(gone)

    return step


def change(new: Node) -> Step:
    return lambda harness: harness.put(new)


def wait(seconds: int) -> Step:
    def step(harness: Harness) -> None:
        harness.clock.advance(seconds)
        harness.queue.flush_backoff_completed()
        harness.queue.flush_unschedulable_pods_leftover()

    return step


def activate(name: str) -> Step:
    def step(harness: Harness) -> None:
        asked_for = harness.cluster.pods.get(f"default/{name}")
        if asked_for is not None and not asked_for.spec.node_name:
            harness.queue.activate([asked_for])

    return step


apps = st.sampled_from(["x", "y"])
nothing = st.just("")
some_app = st.sampled_from(["", "", "", "x", "y"])
names = st.sampled_from(NAMES)
kinds = st.builds(
    Kind,
    cpu=st.integers(1, 3),
    app=apps,
    priority=st.sampled_from([0, 0, 5]),
    near=some_app,
    keeps_off=some_app,
    spreads=st.sampled_from([False, False, True]),
)
nodes = st.builds(
    lambda name, cpu, zone, tainted: node(
        name, cpu=cpu, zone=zone, taints=[taint("dedicated")] if tainted else []
    ),
    st.sampled_from(["n1", "n2", "n3"]),
    st.integers(1, 4),
    st.sampled_from(["a", "b"]),
    st.sampled_from([False, False, True]),
)
plain = st.builds(
    Kind,
    cpu=st.integers(1, 3),
    app=apps,
    priority=st.sampled_from([0, 0, 5]),
    near=nothing,
    keeps_off=nothing,
    spreads=st.sampled_from([False]),
)


def histories(of_kinds: st.SearchStrategy[Kind], *more: st.SearchStrategy[Step]) -> Histories:
    steps = st.one_of(
        st.builds(arrive, of_kinds, st.lists(names, min_size=1, max_size=6, unique=True)),
        st.builds(leave, names),
        st.builds(wait, st.sampled_from([1, 11, 400])),
        st.builds(activate, names),
        *more,
    )
    return st.lists(steps, min_size=2, max_size=12)


def outcome(harness: Harness) -> dict[str, object]:
    queue, pods = harness.queue, harness.cluster.pods
    waiting = {key: queue.sub_queues.get(key) for key in pods}
    return {
        "placements": harness.placements(),
        "nominations": {key: pod.status.nominated_node_name for key, pod in pods.items()},
        "conditions": {
            key: (told.reason, told.message) for key, told in harness.cluster.conditions.items()
        },
        "events": {event.pod: event for event in harness.cluster.events},
        "attempts": {key: queued.attempts for key, queued in waiting.items() if queued},
        "failures": {key: queued.unschedulable_count for key, queued in waiting.items() if queued},
        "places": {key: queue.sub_queues.place_of(key) for key in pods},
    }


@settings(max_examples=50)
@given(histories(kinds, st.builds(change, nodes)), st.booleans())
async def test_who_is_answered_for_would_have_found_nothing(
    history: list[Step], lingers: bool
) -> None:
    harness = Harness(rng=NoDice())
    harness.cluster.lets_victims_linger = lingers
    harness.put(node("n1", cpu=2, zone="a"), node("n2", cpu=2, zone="b"))
    (profile,) = harness.scheduler.profiles.values()

    def check(key: str) -> None:
        info = PodInfo(harness.cluster.pods[key])
        harness.cache.refresh_order()
        nominated = harness.queue.nominator.nominated_pods()
        cycle = Cycle(profile, info, harness.cache.table, nominated)
        outcome = schedule_pod(cycle, select=min)
        assert isinstance(outcome, Unschedulable), key
        assert run_post_filter_plugins(cycle, outcome).nomination == CLEAR, key

    for step in history:
        step(harness)
        while (queued := harness.queue.pop()) is not None:
            if harness.scheduler.apply_cached_failure(queued):
                check(queued.key)
                continue
            for binding in await harness.scheduler.schedule_one(queued):
                await harness.scheduler.binding_cycle.run(binding)
        await harness.until_idle()


@settings(max_examples=50)
@given(histories(plain))
async def test_where_words_cannot_age_all_is_the_same(history: list[Step]) -> None:
    once = Harness(rng=NoDice())
    each = Harness(rng=NoDice(), uses_signatures=False)
    for harness in (once, each):
        harness.put(node("n1", cpu=2), node("n2", cpu=2))
    for step in history:
        for harness in (once, each):
            step(harness)
            await harness.until_idle()
        assert outcome(once) == outcome(each)
    assert not any(record.answered_by for record in each.scheduler.decisions.all())
