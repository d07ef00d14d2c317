"""``berth health``."""

import asyncio
import random
from collections.abc import Callable

import httpx
import pytest

from berth import cli
from berth.cli.health import probe
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.clock import RealClock
from berth.runtime.terminal import CommandError

URL = "https://127.0.0.1:10259/readyz"


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("Connection refused", request=request)


def hang(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("", request=request)


def test_ready() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == URL
        return httpx.Response(200, text="ok")

    assert probe(URL, transport=httpx.MockTransport(answer)) == "ok"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(
            lambda _: httpx.Response(500, text="[-]shutdown failed\n"),
            f"{URL} answers 500: [-]shutdown failed",
            id="not ready",
        ),
        pytest.param(
            lambda _: httpx.Response(302, headers={"Location": "/"}),
            f"{URL} answers 302: ",
            id="a redirect is no answer",
        ),
        pytest.param(refuse, f"{URL}: Connection refused", id="nobody there"),
        pytest.param(hang, f"{URL}: ReadTimeout", id="no answer in time"),
    ],
)
def test_not_ready(answer: Callable[[httpx.Request], httpx.Response], why: str) -> None:
    with pytest.raises(CommandError) as refused:
        probe(URL, transport=httpx.MockTransport(answer))
    assert str(refused.value) == why


@pytest.mark.parametrize("url", ["readyz", "ftp://127.0.0.1/", "https://", "http://[::1"])
def test_what_is_no_address_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["health", "--url", url])
    assert ended.value.code == 2
    assert "--url" in capsys.readouterr().err


@pytest.mark.wall
async def test_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    """Against a server whose certificate nobody vouches for, and once it has gone."""
    cluster = EmbeddedCluster(clock=RealClock(), rng=random.Random(1))
    await cluster.start(0)
    url = f"{cluster.url}/readyz"
    status = await ask(url)
    await cluster.stop()
    assert (status, capsys.readouterr().out) == (0, "ok\n")

    assert await ask(url) == 1
    assert capsys.readouterr().err.startswith(f"berth health: {url}: ")


async def ask(url: str) -> int:
    """In a thread: whom it asks runs on the loop."""
    return await asyncio.to_thread(cli.main, ["health", f"--url={url}"])
