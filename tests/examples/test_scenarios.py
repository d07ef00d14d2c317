"""Every scenario of ``examples/scenarios`` does what its section says.

The day of a cluster is run with a third of the hours in which nothing is done but what cron does.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.tools.up.scenario.running import run_file

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples/scenarios").glob("*.yaml"))
SLOW = {"day", "06-taints-and-tolerations"}
SECTIONS = 13


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.stem in SLOW else (), id=path.stem)
        for path in FILES
    ],
)
def test_its_expectations_are_met(path: Path, tmp_path: Path) -> None:
    if path.stem == "day":
        path = _shortened(path, tmp_path)
    result, lines = run_file(path)
    assert not result.failure, "\n".join(lines)


def _shortened(path: Path, folder: Path) -> Path:
    """Return a copy in *folder* in which an hour of the steps has twenty minutes."""
    shutil.copytree(path.with_suffix(""), folder / path.stem)
    text, count = re.subn(
        r"^( +at:) (\d+)h$",
        lambda at: f"{at[1]} {20 * int(at[2])}m",
        path.read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert count
    copy = folder / path.name
    copy.write_text(text, "utf-8")
    return copy


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_says_how_it_is_run(path: Path) -> None:
    command = f"berth up --scenario examples/scenarios/{path.name} --exit"
    assert command in path.read_text("utf-8")


def test_there_is_one_for_each_section_of_the_chapter_and_the_tour_has_them_all() -> None:
    numbers = [path.stem[:2] for path in FILES if path.stem[:2].isdecimal()]
    assert numbers == [f"{number:02}" for number in range(1, SECTIONS + 1)]
    told = re.findall(
        r"`(examples/scenarios/\S+\.yaml)`", (ROOT / "docs/tour.md").read_text("utf-8")
    )
    assert sorted(told) == [str(path.relative_to(ROOT)) for path in FILES]
