"""Citations of the specification lead to a section of docs/specification.md."""

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, ROOT

CITED = re.compile(r"§(\d+(?:\.\d+)*)")
FOLDERS = ("app", "plugins", "tests", "examples")


def sections() -> set[str]:
    text = (DOCS / "specification.md").read_text(encoding="utf-8")
    return set(re.findall(r"^#{2,3} (\d+(?:\.\d+)*) ", text, re.MULTILINE))


def citations() -> Iterator[tuple[str, str]]:
    """Yield each section that a Python file cites, with the file."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for number in CITED.findall(path.read_text(encoding="utf-8")):
                yield number, path.relative_to(ROOT).as_posix()


def test_every_section_that_is_cited_exists() -> None:
    there = sections()

    assert [citation for citation in citations() if citation[0] not in there] == []


def test_there_are_citations() -> None:
    assert len({number for number, _ in citations()}) > 50


@pytest.mark.parametrize("number", sorted(sections()))
def test_a_subsection_is_in_its_section(number: str) -> None:
    assert number.partition(".")[0] in sections()
