"""The configuration that counts, and the plugins there are: from flags and the environment."""

import argparse
import os
from functools import partial
from pathlib import Path

from berth.cli.flags.configuration import ENVIRONMENT
from berth.runtime.terminal import UsageError
from berth.scheduler.config.load import Adjust, as_is
from berth.service.configuration import ConfigurationSource
from berth.service.plugin_sources import KnownPlugins


def known_plugins(given: argparse.Namespace) -> KnownPlugins:
    """Import the plugins that the flags, the environment and installed packages offer.

    Raises ConfigError.
    """
    in_environment = os.environ.get(ENVIRONMENT, "")
    more = [Path(part) for part in in_environment.split(os.pathsep) if part]
    directories = dict.fromkeys([*given.plugin_dirs, *more])
    return KnownPlugins.find(directories=directories, references=given.plugins)


def configuration_source(
    given: argparse.Namespace, *, file: str | None = None, adjust: Adjust = as_is
) -> ConfigurationSource:
    """Return where the configuration comes from, by --config, --preset and the plugin flags.

    *file* is the value of --config where *given* does not have it. Raises UsageError if there is
    both a file and a preset.
    """
    file = given.config if file is None else file
    preset = getattr(given, "preset", None)
    if preset is not None and file:
        raise UsageError("--preset and --config: give one of them")
    return ConfigurationSource(
        find_plugins=partial(known_plugins, given), file=file, preset=preset, adjust=adjust
    )
