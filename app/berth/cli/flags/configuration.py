"""The configuration that counts, and the plugins there are: by flags and the environment."""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from berth.runtime.terminal import UsageError
from berth.scheduler.config.presets import PRESETS

if TYPE_CHECKING:
    from berth.scheduler.config.load import Adjust
    from berth.service.configuration import ConfigurationSource
    from berth.service.plugin_sources import KnownPlugins

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
    from berth.service.plugin_sources import KnownPlugins

    in_environment = os.environ.get(ENVIRONMENT, "")
    more = [Path(part) for part in in_environment.split(os.pathsep) if part]
    directories = dict.fromkeys([*given.plugin_dirs, *more])
    return KnownPlugins.find(directories=directories, references=given.plugins)


def configuration_source(
    given: argparse.Namespace, *, file: str | None = None, adjust: "Adjust | None" = None
) -> "ConfigurationSource":
    """Return where the configuration comes from, by --config, --preset and the plugin flags.

    *file* is the value of --config where *given* does not have it. Raises UsageError if there is
    both a file and a preset.
    """
    from berth.scheduler.config.load import as_is
    from berth.service.configuration import ConfigurationSource

    file = given.config if file is None else file
    preset = getattr(given, "preset", None)
    if preset is not None and file:
        raise UsageError("--preset and --config: give one of them")
    return ConfigurationSource(
        find_plugins=partial(known_plugins, given),
        file=file,
        preset=preset,
        adjust=adjust or as_is,
    )


def configuration_document(path: Path) -> Any:
    """Return what the configuration file *path* says, unchecked. Raises UsageError, ConfigError."""
    from berth.scheduler.config.decode import document

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    return document(text, source=str(path)).value
