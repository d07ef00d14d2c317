"""In-tree plugins know what they share, and not each other."""

import ast
from pathlib import Path
from typing import Final

import pytest

import berth_plugins

PACKAGE: Final = Path(berth_plugins.__file__).parent
SHARED: Final = "shared"


def part_of(path: Path) -> str:
    """Return the plugin that a module is, or is a part of."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES: Final = [path for path in PACKAGE.rglob("*.py") if part_of(path) != "registry"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_plugin_imports_another(path: Path) -> None:
    known = {
        f"{node.module}.{name.name}".split(".")[1]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "berth_plugins"
        for name in node.names
    }
    assert known <= {part_of(path), SHARED}
