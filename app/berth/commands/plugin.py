"""``berth plugin``: begin a plugin of one's own, and see which ones there are."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.config.types import KubeSchedulerConfiguration
from berth.flags import configuration
from berth.plugin_scaffold import write_package
from berth.plugin_sources import KnownPlugins, points_of
from berth.tables import Table, show
from berth.terminal import program, say

PIPE_WIDTH: Final = 1_000
"""Columns of a table that goes to no terminal: nothing is wrapped there."""


def main(argv: Sequence[str]) -> int:
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
    new.set_defaults(act=_new)
    known = kinds.add_parser(
        "list", allow_abbrev=False, help="list the plugins that a configuration can enable"
    )
    known.add_argument(
        "--config", default="", metavar="FILE",
        help="also list the module:Class plugins of this configuration",
    )  # fmt: skip
    configuration.add_plugin_flags(known)
    known.set_defaults(act=_list)
    given = parser.parse_args(argv)
    status: int = given.act(given)
    return status


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
    config, plugins = configuration.source(given).load()
    show(_table(plugins, config), pipe_width=PIPE_WIDTH)
    return 0


def _table(plugins: KnownPlugins, config: KubeSchedulerConfiguration) -> Table:
    table = Table("plugin", "extension points", "enabled in", "from")
    for name, kind in plugins.registry.items():
        table.add_row(
            name, ", ".join(points_of(kind)), ", ".join(_users(name, config)), plugins.origins[name]
        )
    return table


def _users(plugin: str, config: KubeSchedulerConfiguration) -> list[str]:
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
