"""What a scheduler decided is decided again, in every field and in the same order."""

import pytest

from berth.config.types import KubeSchedulerConfiguration
from berth.recording import lines
from berth.recording.lines import Decision
from tests.recording.world import RecordedWorld, config, replayed

SCORES_50 = config(
    profiles=[
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "NodeResourcesBalancedAllocation", "weight": 50}]
                }
            }
        }
    ]
)
WITHOUT_NODE_AFFINITY = config(
    profiles=[{"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}]
)
WITHOUT_PREEMPTION = config(profiles=[{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}])
SAMPLED = config(percentageOfNodesToScore=10)


def decisions(recorded: list[bytes]) -> list[Decision]:
    read = map(lines.decode, recorded)
    return [each for line in read if isinstance(line, lines.Attempt) for each in line.decisions]


async def recording(
    *, attempts: int, configuration: KubeSchedulerConfiguration | None = None, seed: int = 1
) -> list[bytes]:
    world = RecordedWorld(seed=seed, configuration=configuration)
    await world.live(attempts=attempts)
    return world.lines


async def test_all_decisions_are_made_again() -> None:
    recorded = await recording(attempts=500)

    replay = await replayed(recorded)

    made = decisions(recorded)
    assert replay.following.decisions == len(made) >= 500
    assert replay.following.differences == []
    # Of everything something has happened.
    assert {each.result for each in made} == {"scheduled", "unschedulable"}
    assert any(each.victims for each in made)
    assert any(each.equals for each in made)
    assert any(each.answered_by for each in made)
    read = [lines.decode(line) for line in recorded]
    assert any(isinstance(line, lines.Bound) and line.code for line in read)
    for kind in (lines.Preempt, lines.Answer, lines.Woke, lines.Flush, lines.Deleted):
        assert any(isinstance(line, kind) for line in read), kind


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
async def test_days_are_lived_again(seed: int) -> None:
    recorded = await recording(attempts=800, seed=seed)

    replay = await replayed(recorded)

    assert replay.following.decisions == len(decisions(recorded)) >= 800
    assert replay.following.differences == []
