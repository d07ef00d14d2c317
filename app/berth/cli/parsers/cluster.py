"""The arguments of ``berth cluster``."""

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from berth.cli.flags.embedded_cluster import add_cluster_flags
from berth.cluster.http.in_flight import DEFAULT
from berth.runtime.addresses import LOOPBACK
from berth.runtime.terminal import positive, program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("cluster"), allow_abbrev=False)
    add_cluster_flags(parser)
    parser.add_argument(
        "--bind-address", type=_address, default=LOOPBACK, metavar="IP",
        help="listen on this address; 0.0.0.0 or :: for all addresses; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--tls-san", nargs="+", action="extend", default=[], metavar="NAME",
        help="additional host names and addresses for the certificate",
    )  # fmt: skip
    parser.add_argument(
        "--credentials-dir", type=Path, metavar="FOLDER",
        help="write credentials with limited permissions to this folder: scheduler/kubeconfig,"
        " kubelets/kubeconfig, and monitoring/token for reading metrics",
    )  # fmt: skip
    parser.add_argument(
        "--max-requests-inflight", type=positive, default=DEFAULT.read_only, metavar="N",
        help="reading requests in progress at a time, except watches and those of administrators"
        " and system components; others get status 429; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--max-mutating-requests-inflight", type=positive, default=DEFAULT.mutating, metavar="N",
        help="the same for writing requests; default: %(default)s",
    )  # fmt: skip
    return parser.parse_args(argv)


def _address(text: str) -> str:
    """Read an IP address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
