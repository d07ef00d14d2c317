"""The pages that are generated say what the code says today."""

from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generate import capture
from docs.generate.pages import PAGES
from docs.generate.terminal import CAPTURES
from tests.docs.pages import DOCS


@pytest.mark.parametrize(("name", "text"), PAGES.items(), ids=PAGES.keys())
def test_a_generated_page_is_up_to_date(name: str, text: Callable[[], str]) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")

    assert written == text(), "run `make reference`"


def test_every_page_of_the_reference_folder_is_generated() -> None:
    there = {path.relative_to(DOCS).as_posix() for path in (DOCS / "reference").iterdir()}

    assert there == {name for name in PAGES if name.startswith("reference/")}


def test_a_captured_simulation_is_what_berth_prints_today(tmp_path: Path) -> None:
    captured = (CAPTURES / "simulate.ansi").read_text(encoding="utf-8")

    printed = [line.rstrip() for line in capture.simulate(tmp_path).splitlines()]

    assert captured.splitlines()[1:] == printed, "run `python -m docs.generate.capture`"


def test_a_captured_list_of_plugins_is_what_berth_prints_today(tmp_path: Path) -> None:
    captured = (CAPTURES / "plugin-list.ansi").read_text(encoding="utf-8")

    printed = [line.rstrip() for line in capture.run(tmp_path, "plugin", "list").splitlines()]

    assert captured.splitlines()[1:] == printed, "run `python -m docs.generate.capture`"
