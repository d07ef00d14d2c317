"""``berth plugin``: begin a plugin of one's own, and see which ones there are."""

import argparse
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final, TypedDict

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, configuration_source
from berth.runtime.errors import UserError
from berth.runtime.terminal import DOCUMENTS, program, say, say_document

if TYPE_CHECKING:
    from berth.scheduler.config.types import KubeSchedulerConfiguration
    from berth.service.plugin_sources import KnownPlugins

PIPE_WIDTH: Final = 1_000
"""Columns of a table that goes to no terminal: nothing is wrapped there."""
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


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("plugin"), allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    new = kinds.add_parser(
        "new", allow_abbrev=False, help="create a package with a working plugin and its test"
    )
    new.add_argument("name", metavar="NAME", help="name of the plugin, such as NodeShare")
    new.add_argument(
        "--dir", dest="parent", type=Path, default=Path(), metavar="DIR",
        help="create the package in this folder; default: the current folder",
    )  # fmt: skip
    known = kinds.add_parser(
        "list", allow_abbrev=False, help="list the plugins that a configuration can enable"
    )
    known.add_argument(
        "--config", default="", metavar="FILE",
        help="also list the module:Class plugins of this configuration",
    )  # fmt: skip
    known.add_argument(
        "--output", choices=["table", *DOCUMENTS, "name"], default="table",
        help="output format; name: one name per line",
    )  # fmt: skip
    add_plugin_flags(known)
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    return _new(given) if given.what == "new" else _list(given)


def _new(given: argparse.Namespace) -> int:
    folder = write_package(given.name, given.parent)
    say(f"{folder} has the plugin {given.name}. Next steps, in that folder:")
    for step in (
        "python -m pytest",
        "pip install -e .",
        "berth plugin list",
        "berth up --config config.yaml",
    ):
        say(f"  {step}")
    return 0


def _list(given: argparse.Namespace) -> int:
    with importing():
        config, plugins = configuration_source(given).load()
    listed = _listed(plugins, config)
    if given.output == "name":
        for plugin in listed:
            say(plugin["name"])
    elif given.output in DOCUMENTS:
        say_document(json.dumps(listed), given.output)
    else:
        _show(listed)
    return 0


class ListedPlugin(TypedDict):
    """A plugin, as ``berth plugin list`` tells of it."""

    name: str
    extensionPoints: list[str]
    enabledIn: list[str]
    """The names of the profiles' schedulers."""
    origin: str


def _listed(plugins: "KnownPlugins", config: "KubeSchedulerConfiguration") -> list[ListedPlugin]:
    from berth.service.plugin_sources import points_of

    return [
        ListedPlugin(
            name=name,
            extensionPoints=list(points_of(kind)),
            enabledIn=_users(name, config),
            origin=plugins.origins[name],
        )
        for name, kind in plugins.registry.items()
    ]


def _show(listed: Sequence[ListedPlugin]) -> None:
    from berth.runtime.tables import Table, show

    table = Table("plugin", "extension points", "enabled in", "from")
    for plugin in listed:
        table.add_row(
            plugin["name"],
            ", ".join(plugin["extensionPoints"]),
            ", ".join(plugin["enabledIn"]),
            plugin["origin"],
        )
    show(table, pipe_width=PIPE_WIDTH)


def _users(plugin: str, config: "KubeSchedulerConfiguration") -> list[str]:
    """Name the profiles that enable *plugin* at any extension point."""
    return [
        profile.scheduler_name
        for profile in config.profiles
        if any(
            plugin == entry.name
            for plugin_set in profile.plugins.sets().values()
            for entry in plugin_set.enabled
        )
    ]


class ScaffoldError(UserError):
    """The package cannot be written; says why."""


def write_package(name: str, parent: Path) -> Path:
    """Write a package with the plugin *name* into a new folder of *parent*; return the folder.

    Raises ScaffoldError for a name that no plugin can have, and when the folder is there already.
    """
    from berth_plugins.registry import IN_TREE

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
