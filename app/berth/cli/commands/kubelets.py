"""``berth kubelets``: hollow nodes for any API server."""

import argparse
import logging
import random

from berth.cli.settings.embedded_cluster import kubelet_configuration, node_pools
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.stages.load import load as load_stages
from berth.kube.client.connect import connect
from berth.runtime import log
from berth.runtime.clock import RealClock
from berth.runtime.event_loop import in_loop


def run(given: argparse.Namespace) -> int:
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
