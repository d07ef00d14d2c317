"""Nothing that a user may create in a namespace of his own stops, slows or deceives the others.

Everything runs in this process, as ``berth up`` runs it: API server, controllers, kubelets and
scheduler share the event loop, so what blocks one blocks all and the loop's longest turn tells.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests.hostile_objects import ATTACKS
from tests.hostile_requests import CORE, Attack, Request, Want
from tests.hostile_text import misread
from tests.loop_turns import LoopTurns, watched_loop
from tests.tools.up.guest import World, world_with_guest

pytestmark = [
    pytest.mark.wall,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("root_logger"),
]

ORDINARY: Final = 20
"""Pods that are placed to see how fast that goes."""
SLOWER: Final = 10
"""How many times longer than with ordinary requests of that size a turn of the loop may take."""
MEMORY_FACTOR: Final = 3
ECHO_FACTOR: Final = 10
"""How many times longer than what is refused an answer may be; API servers name what is wrong."""
SHORT_BYTES: Final = 10_000
"""Shorter answers are never too long."""


async def ordinary_use(world: World) -> LoopTurns:
    """Do what is large, but not hostile; return the turns of the loop."""
    container = {"name": "c", "image": "i"}
    async with watched_loop() as turns:
        await world.place("warm", ORDINARY)
        for path, body in (
            (f"{CORE}/configmaps", {"metadata": {"name": "large"}, "data": {"a": "x" * 900_000}}),
            (
                f"{CORE}/pods",
                {
                    "metadata": {"name": "large", "annotations": {"a": "x" * 200_000}},
                    "spec": {"containers": [container | {"name": f"c{i}"} for i in range(500)]},
                },
            ),
        ):
            for answer in await world.send([Request(path, body), Request(path, method="GET")]):
                assert answer.is_success, answer.text
        await world.until_idle()
        await world.clear()
    return turns


def resident() -> int:
    """Return this process' memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


async def strike(world: World, attack: Attack) -> str:
    """Do it; return what is wrong with the answer, nothing if it is as it should be."""
    answers = await world.send(attack.make())
    refusals = [answer for answer in answers if not answer.is_success]
    told = (
        "; ".join(f"{refusal.status_code} {refusal.text[:300]}" for refusal in refusals)
        or "accepted"
    )
    if any(not refusal.is_client_error for refusal in refusals):
        return f"{attack.name}: {told}"
    is_fit = {
        Want.ACCEPTED: not refusals,
        Want.REFUSED: any(attack.why in refusal.text for refusal in refusals),
        Want.EITHER: True,
    }[attack.want]
    if not is_fit:
        return f"{attack.name}: want {attack.want.value} {attack.why}, got {told}"
    for refusal in refusals:
        sent = len(str(refusal.request.url)) + len(refusal.request.content)
        if len(refusal.content) > max(SHORT_BYTES, ECHO_FACTOR * sent):
            return f"{attack.name}: {sent} bytes are refused in {len(refusal.content)}"
    return ""


class Worlds:
    """A running world for one attack after the other; a new one after an attack that did harm."""

    def __init__(self) -> None:
        self._running = AsyncExitStack()
        self._found: tuple[World, LoopTurns] | None = None

    @asynccontextmanager
    async def one(self, folder: Path) -> AsyncIterator[tuple[World, LoopTurns]]:
        """Yield a world and how the loop turns there in ordinary use."""
        if self._found is None:
            world = await self._running.enter_async_context(world_with_guest(folder))
            self._found = world, await ordinary_use(world)
        await self._found[0].until_well()
        try:
            yield self._found
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        self._found = None
        await self._running.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worlds() -> AsyncIterator[Worlds]:
    found = Worlds()
    yield found
    await found.end()


@pytest.mark.parametrize("attack", [pytest.param(each, id=each.name) for each in ATTACKS])
async def test_one(attack: Attack, worlds: Worlds, tmp_path: Path) -> None:
    async with worlds.one(tmp_path) as (world, ordinary):
        async with watched_loop() as turns:
            problem = await strike(world, attack)
            attempts = await world.place("during", 2)
            await world.undo(attack)
            await world.until_idle()
        assert not problem
        assert attempts == [1, 1]
        assert turns.longest <= SLOWER * ordinary.longest
        assert set(world.probes) == {200}
        assert not [text for text in await world.tables() if misread(text)]
        assert not misread(world.logged.getvalue())
        await world.clear()


@pytest.mark.timeout(800)
async def test_all_of_it(tmp_path: Path) -> None:
    async with world_with_guest(tmp_path) as world:
        await all_of_it(world)


async def all_of_it(world: World) -> None:
    ordinary = await ordinary_use(world)
    before = await world.place("before", ORDINARY)
    memory = resident()

    problems, slow = [], {}
    for attack in ATTACKS:
        async with watched_loop() as turns:
            problems.append(await strike(world, attack))
            await world.until_probed()
        if turns.longest > SLOWER * ordinary.longest:
            slow[attack.name] = turns.longest
        await world.undo(attack)
    async with watched_loop() as turns:
        await world.until_idle()
        after = await world.place("after", ORDINARY)
    grown = resident()
    shown = await world.tables()
    await world.read_all()
    await world.clear()

    assert [problem for problem in problems if problem] == []
    assert slow == {}
    assert turns.longest <= SLOWER * ordinary.longest
    assert before == after == [1] * ORDINARY
    assert set(world.probes) == {200}
    assert grown <= MEMORY_FACTOR * memory
    assert len(shown) > len(ATTACKS) / 4
    for text in (*shown, "\n".join(world.said), world.logged.getvalue()):
        assert not misread(text)
