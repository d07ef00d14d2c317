"""Whatever happens to a small cluster, a replay decides as was decided then."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.recording import lines
from tests.insight.recording.world import EXTENDER, RecordedWorld, config, replayed
from tests.scheduler.pod_group.building import GATES


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([0.0, 0.05, 0.5]),
    nodes=st.integers(1, 8),
    plain=st.booleans(),
    groups=st.booleans(),
    extender=st.booleans(),
)
def test_a_replay_decides_as_was_decided(
    seed: int, faults: float, nodes: int, *, plain: bool, groups: bool, extender: bool
) -> None:
    async def live_twice() -> None:
        world = RecordedWorld(
            seed=seed,
            faults=faults,
            nodes=nodes,
            plain=plain,
            configuration=config(
                featureGates=dict.fromkeys(GATES, groups),
                extenders=[EXTENDER] if extender else [],
            ),
        )
        await world.live(attempts=20)
        read = map(lines.decode, world.lines)
        made = [each for each in read if isinstance(each, lines.Attempt)]

        following = (await replayed(world.lines)).following

        assert following.decisions == sum(len(each.decisions) for each in made) > 0
        assert following.differences == []

    asyncio.run(live_twice())
