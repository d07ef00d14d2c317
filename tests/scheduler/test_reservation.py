"""What a pod holds on its node, and how all of it is given back (spec §2.7)."""

from contextlib import ExitStack

import pytest

from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.profile import Profile
from berth.scheduler.reservation import assume, reserve
from berth_plugins.priority_sort import PrioritySort
from tests.builders import node, pod

ASSUMED = PodInfo(pod("p")).on_node("n1")


class Keeper(ReservePlugin):
    """Notes what is asked of it, and how many pods the cache counts then."""

    NAME = "Keeper"

    def __init__(self, cache: Cache, answer: Status | None = None) -> None:
        super().__init__()
        self.cache = cache
        self.answer = answer
        self.calls: list[tuple[str, int]] = []

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.calls.append(("reserve", self.cache.counts()["assumed_pods"]))
        return self.answer

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.calls.append(("unreserve", self.cache.counts()["assumed_pods"]))


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    cache.add_node(node("n1"))
    return cache


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="reserved"),
        pytest.param(Status.unschedulable("no"), id="rejected"),
        pytest.param(Status.error("broken"), id="failed"),
    ],
)
def test_a_pod_is_unreserved_before_it_is_forgotten(cache: Cache, answer: Status | None) -> None:
    keeper = Keeper(cache, answer)
    profile = Profile("default", {"queue_sort": [PrioritySort()], "reserve": [keeper]}, weights={})
    with ExitStack() as undo:
        assert assume(ASSUMED, cache, undo) is None
        status = reserve(ASSUMED, profile, CycleState(), undo)
        assert (status is None) == (answer is None)
        assert cache.is_assumed(ASSUMED.uid)

    assert keeper.calls == [("reserve", 1), ("unreserve", 1)]
    assert cache.counts()["assumed_pods"] == 0


def test_a_pod_that_the_cache_has_already_is_not_assumed_and_not_forgotten(cache: Cache) -> None:
    cache.assume_pod(ASSUMED)
    with ExitStack() as undo:
        status = assume(ASSUMED, cache, undo)
        assert status is not None
        assert not status.is_rejected
    assert cache.is_assumed(ASSUMED.uid)


def test_a_pod_that_the_watch_says_is_bound_stays(cache: Cache) -> None:
    with ExitStack() as undo:
        assume(ASSUMED, cache, undo)
        cache.add_pod(PodInfo(pod("p", node="n1")))
    assert cache.counts() == {"nodes": 1, "pods": 1, "assumed_pods": 0}
