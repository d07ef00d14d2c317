"""A look back tells what a scheduler decided, from the recording alone, and changes nothing."""

from pathlib import Path
from typing import Any

import pytest

from berth.insight.recording import lines
from berth.insight.recording.looking_back import Asked, LookBack, LookBackError, look_back
from berth.insight.recording.past_cluster import PastCluster, after_time, attempts
from berth.insight.recording.runs import RecordedRun, runs
from berth_plugins.registry import IN_TREE
from tests.insight.recording.world import EXTENDER, RecordedWorld, config, sealed
from tests.scheduler.pod_group.building import GATES


async def recorded(path: Path, world: RecordedWorld, *, attempts: int = 100) -> RecordedRun:
    await world.live(attempts=attempts)
    return written(path, world.lines)


def written(path: Path, recorded: list[bytes]) -> RecordedRun:
    path.write_bytes(sealed(*recorded))
    (run,) = runs([path])
    return run


def asked(key: str) -> Asked:
    namespace, _, name = key.partition("/")
    return Asked(namespace, name, is_group=False, limit=3)


def last_decisions(run: RecordedRun) -> dict[str, tuple[lines.Attempt, lines.Decision]]:
    """Return, by pod, the attempt that is meant if no time is given."""
    last: dict[str, tuple[lines.Attempt, lines.Decision]] = {}
    for attempt in attempts(run):
        for decision in attempt.decisions:
            if decision.node or not (decision.pod in last and last[decision.pod][1].node):
                last[decision.pod] = attempt, decision
    return last


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="pods with volumes, spreading and preemption"),
        pytest.param({"extenders": [EXTENDER]}, id="an extender that answers late"),
        pytest.param({"featureGates": dict.fromkeys(GATES, True)}, id="groups of pods"),
    ],
)
async def test_the_decision_is_the_recorded_one_bit_for_bit(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    world = RecordedWorld(seed=3, configuration=config(**fields))
    run = await recorded(tmp_path / "day", world)
    nodes = set()
    for pod, (attempt, decision) in [*last_decisions(run).items()][::9]:
        told = await look_back([run], IN_TREE, asked(pod))
        deciding = told.deciding
        assert deciding is not None
        assert deciding.is_as_recorded
        assert deciding.attempt == attempt.number
        made = deciding.decision
        assert (made.pod, made.uid) == (decision.pod, decision.uid)
        assert (made.node, made.message) == (decision.node, decision.message)
        assert made.num_feasible == decision.num_feasible
        if made.best:
            assert decision.score in (made.best[0].total, None)
        assert told.explanation is not None
        assert told.explanation.state is not None
        assert told.explanation.state.node == ""  # not yet
        nodes.add(made.node)
    assert len(nodes) > 3


async def test_looking_between_all_steps_changes_no_decision(tmp_path: Path) -> None:
    run = await recorded(tmp_path / "day", RecordedWorld(seed=6), attempts=120)
    past, looks = PastCluster(run, IN_TREE), 0
    while past.next_step is not None:
        await past.step()
        waiting = [key for key, pod in past.view.pods.items() if not pod.spec.node_name]
        for key in waiting[:1]:
            assert past.explainer.explain(key, limit=1) is not None
            looks += 1
    await past.end()
    assert looks > 100
    assert past.replay.following.decisions >= 120
    assert past.replay.following.differences == []


async def test_a_time_shows_the_pod_as_it_was_then(tmp_path: Path) -> None:
    run = await recorded(tmp_path / "day", RecordedWorld(seed=7, faults=0.0))
    pod, (attempt, decision) = next(
        (pod, last) for pod, last in last_decisions(run).items() if last[1].node
    )
    late = await look_back([run], IN_TREE, asked(pod), at=attempt.t)
    assert late.deciding is None
    assert late.explanation is not None
    assert late.explanation.state is not None
    assert late.explanation.state.node == decision.node
    assert late.explanation.history[0].node == decision.node

    with pytest.raises(LookBackError, match=f"pod {pod}: was not there at"):
        await look_back([run], IN_TREE, asked(pod), at=run.header.t)


async def test_a_pod_that_was_never_tried(tmp_path: Path) -> None:
    run = await recorded(tmp_path / "day", RecordedWorld(seed=7), attempts=5)
    with pytest.raises(LookBackError, match="no attempt of it was recorded; name a time"):
        await look_back([run], IN_TREE, asked("default/nobody"))


async def test_the_clock_stands_at_the_time_that_is_asked_about(tmp_path: Path) -> None:
    run = await recorded(tmp_path / "day", RecordedWorld(seed=7), attempts=5)
    past = PastCluster(run, IN_TREE)
    await past.advance(after_time(run.header.t + 1e9))
    last = past.view.clock.now()
    assert past.set_clock(last - 1) == last
    assert past.set_clock(last + 60) == past.view.clock.now() == last + 60
    await past.end()


async def test_the_answer_can_be_told_as_json(tmp_path: Path) -> None:
    run = await recorded(tmp_path / "day", RecordedWorld(seed=8), attempts=30)
    pod = next(iter(last_decisions(run)))
    told = await look_back([run], IN_TREE, asked(pod))
    assert LookBack.model_validate_json(told.model_dump_json(by_alias=True)) == told
