"""Tables take text as it is: no markup, no emoji, nothing that a terminal obeys."""

import io
import os
import re

import pytest

from berth.runtime.tables import (
    Clipped,
    Content,
    Stack,
    Styled,
    Table,
    as_text,
    height_of,
    show,
    shown_live,
)
from berth.tools.up.progress import NodeUse, Pending, Progress
from berth.tools.up.view import REASON_LINES, render
from tests.hostile_text import CLEARS, HOSTILE, MARKUP, misread

OF_RICH = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""Colours and moves of the cursor."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def everywhere(text: str) -> Content:
    """Return content that has *text* wherever there can be text."""
    table = Table(text, "n", right=(1,))
    table.add_row(text, Styled((text, "red")))
    return Stack([text, Styled((text, "bold"), (text, "")), Table.of_facts([(text, text)]), table])


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_obeyed(text: str) -> None:
    assert not misread(as_text(everywhere(text), width=400))
    assert as_text(everywhere(text), width=4000).count("x") >= text.count("x")


def test_markup_is_text() -> None:
    assert as_text(everywhere(MARKUP), width=1000).count(MARKUP) == 8


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_obeyed_on_a_terminal(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    node = NodeUse(text, 1, 1, 1, 1, 1, zone=text, devices=((text, 1, 1),), taints=(text,))
    progress = Progress(
        states={"running": 1},
        scheduled=1,
        per_second=1.0,
        nodes=[node],
        node_count=1,
        pending=[Pending(text, 0, text)],
    )
    with shown_live(terminal) as screen:
        assert screen is not None
        screen.show(render(progress, title=text, width=200, height=50))
        screen.show(everywhere(text))
    assert "\x1b[" in terminal.getvalue()
    assert not misread(OF_RICH.sub("", terminal.getvalue()))
    assert "]0;owned\x07" not in terminal.getvalue()


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with shown_live(Terminal()) as screen:
        assert screen is None


def test_what_does_not_fit_goes_on_in_the_next_line() -> None:
    table = Table("name")
    table.add_row("x" * 25)
    assert as_text(table, width=10).splitlines() == ["name", "x" * 10, "x" * 10, "x" * 5]


def test_long_facts_go_on_in_the_next_line() -> None:
    facts = Table.of_facts([("a", "x" * 25)])
    assert as_text(facts, width=13).splitlines() == [f"a  {'x' * 10}", f"   {'x' * 10}", "   xxxxx"]


def test_without_a_terminal_nothing_is_shown_live() -> None:
    out = io.StringIO()
    with shown_live(out) as screen:
        assert screen is None
    assert not out.getvalue()


def test_a_reason_is_shown_as_far_as_there_is_room() -> None:
    pending = [Pending("a/b", 0, CLEARS * 100_000)]
    progress = Progress(states={}, scheduled=0, per_second=0, pending=pending)
    told = as_text(render(progress, title="t", width=80, height=24), width=80)
    assert len(told.splitlines()) == 3 + REASON_LINES
    assert told.endswith("…")


@pytest.mark.parametrize("text", ["", "short", "two words", "x" * 10, "x" * 11, "a b c d " * 20])
@pytest.mark.parametrize("lines", [1, 2])
def test_a_clipped_text_takes_no_more_lines(text: str, lines: int) -> None:
    clipped = Clipped(text, lines=lines)
    shown = as_text(clipped, width=10).splitlines()
    assert len(shown) <= lines
    assert all(len(line) <= 10 for line in shown)
    whole = height_of(text, width=10) <= lines
    assert " ".join(shown).endswith("…") != whole


def test_a_terminal_of_another_size_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was shown is folded there, so what is left of it could be anywhere."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    size = os.terminal_size((80, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: size)
    terminal = Terminal()
    clear = "\x1b[2J\x1b[H"
    with shown_live(terminal) as screen:
        assert screen is not None
        screen.show("x" * 80)
        screen.show("y" * 80)
        assert clear not in terminal.getvalue()
        size = os.terminal_size((60, 24))
        screen.show("z" * 60)
        assert terminal.getvalue().count(clear) == 1
        screen.show("z" * 60)
        assert terminal.getvalue().count(clear) == 1
        assert (screen.width, screen.height) == (60, 24)


def test_a_column_of_a_width_is_cut() -> None:
    table = Table()
    table.add_column("name", width=5)
    table.add_column("n", right=True, width=3)
    table.add_row("x" * 9, "1")
    assert as_text(table, width=40).splitlines() == ["name     n", "xxxx…    1"]


@pytest.mark.parametrize(
    ("environment", "is_red"),
    [
        pytest.param({"FORCE_COLOR": "1"}, "\x1b[31mred", id="colors, if they are asked for"),
        pytest.param({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "red", id="none with NO_COLOR"),
        pytest.param({}, "red", id="none where there is no terminal"),
    ],
)
def test_colors(
    environment: dict[str, str], is_red: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)

    show(Styled(("red", "red")), pipe_width=80)

    assert capsys.readouterr().out.startswith(is_red)
