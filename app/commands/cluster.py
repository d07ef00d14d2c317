"""``berth cluster``: the embedded cluster alone, without nodes and scheduler."""

import argparse
import logging
from collections.abc import Sequence

from app import log
from app.commands.nodes import add_cluster_flags, embedded_cluster
from app.commands.terminal import in_loop, naming_port, say


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth cluster", allow_abbrev=False)
    add_cluster_flags(parser)
    given = parser.parse_args(argv)
    log.setup(logging.WARNING)
    cluster = embedded_cluster(given)

    async def serving() -> int:
        await cluster.start(given.port)
        path = given.kubeconfig_out.absolute()
        cluster.write_kubeconfig(path)
        say(f"API server at {cluster.url}; try: kubectl --kubeconfig {path} get all -A")
        try:
            await cluster.run_controllers()
        finally:
            await cluster.stop()
        return 0

    with naming_port(given.port, flag="--port"):
        return in_loop(serving())
