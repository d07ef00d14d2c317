"""Long looks that let others have their turn."""

import asyncio

import pytest

from berth.runtime.tasks import PIECE, background, in_turns
from tests.loop_turns import turns_during


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
    seen: list[int] = []

    async def look() -> None:
        async for piece in in_turns(range(count)):
            seen.extend(piece)

    assert await turns_during(look) == turns
    assert seen == list(range(count))


async def test_background_tasks_end_with_their_block() -> None:
    ended = []

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("run")

    async with background() as start:
        start("run", run)
        await asyncio.sleep(0)
    assert ended == ["run"]


async def test_an_error_of_the_block_leaves_it_as_it_is() -> None:
    async def block() -> None:
        async with background() as start:
            start("run", asyncio.Event().wait)  # type: ignore[arg-type]  # it never returns
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await block()


async def test_what_a_background_task_dies_of_ends_the_block() -> None:
    async def run() -> None:
        raise LookupError("its own")

    async def block() -> None:
        async with background() as start:
            start("run", run)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await block()
    assert raised.group_contains(LookupError, match="its own")
