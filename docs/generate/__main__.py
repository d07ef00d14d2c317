"""``python -m docs.generate``: write all generated pages."""

import sys
from pathlib import Path

from docs.generate.pages import PAGES

DOCS = Path(__file__).parents[1]

for name, text in PAGES.items():
    path = DOCS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
