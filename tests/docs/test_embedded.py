"""docs/embedded.md accounts for every kind that the embedded API server stores."""

import re

from berth.cluster.kinds.builtin import STORED
from tests.docs.pages import DOCS


def kinds_below(*headings: str) -> list[str]:
    """Return the kinds in the first column of the tables below *headings*."""
    text = (DOCS / "embedded.md").read_text(encoding="utf-8")
    sections = [text.split(f"\n## {heading}\n")[1].split("\n## ")[0] for heading in headings]
    cells = [
        row.split("|")[1] for part in sections for row in part.splitlines() if row[:3] == "| `"
    ]
    return [kind for cell in cells for kind in re.findall(r"`(\w+)`", cell)]


def test_every_kind_either_acts_or_is_inert() -> None:
    told = kinds_below("What acts", "What is stored but does nothing")

    assert sorted(told) == sorted({each.kind for each in STORED})
