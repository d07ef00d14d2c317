"""Where the time goes."""

import asyncio
import re
import threading

import httpx
import pytest

from berth.service.server.application import Application
from berth.service.server.scheduler.profiling import profiling_endpoints, sampled, tasks_text


class Asking:
    def __init__(self) -> None:
        self.verbosities: list[int] = []
        app = Application()
        app.include_router(profiling_endpoints(set_verbosity=self.verbosities.append))
        transport = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://berth")


@pytest.mark.parametrize("path", ["/debug/pprof", "/debug/pprof/", "/debug/flags"])
async def test_there_is_an_index(path: str) -> None:
    answer = await Asking().client.get(path)
    assert (answer.status_code, answer.text.splitlines()[0].startswith("/debug/")) == (200, True)


@pytest.mark.parametrize(
    ("body", "code", "text", "set_to"),
    [
        pytest.param("4", 200, "successfully set klog.logging.verbosity to 4", [4], id="a number"),
        pytest.param(" 10\n", 200, "successfully set klog.logging.verbosity to 10", [10], id="nl"),
        pytest.param("-1", 400, "error setting -v to '-1': not a number\n", [], id="negative"),
        pytest.param("much", 400, "error setting -v to 'much': not a number\n", [], id="a word"),
        pytest.param("٣", 400, "error setting -v to '٣': not a number\n", [], id="other digits"),
        pytest.param(
            "9" * 10, 400, "error setting -v to '9999999999': not a number\n", [], id="large"
        ),
        pytest.param("", 400, "error setting -v to '': not a number\n", [], id="nothing"),
    ],
)
async def test_verbosity(body: str, code: int, text: str, set_to: list[int]) -> None:
    asking = Asking()
    answer = await asking.client.put("/debug/flags/v", content=body)
    assert (answer.status_code, answer.text, asking.verbosities) == (code, text, set_to)


async def test_tasks_that_wait_at_one_place_are_told_of_together() -> None:
    async def wait() -> None:
        await forever.wait()

    forever = asyncio.Event()
    tasks = [asyncio.create_task(wait(), name=f"waiting {number}") for number in range(7)]
    await asyncio.sleep(0)
    try:
        told = tasks_text()
        answer = await Asking().client.get("/debug/pprof/goroutine")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert told.startswith("tasks: 8\n")
    names = ", ".join(f"waiting {number}" for number in range(5))
    assert f"\n7: {names} and 2 more\n    scheduler/test_profiling.py:" in told
    assert re.search(r"wait:\d+\n    asyncio/locks.py:Event.wait:\d+\n", told)
    assert f"7: {names}" in answer.text


def test_samples_are_collapsed_stacks() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        ready.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        assert thread.ident is not None
        told = sampled(thread.ident, seconds=0.03, stop=threading.Event())
    finally:
        done.set()
        thread.join()
    stacks = [line.rpartition(" ") for line in told.splitlines()]
    assert sum(int(count) for _, _, count in stacks) == 3
    assert all(";scheduler/test_profiling.py:test_samples_are" in stack for stack, _, _ in stacks)
    assert stacks[0][0].endswith("threading.py:Condition.wait")


def test_sampling_can_be_stopped() -> None:
    stop = threading.Event()
    stop.set()
    assert sampled(threading.get_ident(), seconds=300, stop=stop) == ""


@pytest.mark.wall
async def test_one_profile_at_a_time() -> None:
    client = Asking().client
    answers = await asyncio.gather(
        *(client.get("/debug/pprof/profile?seconds=1") for _ in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert (await client.get("/debug/pprof/profile?seconds=0")).status_code == 422


async def test_a_verbosity_is_a_short_body() -> None:
    answer = await Asking().client.put("/debug/flags/v", content=b"1" * 1_000)
    assert (answer.status_code, answer.text) == (
        413,
        "error setting -v: body is larger than 100 bytes\n",
    )
