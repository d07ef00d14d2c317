"""A package with a plugin to begin from: what ``berth plugin new`` writes."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from berth.runtime.errors import UserError
from berth_plugins.registry import IN_TREE

_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_NEXT_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FILES: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "config.yaml": "config.yaml",
    "package.py": "src/$package/__init__.py",
    "plugin.py": "src/$package/plugin.py",
    "test_plugin.py": "tests/test_plugin.py",
}
"""Where each template of ``berth/cli/plugin_template`` goes."""


class ScaffoldError(UserError):
    """The package cannot be written; says why."""


def write_package(name: str, parent: Path) -> Path:
    """Write a package with the plugin *name* into a new folder of *parent*; return the folder.

    Raises ScaffoldError for a name that no plugin can have, and when the folder is there already.
    """
    if not _NAME.match(name):
        raise ScaffoldError(f"{name!r} must be letters and digits, with a capital first: NodeShare")
    if name in IN_TREE:
        raise ScaffoldError(f"{name!r} is the name of an in-tree plugin")
    words = [word.lower() for word in _NEXT_WORD.split(name)]
    package = "_".join(words)
    if package in ("berth", "berth_plugins"):
        raise ScaffoldError(f"{name!r}: berth itself has a package {package!r}")
    values = {"name": name, "package": package, "distribution": "berth-" + "-".join(words)}
    folder = parent / values["distribution"]
    if folder.exists():
        raise ScaffoldError(f"{folder} exists already")
    templates = files("berth.cli").joinpath("plugin_template")
    try:
        for template, target in _FILES.items():
            text = templates.joinpath(f"{template}.template").read_text(encoding="utf-8")
            path = folder / Template(target).substitute(values)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(values), encoding="utf-8")
    except OSError as exc:
        raise ScaffoldError(f"{exc.filename}: {exc.strerror}") from exc
    return folder
