"""``berth cluster``: the embedded cluster alone, without nodes and scheduler."""

import argparse
import ipaddress
import logging

from berth.cli.settings.embedded_cluster import embedded_cluster, kubeconfig_out
from berth.cluster.http.in_flight import InFlightLimits
from berth.runtime import log
from berth.runtime.clock import RealClock
from berth.runtime.event_loop import in_loop, sparing_survivors
from berth.runtime.terminal import UsageError, naming_port, say


def run(given: argparse.Namespace) -> int:
    if given.insecure and not ipaddress.ip_address(given.bind_address).is_loopback:
        raise UsageError(
            f"--bind-address {given.bind_address}: --insecure grants all permissions to every"
            " client, so it requires a loopback address"
        )
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
