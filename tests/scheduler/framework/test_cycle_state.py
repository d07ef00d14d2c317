"""A copy of what an attempt remembers has all of it, and goes its own way."""

from berth.scheduler.framework.cycle_state import CycleState, Gang
from berth.scheduler.framework.status import Status
from tests.builders import pod


def test_a_clone_has_all_that_is_remembered() -> None:
    state = CycleState()
    state.write("plugin", "value")
    state.own(1).write("plugin", "of the row")
    state.skip_filter.add("filter")
    state.skip_score.add("score")
    state.pods_to_activate["default/other"] = pod("other")
    state.gang = Gang("gang train", ("default/other",), "plugin")
    state.claim_statuses = {"node": ()}
    state.on_trial = frozenset({"uid"})
    state.placement = CycleState()
    state.out_of_time.append(Status.error("out of time"))
    state.is_sampled = True

    twin = state.clone()

    assert twin.at(1).read("plugin") == "of the row"
    assert twin.feasible is state.feasible
    for slot in set(CycleState.__slots__) - {"_of_rows", "feasible"}:
        assert getattr(twin, slot) == getattr(state, slot), slot


def test_what_a_clone_remembers_is_its_own() -> None:
    state = CycleState()
    twin = state.clone()
    twin.write("plugin", "value")
    twin.skip_filter.add("filter")
    twin.skip_score.add("score")

    assert (state.get("plugin"), state.skip_filter, state.skip_score) == (None, set(), set())
