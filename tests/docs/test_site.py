"""``make docs``: the site can be built, and read without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, pages

LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = re.search(r"sphinx-build (.*) -d", (ROOT / "Makefile").read_text("utf-8"))
    assert command
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command[1].split(), "-d", tmp_path / "doctrees",
         DOCS, tmp_path / "html"],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    html = tmp_path / "html"
    built = {path.relative_to(html).as_posix() for path in html.rglob("*.html")}
    assert {page.name.replace(".md", ".html") for page in pages()} <= built
    elsewhere = {
        f"{path.name}: {link}"
        for path in html.rglob("*.html")
        for link in LOADED.findall(path.read_text("utf-8"))
        if link.startswith(("http:", "https:", "//"))
    }
    assert not elsewhere
