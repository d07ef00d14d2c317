"""The pages that are generated say what the code says today."""

from collections.abc import Callable

import pytest

from docs.generate.pages import PAGES
from tests.docs.pages import DOCS


@pytest.mark.parametrize(("name", "text"), PAGES.items(), ids=PAGES.keys())
def test_a_generated_page_is_up_to_date(name: str, text: Callable[[], str]) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")

    assert written == text(), "run `make reference`"


def test_every_page_of_the_reference_folder_is_generated() -> None:
    there = {path.relative_to(DOCS).as_posix() for path in (DOCS / "reference").iterdir()}

    assert there == PAGES.keys()
