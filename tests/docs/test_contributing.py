"""docs/contributing.md names every package; that the files exist is tested for all pages."""

from tests.docs.pages import DOCS, ROOT, Page

PAGE = Page(DOCS / "contributing.md")


def test_every_package_is_in_the_layout() -> None:
    packages = {path.parent.name for path in (ROOT / "app" / "berth").glob("*/__init__.py")}
    told = {
        code.removeprefix("app/berth/") for code in PAGE.code() if code.startswith("app/berth/")
    }

    assert packages <= told
