"""docs/contributing.md names every package; that the files exist is tested for all pages."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Page

PAGE = Page(DOCS / "contributing.md")
PACKAGES = sorted(path.parent for path in (ROOT / "app" / "berth").glob("*/__init__.py"))


def test_every_package_is_in_the_layout() -> None:
    told = {
        code.removeprefix("app/berth/") for code in PAGE.code() if code.startswith("app/berth/")
    }

    assert {package.name for package in PACKAGES} <= told


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_says_what_it_is_for(package: Path) -> None:
    text = (package / "README.md").read_text("utf-8")

    assert text.startswith(f"# berth.{package.name}\n")
    assert "**May import:**" in text
    assert "**Start reading:**" in text
    assert len(text.splitlines()) <= 50, "more than a screen"
