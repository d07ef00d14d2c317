"""Flags that say which configuration counts, and which plugins and presets there are."""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth.config.presets import PRESETS
from berth.terminal import UsageError

if TYPE_CHECKING:
    from berth.assembly.configuration import ConfigurationSource
    from berth.config.load import Adjust
    from berth.plugin_sources import KnownPlugins

ENVIRONMENT: Final = "BERTH_PLUGIN_DIR"


def add_plugin_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--plugin-dir`` and ``--plugin``."""
    parser.add_argument(
        "--plugin-dir", dest="plugin_dirs", type=Path, action="append", default=[],
        metavar="DIR",
        help="Register the plugins in the *.py files of this folder. Repeat it for several"
        f" times. {ENVIRONMENT} adds folders, with {os.pathsep!r} between them.",
    )  # fmt: skip
    parser.add_argument(
        "--plugin", dest="plugins", action="append", default=[], metavar="MODULE:CLASS",
        help="Register this plugin. A configuration can also enable it by this name directly.",
    )  # fmt: skip


def add_preset_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--preset``, for a command that takes ``--config``."""
    parser.add_argument("--preset", choices=PRESETS, help="Use this preset instead of --config.")


def known_plugins(given: argparse.Namespace) -> "KnownPlugins":
    """Import the plugins that the flags, the environment and installed packages offer.

    Raises ConfigError.
    """
    from berth.plugin_sources import KnownPlugins

    in_environment = os.environ.get(ENVIRONMENT, "")
    more = [Path(part) for part in in_environment.split(os.pathsep) if part]
    directories = dict.fromkeys([*given.plugin_dirs, *more])
    return KnownPlugins.find(directories=directories, references=given.plugins)


def source(
    given: argparse.Namespace, *, file: str | None = None, adjust: "Adjust | None" = None
) -> "ConfigurationSource":
    """Return where the configuration comes from, by --config, --preset and the plugin flags.

    *file* is the value of --config where *given* does not have it. Raises UsageError if there is
    both a file and a preset.
    """
    from berth.assembly.configuration import ConfigurationSource
    from berth.config.load import as_is

    file = given.config if file is None else file
    preset = getattr(given, "preset", None)
    if preset is not None and file:
        raise UsageError("--preset and --config: give one of them")
    return ConfigurationSource(
        find_plugins=partial(known_plugins, given), file=file, preset=preset, adjust=adjust or as_is
    )
