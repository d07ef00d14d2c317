"""``berth cluster``: the embedded cluster alone, without nodes and scheduler."""

import argparse
import ipaddress
import logging
from collections.abc import Sequence
from pathlib import Path

from berth.cli import importing
from berth.cli.flags.embedded_cluster import add_cluster_flags, embedded_cluster, kubeconfig_out
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.runtime import log
from berth.runtime.addresses import LOOPBACK
from berth.runtime.terminal import UsageError, naming_port, positive, program, say


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


def run(given: argparse.Namespace) -> int:
    if given.insecure and not ipaddress.ip_address(given.bind_address).is_loopback:
        raise UsageError(
            f"--bind-address {given.bind_address}: --insecure grants all permissions to every"
            " client, so it requires a loopback address"
        )
    with importing():
        from berth.runtime.clock import RealClock
        from berth.runtime.event_loop import in_loop, sparing_survivors
    log.setup(logging.WARNING)
    limits = InFlightLimits(given.max_requests_inflight, given.max_mutating_requests_inflight)
    cluster = embedded_cluster(given, host=given.bind_address, names=given.tls_san, limits=limits)

    async def serving() -> int:
        await cluster.start(given.port)
        # Nobody is answered before the next await: who finds the API ready finds the files.
        try:
            with kubeconfig_out(given).written(cluster) as flags:
                if given.credentials_dir is not None:
                    cluster.write_credentials(given.credentials_dir)
                say(f"API server at {cluster.url}; try: kubectl {flags} get all -A")
                say(cluster.how_kept)
                await cluster.while_kept(cluster.run_controllers())
        finally:
            await cluster.stop()
        return 0

    with naming_port(given.port, flag="--port"):
        return in_loop(sparing_survivors(serving(), RealClock()))
