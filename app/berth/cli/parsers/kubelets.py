"""The arguments of ``berth kubelets``."""

import argparse
from collections.abc import Sequence

from berth.cli.flags.embedded_cluster import add_node_flags
from berth.runtime.terminal import program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("kubelets"), allow_abbrev=False)
    add_node_flags(parser, nodes=1)
    parser.add_argument("--kubeconfig", help="the kubeconfig of the API server")
    parser.add_argument(
        "--master", help="the address of the API server; takes precedence over the kubeconfig"
    )
    return parser.parse_args(argv)
