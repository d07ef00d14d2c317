"""The cache: a pod's states, ghost nodes, the order of nodes."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.kube.objects.selectors import EVERYTHING, selector_from_map
from berth.scheduler.cache.cache import Cache, CacheError
from berth.scheduler.cache.node_tree import NodeTree
from berth.scheduler.framework.node_table import CPU
from berth.scheduler.framework.pod_counters import PodMatcher
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import node, pod

ALL = PodMatcher(None, EVERYTHING, skip_terminating=False)


def bound(name: str, on: str, *, cpu: int = 1, version: str = "1") -> PodInfo:
    return PodInfo(pod(name, node=on, cpu=cpu, version=version))


def cache_with(*names: str) -> Cache:
    cache = Cache()
    for name in names:
        cache.add_node(node(name, cpu=8))
    return cache


def counts(cache: Cache, *matchers: PodMatcher) -> list[int]:
    """How many pods each of *matchers* matches, on all nodes."""
    return [int(cache.table.pod_counters.counts(matcher).sum()) for matcher in matchers]


def used(cache: Cache) -> dict[str, int]:
    """Whole CPUs requested, by node."""
    table = cache.table
    return {name: int(table.requested[CPU, row]) // 1000 for name, row in table.row_of.items()}


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    cache = cache_with("n1")
    cache.assume_pod(bound("a", "n1"))
    assert used(cache) == {"n1": 1}
    assert cache.is_assumed("pod-default-a")

    cache.forget_pod(bound("a", "n1"))

    assert used(cache) == {"n1": 0}
    assert cache.counts() == {"nodes": 1, "pods": 0, "assumed_pods": 0}


def test_the_watch_confirms_an_assumed_pod() -> None:
    cache = cache_with("n1")
    cache.assume_pod(bound("a", "n1"))
    cache.add_pod(bound("a", "n1", version="2"))

    assert used(cache) == {"n1": 1}
    assert not cache.is_assumed("pod-default-a")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(pod("a", node="n1", cpu=1, version="2"), id="nothing that counts"),
        pytest.param(pod("a", node="n1", cpu=2), id="requests, by a resize"),
        pytest.param(pod("a", node="n1", cpu=1, labels={"app": "web"}), id="labels"),
        pytest.param(pod("a", node="n1", cpu=1, deleted="2026-01-01T00:00:00Z"), id="terminating"),
    ],
)
def test_what_changes_in_a_bound_pod_is_counted(changed: Pod) -> None:
    cache = cache_with("n1")
    everything = PodMatcher(None, EVERYTHING, skip_terminating=True)
    web = PodMatcher(None, selector_from_map({"app": "web"}), skip_terminating=False)
    cache.add_pod(bound("a", "n1"))
    assert counts(cache, everything, web) == [1, 0]
    generation = cache.table.last_generation

    cache.update_pod(PodInfo(changed))

    known = cache.pod(changed.metadata.uid)
    assert known is not None
    assert known.pod is changed
    assert counts(cache, everything, web) == [
        0 if changed.metadata.deletion_timestamp else 1,
        1 if changed.metadata.labels else 0,
    ]
    assert cache.table.last_generation > generation
    cache.check_invariants()
    cache.table.pod_counters.check_invariants()


def test_a_pod_bound_elsewhere_than_assumed_is_moved() -> None:
    cache = cache_with("n1", "n2")
    cache.assume_pod(bound("a", "n1"))
    cache.add_pod(bound("a", "n2"))

    assert used(cache) == {"n1": 0, "n2": 1}


def test_an_update_replaces_what_the_pod_takes() -> None:
    cache = cache_with("n1")
    cache.add_pod(bound("a", "n1", cpu=1))
    cache.update_pod(bound("a", "n1", cpu=3))

    assert used(cache) == {"n1": 3}


def test_pods_outlive_their_node_as_a_ghost() -> None:
    cache = cache_with("n1")
    cache.add_pod(bound("a", "n1"))
    cache.remove_node("n1")
    assert cache.counts() == {"nodes": 1, "pods": 1, "assumed_pods": 0}

    cache.add_node(node("n1", cpu=8))
    assert used(cache) == {"n1": 1}

    cache.remove_node("n1")
    cache.remove_pod(bound("a", "n1").pod)
    assert cache.counts() == {"nodes": 0, "pods": 0, "assumed_pods": 0}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        pytest.param(
            lambda c: c.assume_pod(bound("known", "n1")), "cannot be assumed", id="assume a known"
        ),
        pytest.param(
            lambda c: c.forget_pod(bound("known", "n1")), "was not assumed", id="forget an added"
        ),
        pytest.param(
            lambda c: c.forget_pod(bound("assumed", "n2")),
            "assumed on 'n2' but is on 'n1'",
            id="forget on another node",
        ),
        pytest.param(lambda c: c.add_pod(bound("known", "n1")), "already added", id="add twice"),
        pytest.param(
            lambda c: c.update_pod(bound("assumed", "n1")), "was not added", id="update assumed"
        ),
        pytest.param(
            lambda c: c.remove_pod(bound("unknown", "n1").pod), "not in the cache", id="remove none"
        ),
        pytest.param(lambda c: c.remove_node("n9"), "'n9' is not in", id="remove unknown node"),
    ],
)
def test_contradictions_are_refused_and_change_nothing(
    wrong: Callable[[Cache], None], why: str
) -> None:
    cache = cache_with("n1", "n2")
    cache.add_pod(bound("known", "n1"))
    cache.assume_pod(bound("assumed", "n1"))

    with pytest.raises(CacheError, match=why):
        wrong(cache)

    cache.check_invariants()
    assert used(cache) == {"n1": 2, "n2": 0}


def test_nodes_alternate_between_zones() -> None:
    tree = NodeTree()
    for row, zone in enumerate("aabac"):
        tree.add(node(f"n{row}", zone=zone), row)

    assert tree.rows() == [0, 2, 4, 1, 3]


def test_a_node_that_changes_zone_goes_to_its_end() -> None:
    tree = NodeTree()
    for row, zone in enumerate("abb"):
        tree.add(node(f"n{row}", zone=zone), row)
    tree.update(node("n0", zone="a"), node("n0", zone="b"))

    assert tree.rows() == [1, 2, 0]


def test_a_zone_change_reorders_only_with_the_next_addition() -> None:
    cache = Cache()
    for name, zone in [("a1", "a"), ("b1", "b"), ("b2", "b")]:
        cache.add_node(node(name, zone=zone))
    cache.refresh_order()
    cache.update_node(node("a1", zone="b"))
    cache.refresh_order()
    assert list(cache.table.names(cache.table.order)) == ["a1", "b1", "b2"]

    cache.add_node(node("c1", zone="c"))
    cache.refresh_order()
    assert list(cache.table.names(cache.table.order)) == ["b1", "c1", "b2", "a1"]


names = st.sampled_from(["n1", "n2", "n3"])
uids = st.sampled_from(["a", "b", "c", "d"])
operations = st.one_of(
    st.tuples(st.just("add_node"), names, st.integers(1, 9)),
    st.tuples(st.just("remove_node"), names, st.just(0)),
    st.tuples(st.just("assume"), uids, names),
    st.tuples(st.just("forget"), uids, st.just(0)),
    st.tuples(st.just("add"), uids, names),
    st.tuples(st.just("update"), uids, names),
    st.tuples(st.just("remove"), uids, st.just(0)),
)


@given(st.lists(operations, max_size=40))
def test_no_sequence_of_events_makes_cache_and_table_disagree(
    steps: list[tuple[str, str, object]],
) -> None:
    cache = Cache()
    for step, (what, name, value) in enumerate(steps):
        known = cache.pod(f"pod-default-{name}")
        try:
            match what:
                case "add_node":
                    cache.add_node(node(name, cpu=str(value), zone=f"z{step % 2}"))
                case "remove_node":
                    cache.remove_node(name)
                case "assume":
                    cache.assume_pod(bound(name, str(value), cpu=step))
                case "add":
                    cache.add_pod(bound(name, str(value), cpu=step))
                case "update":
                    cache.update_pod(bound(name, str(value), cpu=step))
                case "forget" if known is not None:
                    cache.forget_pod(known)
                case "remove" if known is not None:
                    cache.remove_pod(known.pod)
        except CacheError:
            pass  # refused; the state must be as good as before
        cache.refresh_order()
        cache.check_invariants()
        assert sorted(cache.table.names(cache.table.order)) == sorted(cache.table.row_of)


pod_uids = st.sampled_from([f"p{number}" for number in range(14)])
pod_steps = st.one_of(
    st.tuples(st.sampled_from(["add", "add", "add", "update", "assume"]), pod_uids, names),
    st.tuples(st.sampled_from(["forget", "remove", "nested"]), pod_uids, st.just("n1")),
)


@given(st.lists(st.lists(pod_steps, max_size=20), max_size=3))
def test_pods_that_are_added_together_count_as_one_by_one(
    blocks: list[list[tuple[str, str, str]]],
) -> None:
    def apply(cache: Cache, what: str, name: str, on: str) -> None:
        known = cache.pod(f"pod-default-{name}")
        try:
            match what:
                case "assume":
                    cache.assume_pod(bound(name, on, cpu=2))
                case "add":
                    cache.add_pod(bound(name, on, cpu=3))
                case "update":
                    cache.update_pod(bound(name, on, cpu=4))
                case "nested":
                    with cache.together():
                        apply(cache, "add", name, on)
                case "forget" if known is not None:
                    cache.forget_pod(known)
                case "remove" if known is not None:
                    cache.remove_pod(known.pod)
        except CacheError:
            pass

    one, other = cache_with("n1", "n2"), cache_with("n1", "n2")
    for steps in blocks:
        with one.together():
            for step in steps:
                apply(one, *step)
        for step in steps:
            apply(other, *step)
        assert used(one) == used(other)
        assert counts(one, ALL) == counts(other, ALL)
        assert one.counts() == other.counts()
        one.check_invariants()


def test_without_some_pods_their_room_is_free_until_they_are_back() -> None:
    groups = PodGroups()
    cache = Cache(groups)
    cache.add_node(node("a", cpu=8))
    of_group = pod("in-group", node="a", cpu=2)
    spec = msgspec.structs.replace(of_group.spec, scheduling_group=SchedulingGroup("g"))
    pods = [
        bound("one", "a"),
        bound("ghost", "gone", cpu=4),
        PodInfo(msgspec.structs.replace(of_group, spec=spec)),
    ]
    for each in pods:
        cache.add_pod(each)
    before = groups.snapshot()
    with cache.without_all([*pods, bound("stranger", "a")]):
        assert used(cache) == {"a": 0}
        assert counts(cache, ALL) == [0]
        assert not len(groups)
    assert used(cache) == {"a": 3}
    assert counts(cache, ALL) == [2]
    assert groups.snapshot() == before
    cache.check_invariants()
