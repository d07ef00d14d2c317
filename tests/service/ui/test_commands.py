"""Commands to be copied: one line that a shell and a terminal take as it is seen."""

import json
import subprocess
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from tests.service.ui.static_page import ANSWERS, STATIC, static_page

pytestmark = [pytest.mark.slow, pytest.mark.wall]

SHELLS: Final = ("sh", "bash")
EVIL: Final = (
    "a\nEND\ntouch broken-out\n",
    "a'; touch broken-out; '",
    "a$(touch broken-out)`touch broken-out`",
    "a\x1b[201~\rtouch broken-out\r\x03\ntouch broken-out\n",
    "a\u202etxt.exe\u2066\u200b\u2028touch broken-out",
    "a!!\\0041\\c \\' %s \\x41 \t\x7f\x9b",
    "--help",
    "~/ü {a,b} * ? #x =ls",
    "",
)
STATE: Final = """
async (text) => {
  const { NOTHING } = await import("./js/whatif/state.js");
  const { command, curl } = await import("./js/whatif/command.js");
  const { question } = await import("./js/whatif/question.js");
  const state = { ...NOTHING, ask: "other", source: "text", text };
  return [command(state), curl(question(state)), question(state)];
}
"""
LINE: Final = """
async (words) => (await import("./js/shell.js")).commandLine(...words)
"""


@asynccontextmanager
async def blank() -> AsyncIterator[Page]:
    async with static_page({}) as tab:
        yield await tab.open("#/nowhere")


def is_seen(line: str) -> bool:
    """Whether *line* is one line of what a terminal shows, and in this order."""
    return all(each == " " or unicodedata.category(each)[0] not in "CZ" for each in line)


def run(shell: str, line: str, folder: Path, name: str) -> tuple[list[str], str]:
    """Run *line*; return with which words it calls *name*, and what that reads."""
    stub = folder / name
    stub.write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done > words\ncat > read\n')
    stub.chmod(0o755)
    ran = subprocess.run(
        [shell, "-c", line],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert not ran.stderr
    assert not (folder / "broken-out").exists(), line
    words = (folder / "words").read_bytes().decode().split("\0")[:-1]
    return words, (folder / "read").read_bytes().decode()


async def test_words_stay_words(tmp_path: Path) -> None:
    async with blank() as page:
        for evil in EVIL:
            line = await page.evaluate(LINE, ["berth", "x", evil, "last"])
            assert is_seen(line), line
            for shell in SHELLS:
                words, _ = run(shell, line, tmp_path, "berth")
                # The shell takes line breaks at the end from what a command writes.
                assert words == ["x", evil.rstrip("\n"), "last"]


async def test_manifests_stay_manifests(tmp_path: Path) -> None:
    async with blank() as page:
        for evil in EVIL[:-1]:
            command, curl, body = await page.evaluate(STATE, evil)
            assert is_seen(command)
            assert is_seen(curl)
            for shell in SHELLS:
                words, read = run(shell, command, tmp_path, "berth")
                assert words == ["simulate", "--template", "-"]
                assert read == f"{evil.rstrip()}\n"
                words, _ = run(shell, curl, tmp_path, "curl")
                assert json.loads(words[-1]) == body


ADDRESSES: Final = (
    "#/cluster?pod={}",
    "#/cluster?group={}",
    "#/nodes?labelSelector={}",
    "#/queue?namespace={}",
    "#/groups?namespace={}",
    "#/what-if?ask=other&add={}",
    "#/what-if?ask=zone&zone={}",
    "#/what-if?ask=nodes&find={}",
)


async def test_commands_of_screens_take_what_a_link_says_as_one_word(tmp_path: Path) -> None:
    evil = "a'; touch broken-out; $(touch broken-out)\n'\x1b"
    async with static_page(ANSWERS) as tab:
        for address in ADDRESSES:
            page = await tab.open("#/nowhere")
            page = await tab.open(address.replace("{}", quote(evil, safe="")))
            shown = page.locator(".sources code").filter(has_text="touch").last
            await expect(shown).to_be_visible()
            line = await shown.inner_text()
            assert is_seen(line), line
            words, _ = run("sh", line, tmp_path, line.split(maxsplit=1)[0])
            assert any(evil in word for word in words), words


async def test_a_link_never_asks_by_itself() -> None:
    async with static_page(ANSWERS | {"simulate": 400}) as tab:
        page = await tab.open("#/what-if?source=size&replicas=2&cpu=1&run=yes")
        await expect(page.get_by_text("Press Simulate to ask it.")).to_be_visible()
        await expect(page.get_by_label("Replicas")).to_have_value("2")
        assert "simulate" not in [path for path, _ in tab.asked]
        await page.get_by_role("button", name="Simulate", exact=True).click()
        await expect(page.get_by_text("refused")).to_be_visible()
        assert "simulate" in [path for path, _ in tab.asked]


async def test_names_in_addresses_are_no_paths() -> None:
    async with static_page({}) as tab:
        page = await tab.open("#/pods/%2e%2e/snapshot")
        await expect(page.get_by_text("There is nothing called ..")).to_be_visible()
        assert not tab.asked


def test_no_script_makes_markup_of_text() -> None:
    for path in (STATIC / "js").rglob("*.js"):  # type: ignore[attr-defined]
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path}: {word}"
