"""Tables take text as it is: no markup, no emoji, nothing that a terminal obeys."""

import io
import re

import pytest

from app.embedded.progress import REASON_LIMIT, Progress, render
from app.tables import Content, Stack, Styled, Table, as_text, shown_live
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
    progress = Progress(
        states={"running": 1}, scheduled=1, per_second=1.0, waiting=[("default/p", text)]
    )
    with shown_live(terminal) as show:
        assert show is not None
        show(render(progress, title=text))
        show(everywhere(text))
    assert "\x1b[" in terminal.getvalue()
    assert not misread(OF_RICH.sub("", terminal.getvalue()))
    assert "]0;owned\x07" not in terminal.getvalue()


def test_what_does_not_fit_goes_on_in_the_next_line() -> None:
    table = Table("name")
    table.add_row("x" * 25)
    assert as_text(table, width=10).splitlines() == ["name", "x" * 10, "x" * 10, "x" * 5]


def test_long_facts_go_on_in_the_next_line() -> None:
    facts = Table.of_facts([("a", "x" * 25)])
    assert as_text(facts, width=13).splitlines() == [f"a  {'x' * 10}", f"   {'x' * 10}", "   xxxxx"]


def test_without_a_terminal_nothing_is_shown_live() -> None:
    out = io.StringIO()
    with shown_live(out) as show:
        assert show is None
    assert not out.getvalue()


def test_a_reason_is_shown_as_far_as_there_is_room() -> None:
    progress = Progress(states={}, scheduled=0, per_second=0, waiting=[("a/b", CLEARS * 100_000)])
    told = as_text(render(progress, title="t"), width=200)
    assert len(told) < 10 * REASON_LIMIT
    assert told.endswith("...")
