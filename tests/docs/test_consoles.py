"""The commands of every page, run as a reader would run them."""

import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT, Block, Command, Page, blocks, pages
from tests.docs.run_page import PageError, check_output

PROGRAMS = ("bash", "base64", "curl", "kubectl", "openssl")
APART = ("unshare", "--net", "--pid", "--map-root-user", "--kill-child")
"""A network of its own for each page, so that the ports it names are free; and processes of its
own, of which none is left when the test is given up."""
RUN = 'ip link set lo up && exec "$0" -m tests.docs.run_page "$1"'


def runs(page: Page) -> bool:
    return any(
        block.language == "console" and "no-run" not in block.options for block in page.blocks()
    )


@pytest.mark.slow
@pytest.mark.wall
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page", [page for page in pages() if runs(page)], ids=lambda page: page.name
)
def test_commands_do_what_the_page_says(page: Page) -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {missing}")
    if not can_be_apart():
        pytest.skip("needs a network and processes of its own (unshare, ip)")
    done = subprocess.run(
        [*APART, "bash", "-c", RUN, sys.executable, page.name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def can_be_apart() -> bool:
    try:
        asked = subprocess.run([*APART, "ip", "link", "set", "lo", "up"], check=False)
    except FileNotFoundError:
        return False
    return asked.returncode == 0


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.where)
def test_a_block_says_how_it_is_run(block: Block) -> None:
    options = block.options
    assert options.keys() <= {"background", "instead", "until", "status", "no-run", "reason"}
    assert ("no-run" in options) == bool(options.get("reason"))
    assert ("background" in options) == bool(options.get("until"))
    assert block.commands()


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        pytest.param("a  b", "x\na b\ny", id="a line among others, however wide its columns"),
        pytest.param("a...d", "a b c d", id="three dots stand for anything"),
    ],
)
def test_output_is_as_shown(shown: str, said: str) -> None:
    check_output(Block("page", 1, "console"), Command("x", (shown,)), said)


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(("b", "a"), id="another order"),
        pytest.param(("a", "a"), id="one line for two"),
        pytest.param(("a...c",), id="the end is missing"),
    ],
)
def test_output_is_not_as_shown(shown: tuple[str, ...]) -> None:
    with pytest.raises(PageError, match="does not say"):
        check_output(Block("page", 1, "console"), Command("x", shown), "a\nb")
