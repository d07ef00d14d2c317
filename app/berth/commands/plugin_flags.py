"""Flags that say which plugins and presets there are, and reading a configuration."""

import argparse
import os
from pathlib import Path
from typing import Final

from berth.commands.terminal import UsageError
from berth.config import flags
from berth.config.decode import document
from berth.config.options import Options
from berth.config.presets import PRESETS, preset
from berth.config.types import KubeSchedulerConfiguration
from berth.plugin_sources import KnownPlugins
from berth.profile.build import check_profiles

ENVIRONMENT: Final = "BERTH_PLUGIN_DIR"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--plugin-dir`` and ``--plugin``."""
    parser.add_argument(
        "--plugin-dir", dest="plugin_dirs", type=Path, action="append", default=[],
        metavar="DIR",
        help="Know the plugins that the *.py files in this folder define; may be given several"
        f" times. {ENVIRONMENT} adds folders, with {os.pathsep!r} between them.",
    )  # fmt: skip
    parser.add_argument(
        "--plugin", dest="plugins", action="append", default=[], metavar="MODULE:CLASS",
        help="Know this plugin. A configuration may also enable it by that name itself.",
    )  # fmt: skip


def add_preset_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--preset``, which a command that takes ``--config`` hands to :func:`configuration`."""
    parser.add_argument(
        "--preset", choices=PRESETS, help="A configuration by name, instead of --config."
    )


def known_plugins(given: argparse.Namespace) -> KnownPlugins:
    """Import the plugins that the flags, the environment and installed packages offer.

    Raises ConfigError.
    """
    in_environment = os.environ.get(ENVIRONMENT, "")
    more = [Path(part) for part in in_environment.split(os.pathsep) if part]
    directories = dict.fromkeys([*given.plugin_dirs, *more])
    return KnownPlugins.find(directories=directories, references=given.plugins)


def configuration(
    options: Options,
    plugins: KnownPlugins,
    *,
    text: bytes | None = None,
    chosen_preset: str | None = None,
) -> tuple[KubeSchedulerConfiguration, KnownPlugins]:
    """Return what :func:`berth.config.flags.configuration` does, and the plugins it may enable.

    Those are *plugins* and what the file names as ``module:Class``. Raises ConfigError, and
    UsageError if there is both a file and a preset.
    """
    if chosen_preset is not None:
        if options.config:
            raise UsageError("--preset and --config: give one of them")
        text = preset(chosen_preset)
    if options.config:
        text = flags.content(options) if text is None else text
        found = document(text, source=options.config).value
        plugins = plugins.referred_in(found, source=options.config)
    config = flags.configuration(
        options,
        args_models=plugins.args_models,
        known_plugins=plugins.registry,
        aliases=plugins.aliases,
        text=text,
    )
    plugins.check_args(config, source=options.config)
    # The profiles are made much later, when nobody knows any more where they came from.
    check_profiles(config, plugins.registry, source=options.config or "command line")
    return config, plugins
