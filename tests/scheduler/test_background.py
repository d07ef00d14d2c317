"""Work that nobody waits for."""

import asyncio
import logging

import pytest

from berth.kube.client import errors
from berth.kube.client.errors import FencedError, UnavailableError
from berth.scheduler.background import Background
from berth.scheduler.framework.writes import ConflictError


def conflict() -> ConflictError:
    told = ConflictError("changed")
    told.__cause__ = errors.ConflictError(409, "Conflict", "changed")
    return told


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


@pytest.mark.parametrize(
    ("error", "level", "has_traceback"),
    [
        pytest.param(
            UnavailableError("no route", sent=False), logging.WARNING, False, id="of the API"
        ),
        pytest.param(conflict(), logging.WARNING, False, id="of the API, in the plugins' words"),
        pytest.param(FencedError("not sent"), logging.DEBUG, False, id="another leads"),
        pytest.param(ValueError("a bug"), logging.ERROR, True, id="a bug"),
    ],
)
async def test_a_failure_is_logged_and_stops_nothing(
    error: Exception, level: int, *, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    background = Background()
    caplog.set_level(logging.DEBUG)

    async def fail() -> None:
        raise error

    background.start("delete claim", fail)
    job = background.take()
    assert job is not None
    await background.do(job)
    (said,) = (record for record in caplog.records if record.name == "berth.scheduler.background")
    assert (said.message, said.levelno) == ("background work failed", level)
    assert bool(said.exc_info) is has_traceback
    assert background.is_idle
    assert background.take() is None
