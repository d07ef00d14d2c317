"""Work that nobody waits for."""

import asyncio

import pytest

from app.scheduler.background import Background


async def test_work_is_done_in_a_task_of_its_own_name() -> None:
    background, done = Background(), asyncio.Event()
    names: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())
        done.set()

    running = asyncio.create_task(background.run(), name="background")
    background.start("release claim", work)
    assert not background.is_idle
    await done.wait()
    await asyncio.sleep(0)
    assert (names, background.is_idle) == (["release claim"], True)
    running.cancel()
    await asyncio.wait([running])


async def test_a_failure_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    background = Background()

    async def fail() -> None:
        raise OSError("no route")

    background.start("delete claim", fail)
    job = background.take()
    assert job is not None
    await background.do(job)
    assert [record.message for record in caplog.records] == ["background work failed"]
    assert background.is_idle
    assert background.take() is None
