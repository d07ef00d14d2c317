"""``berth ui``."""

import asyncio
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import JSONResponse

from berth import cli
from berth.cli import ui
from berth.cli.ui import parse
from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer

pytestmark = pytest.mark.wall


@pytest.fixture(autouse=True)
def nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the working directory, nor the environment, nor the home has a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.fixture
async def scheduler() -> AsyncIterator[str]:
    server = HttpServer(JSONResponse({"items": []}))
    await server.start(LOOPBACK, 0)
    yield server.url
    await server.stop()


class Browser(webbrowser.BaseBrowser):
    """Remembers what it is asked to open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def open(self, url: str, _new: int = 0, _autoraise: bool = True) -> bool:
        self.opened.get_loop().call_soon_threadsafe(self.opened.set_result, url)
        return True


async def test_it_opens_the_page_in_the_browser(
    scheduler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = Browser()
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    running = asyncio.create_task(ui.serve(parse(["--server", scheduler, "--ui-port=0"])))
    link = await browser.opened
    assert capsys.readouterr().out.splitlines() == [f"scheduler at {scheduler}", f"page at {link}"]
    async with httpx.AsyncClient() as client:
        assert (await client.get(link)).status_code == 303
        asked = await client.get(link.partition("?")[0] + "debug/queue")
        assert (asked.status_code, asked.json()) == (200, {"items": []})
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize(
    "browser",
    [
        pytest.param(webbrowser.Error("none"), id="there is none"),
        pytest.param(webbrowser.GenericBrowser("no-such-browser"), id="one of the terminal"),
    ],
)
async def test_the_link_is_enough_without_a_browser(
    browser: webbrowser.BaseBrowser | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.get_running_loop().create_future()

    def get() -> webbrowser.BaseBrowser:
        tried.get_loop().call_soon_threadsafe(tried.set_result, None)
        if isinstance(browser, Exception):
            raise browser
        return browser

    monkeypatch.setattr(webbrowser, "get", get)
    running = asyncio.create_task(ui.serve(parse(["--ui-port=0"])))
    await tried
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(
            ["--server", "localhost:10259"],
            "'localhost:10259' must begin with http:// or https://",
            id="a server that is no URL",
        ),
        pytest.param(
            ["--service", "berth"],
            "'berth' must be NAMESPACE/NAME or NAMESPACE/NAME:PORT",
            id="a service without a namespace",
        ),
        pytest.param(
            ["--service", "a/b/c"], "'a/b/c' must be NAMESPACE/NAME", id="a service with too much"
        ),
        pytest.param(
            ["--service", "a/b:https", "--server", "https://localhost"],
            "--service and --server exclude each other",
            id="two schedulers",
        ),
        pytest.param(["--ui-port", "70000"], "70000 must be between", id="no port"),
    ],
)
def test_flags_that_do_not_fit(
    flags: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.execute("ui", flags)
    assert why in capsys.readouterr().err
