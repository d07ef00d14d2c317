"""Flags that say which configuration counts, and which plugins and presets there are."""

import argparse
import os
from pathlib import Path
from typing import Final

from berth.scheduler.config.presets import PRESETS

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
