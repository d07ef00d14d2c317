"""The page of a recording: its moments, from decision to decision."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import expect

from berth.cli import ui
from berth.cli.ui import parse
from tests.insight.recording.world import RecordedWorld, sealed
from tests.service.ui.chromium import chromium
from tests.service.ui.conftest import LINK

pytestmark = [pytest.mark.slow, pytest.mark.wall]


async def test_the_bar_steps_from_decision_to_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = RecordedWorld(seed=5, plain=True, faults=0.0)
    await world.live(attempts=30)
    (tmp_path / "day.json").write_bytes(sealed(*world.lines))
    links: asyncio.Queue[str] = asyncio.Queue()

    def say(line: str) -> None:
        if found := LINK.match(line):
            links.put_nowait(found[1])

    monkeypatch.setattr(ui, "say", say)
    flags = ["--recording", str(tmp_path / "day.json"), "--ui-port=0", "--no-browser"]
    running = asyncio.create_task(ui.serve(parse(flags)))
    async with chromium() as browser:
        page = await browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(await links.get())
        bar = page.get_by_label("Recording", exact=True)
        words = bar.get_by_role("status")
        await bar.get_by_label("First attempt").click()
        await expect(words).to_contain_text("0 of")
        next_pod = words.get_by_role("link")
        pod = await next_pod.text_content()
        await next_pod.click()
        screen = page.get_by_role("main")
        await expect(screen).to_contain_text("not tried yet: it is next")
        await bar.get_by_label("Next attempt").click()
        await expect(words).to_contain_text("1 of")
        await expect(page.get_by_role("heading", level=1)).to_have_text(pod or "")
        await expect(screen).not_to_contain_text("not tried yet: it is next")
        assert errors == []
    running.cancel()
    await asyncio.wait([running])
