"""Searches that are interrupted: no answer is made of it, and nothing is decided without one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.devices import ResourceClaim, ResourceSlice
from berth.runtime.clock import FakeClock
from berth.runtime.duration import Duration
from berth.scheduler.framework.status import Code, Status
from berth_plugins.dynamic_resources.search_time import (
    BURST,
    LEAST_TIME,
    MAX_TIME,
    SHARE,
    SearchTime,
    deadline,
)
from berth_plugins.dynamic_resources.state import KEY, DevicesOfPod
from tests.builders import pod
from tests.device_builders import DRIVER, claim, device, exactly, resource_slice, with_claims
from tests.plugins.dynamic_resources.device_world import NO, SLICES, World

POD = pod("p", uid="me")
MINE = with_claims(POD, "c")


class Ticking(FakeClock):
    """Every look at it takes some time, of the processor too."""

    def __init__(self, tick: float) -> None:
        super().__init__()
        self.tick = tick
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        self.advance(self.tick)
        return super().monotonic()


class Stalling(FakeClock):
    """At some looks at it the processor has been busy for ten seconds."""

    def __init__(self, stalls: set[int]) -> None:
        super().__init__()
        self.stalls = stalls
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks in self.stalls:
            self.advance(10.0)
        return super().monotonic()


class Starved(Ticking):
    """The machine gives the thread no core; time passes."""

    def cpu_time(self) -> float:
        return 0.0


def ticking(tick: float, *objects: ResourceClaim | ResourceSlice, **args: Any) -> World:
    return World(*objects, clock=Ticking(tick), **args)


N1_TIMED_OUT = Status.error("node n1: timed out trying to allocate devices")


@pytest.mark.parametrize(
    ("tick", "args"),
    [
        pytest.param(0.03, {"filter_timeout": Duration.of(0.01)}, id="the time for a node"),
        pytest.param(6, {}, id="the time for the attempt"),
        pytest.param(6, {"filter_timeout": Duration.of(0)}, id="which nothing switches off"),
    ],
)
def test_a_search_that_takes_too_long_fails_the_attempt(tick: float, args: Any) -> None:
    world = ticking(tick, claim("c"), *SLICES, **args)
    assert world.filter(MINE) == {"n1": N1_TIMED_OUT, "n2": None, "n3": None}


@pytest.mark.parametrize("attempts", [1, 2, 5])
@pytest.mark.parametrize("tick", [0.03, 6])
def test_a_search_that_was_interrupted_is_made_again(tick: float, attempts: int) -> None:
    world = ticking(tick, claim("c"), *SLICES, filter_timeout=Duration.of(0.01))
    for _ in range(attempts):
        assert world.filter(MINE)["n1"] == N1_TIMED_OUT
    assert isinstance(world.clock, Ticking)
    world.clock.tick = 0
    assert world.filter(MINE) == {"n1": None, "n2": None, "n3": NO}


def test_a_machine_that_gives_no_core_interrupts_nothing() -> None:
    world = World(claim("c"), *SLICES, clock=Starved(60))
    assert world.filter(MINE) == {"n1": None, "n2": None, "n3": NO}


def test_what_was_not_searched_in_time_fails_the_attempt_whatever_was_found() -> None:
    world = ticking(0, claim("c"), *SLICES)
    world.filter(MINE)
    assert isinstance(world.clock, Ticking)
    looks_of_n1 = world.clock.looks // 3
    tick = 0.9 * MAX_TIME / looks_of_n1
    world = ticking(tick, claim("c"), *SLICES)
    answers = world.filter(MINE)
    late = {name for name, status in answers.items() if status and status.code is Code.ERROR}
    assert answers["n1"] is None
    assert len(late) == 1
    assert [status.message for status in world.state.out_of_time] == [
        f"node {name}: timed out trying to allocate devices" for name in late
    ]
    for _ in range(3):  # what was found is remembered: each attempt comes further
        answers = world.filter(MINE)
    assert answers == {"n1": None, "n2": None, "n3": NO}
    assert not world.state.out_of_time


def test_a_node_is_searched_again_if_devices_were_asked_for_the_first_time() -> None:
    devices = [device(f"d{n:02}", attributes={"n": n}) for n in range(20)]
    last = f"device.attributes['{DRIVER}'].n == 19"
    offered = resource_slice("s", *devices, node="n1")
    world = ticking(MAX_TIME / 20, offered, claim("c", exactly(1, where=[last])))
    assert world.filter(MINE)["n1"] == N1_TIMED_OUT
    assert isinstance(world.clock, Ticking)
    world.clock.tick = 0
    assert world.filter(MINE)["n1"] is None
    assert world.found == {"n1": ["d19"]}


ON_THE_NET = resource_slice("net", device("s"), device("t"), pool="net", all_nodes=True)
CLAIMS = (claim("c", exactly(2)), claim("d"), claim("e", exactly(3)))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([("c",), ("d",), ("e",), ("c", "d")]), st.sets(st.integers(1, 120))
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_whatever_is_interrupted_the_answers_are_those_of_a_search_that_is_not(
    attempts: list[tuple[tuple[str, ...], set[int]]], shared: bool
) -> None:
    slices = (*SLICES, ON_THE_NET) if shared else SLICES
    clock = Stalling(set())
    world = World(*CLAIMS, *slices, clock=clock)

    def check(names: tuple[str, ...], stalls: set[int]) -> None:
        a_pod = with_claims(POD, *names)
        clock.looks, clock.stalls = 0, stalls
        answers = world.filter(a_pod)
        want = World(*CLAIMS, *slices).filter(a_pod)
        failed = [status for status in answers.values() if status and status.code is Code.ERROR]
        assert bool(failed) == bool(world.state.out_of_time)
        assert failed or answers == want

    for names, stalls in attempts:
        check(names, stalls)
    clock.advance((BURST + 10 * 120) / SHARE)
    for names in (("c",), ("d",), ("e",), ("c", "d")):
        clock.stalls = set()
        check(names, set())
        assert not world.state.out_of_time


# Who pays.


def test_a_namespace_that_took_too_much_has_little_time_until_its_share_covers_it() -> None:
    clock = FakeClock()
    time = SearchTime(clock)
    grants = []
    for _ in range(5):
        grants.append(time.for_attempt("a"))
        time.charge("a", before=0.0, after=LEAST_TIME + MAX_TIME)
    assert grants == [MAX_TIME] * 4 + [LEAST_TIME]
    assert time.for_attempt("b") == MAX_TIME
    clock.advance(4.9 * MAX_TIME / SHARE)
    assert time.for_attempt("a") == LEAST_TIME
    clock.advance(0.2 * MAX_TIME / SHARE)
    assert time.for_attempt("a") == MAX_TIME


@pytest.mark.parametrize("parts", [1, 7])
def test_an_attempt_is_charged_once_for_what_goes_beyond_the_least(parts: int) -> None:
    time = SearchTime(FakeClock())
    for _ in range(1000):
        for n in range(parts):
            time.charge("a", before=LEAST_TIME * n / parts, after=LEAST_TIME * (n + 1) / parts)
    assert time.for_attempt("a") == MAX_TIME
    step = 2 * BURST / 5
    for n in range(5):
        time.charge("a", before=n * step, after=(n + 1) * step)
    assert time.for_attempt("a") == LEAST_TIME


def test_searches_that_succeed_are_charged() -> None:
    world = ticking(0, claim("c"), *SLICES)
    world.filter(MINE)
    assert isinstance(world.clock, Ticking)
    tick = 0.9 * MAX_TIME / world.clock.looks
    world.clock.tick = tick

    def search_anew() -> float | None:
        for each in SLICES:
            world.cluster.listers.resource_slices.on_update(each, each)
        world.filter(MINE)
        devices: DevicesOfPod = world.state.read(KEY)
        return devices.search_time

    assert {search_anew() for _ in range(8)} == {MAX_TIME, LEAST_TIME}


class OneCore(FakeClock):
    """The thread gets a part of one core."""

    share = 0.5

    def cpu_time(self) -> float:
        return self.monotonic() * self.share


def test_a_deadline_counts_what_the_thread_has_taken() -> None:
    clock = OneCore(0.0)
    is_late = deadline(clock, 1.0)
    late = []
    for _ in range(6):
        clock.advance(0.5)
        late.append(is_late())
    assert late == [False] * 4 + [True] * 2
