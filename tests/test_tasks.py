"""Long looks that let others have their turn."""

import asyncio

import pytest

from berth.tasks import PIECE, in_turns


@pytest.mark.parametrize(
    ("count", "turns"),
    [
        pytest.param(0, 0, id="nothing to look at"),
        pytest.param(PIECE, 0, id="one piece, no turn for others"),
        pytest.param(PIECE + 1, 1, id="two pieces"),
        pytest.param(3 * PIECE, 2, id="three pieces"),
    ],
)
async def test_others_get_a_turn_between_two_pieces(count: int, turns: int) -> None:
    taken = 0

    async def other() -> None:
        nonlocal taken
        while True:
            await asyncio.sleep(0)
            taken += 1

    beside = asyncio.create_task(other(), name="other")
    await asyncio.sleep(0)
    seen: list[int] = []
    async for piece in in_turns(range(count)):
        seen += piece
    beside.cancel()

    assert seen == list(range(count))
    assert taken == turns
