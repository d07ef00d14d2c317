"""``berth kubelets``: hollow nodes for any API server."""

import argparse
import logging
import random
from collections.abc import Sequence

from berth.cli import importing
from berth.cli.flags.embedded_cluster import add_node_flags, kubelet_configuration, node_pools
from berth.runtime import log
from berth.runtime.terminal import program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("kubelets"), allow_abbrev=False)
    add_node_flags(parser, nodes=1)
    parser.add_argument("--kubeconfig", help="the kubeconfig of the API server")
    parser.add_argument(
        "--master", help="the address of the API server; takes precedence over the kubeconfig"
    )
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
        from berth.cluster.kubelet.stages.load import load as load_stages
        from berth.kube.client.connect import connect
        from berth.runtime.clock import RealClock
        from berth.runtime.event_loop import in_loop

    log.setup(logging.INFO)
    settings = Settings(
        node_pools(given),
        configuration=kubelet_configuration(given.kubelet_config),
        stages=load_stages(given.stages),
    )

    async def serving() -> int:
        client = await connect(
            kubeconfig=given.kubeconfig, master=given.master, qps=0, user_agent="berth-kubelets"
        )
        try:
            await HollowKubelets(client, settings, clock=RealClock(), rng=random.Random()).run()
        finally:
            await client.close()
        return 0

    return in_loop(serving())
