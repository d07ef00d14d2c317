"""The arguments of ``berth plugin``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from berth.cli.flags import configuration
from berth.runtime.terminal import program


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
    configuration.add_plugin_flags(known)
    return parser.parse_args(argv)
