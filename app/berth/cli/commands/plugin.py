"""``berth plugin``: begin a plugin of one's own, and see which ones there are."""

import argparse
from typing import Final

from berth.cli.plugin_scaffold import write_package
from berth.cli.settings.configuration import configuration_source
from berth.runtime.tables import Table, show
from berth.runtime.terminal import say
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.service.plugin_sources import KnownPlugins, points_of

PIPE_WIDTH: Final = 1_000
"""Columns of a table that goes to no terminal: nothing is wrapped there."""


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
    config, plugins = configuration_source(given).load()
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
