"""Pictures: well-formed, described for those who cannot see them, and free of anything foreign."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "pictures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_stands_alone(path: Path) -> None:
    picture = ElementTree.parse(path).getroot()

    assert picture.tag == f"{SVG}svg"
    assert picture.get("viewBox")
    for described in ("title", "desc"):
        text = picture.findtext(f"{SVG}{described}")
        assert text, described
        assert text.strip(), described
    assert not list(picture.iter(f"{SVG}script"))
    assert "href" not in path.read_text(encoding="utf-8")


def test_there_are_pictures() -> None:
    assert PICTURES
