"""The HTTP application that is made when it is first asked."""

import asyncio
import threading

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from berth.service.deferred_application import DeferredApplication


class Making:
    """Makes an application when it is let go on, and counts how often; or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.count = 0
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self._fails = fails

    def __call__(self) -> ASGIApp:
        self.count += 1
        self.has_begun.set()
        assert self.may_end.wait(10)
        if self._fails:
            raise RuntimeError("nothing can be made")
        return PlainTextResponse("made")


async def ask(application: ASGIApp) -> str:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return (await client.get("/")).text


async def test_it_is_made_once_when_asked_and_the_loop_goes_on() -> None:
    making = Making()
    application = DeferredApplication(making)
    assert making.count == 0
    asked = [asyncio.create_task(ask(application)) for _ in range(3)]
    await asyncio.sleep(0)
    making.may_end.set()  # on the loop, which nobody blocks
    assert await asyncio.gather(*asked) == ["made"] * 3
    assert await ask(application) == "made"
    assert making.count == 1


async def test_a_client_that_goes_does_not_end_the_making() -> None:
    making = Making()
    application = DeferredApplication(making)
    asked = asyncio.create_task(ask(application))
    assert await asyncio.to_thread(making.has_begun.wait, 10)
    asked.cancel()
    making.may_end.set()
    assert await ask(application) == "made"
    assert making.count == 1


async def test_what_cannot_be_made_is_told_to_each_who_asks() -> None:
    making = Making(fails=True)
    making.may_end.set()
    application = DeferredApplication(making)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="nothing can be made"):
            await ask(application)
