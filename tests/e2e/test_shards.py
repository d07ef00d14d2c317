"""Three replicas schedule at once under load; one is killed, another frozen and woken again."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from berth.tools.up.verify import verify
from tests.e2e.replicas import cluster, until

pytestmark = [pytest.mark.wall, pytest.mark.slow]

NODES, NODE_CPU, PODS_PER_NODE = 12, 3, 25
FLAGS = (
    "--shards=16",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--kube-api-qps=100",
    "--kube-api-burst=20",
)


async def test_every_pod_is_bound_once_though_replicas_die(tmp_path: Path) -> None:
    names = [f"pod-{number:04}" for number in range(NODES * PODS_PER_NODE)]
    async with cluster(tmp_path, nodes=NODES, cpu=str(NODE_CPU)) as made:
        replicas = [await made.replica(f"replica-{number}", FLAGS) for number in range(3)]
        for replica in replicas:
            process = replica.process
            await until(lambda p=process: "slots held" in p.output, "a replica has slots")
        creating = asyncio.create_task(
            made.create_pods(names, cpu=f"{NODE_CPU * 1000 // PODS_PER_NODE}m")
        )
        await until(lambda: made.bound > len(names) // 4, "a quarter is bound")
        assert all(replica.proxy.binds for replica in replicas), "all bind at once"
        killed, frozen, other = replicas
        killed.process.send(signal.SIGKILL)
        frozen.process.send(signal.SIGSTOP)
        await creating
        # The cluster is exactly full at the end: the last pods need the nodes of the dead ones.
        await until(lambda: made.bound == len(names), "all are bound", seconds=60.0)
        woken = frozen.process.send(signal.SIGCONT)
        assert await frozen.process.exit_status() == 1, "it was expelled"
        assert not [bind for bind in frozen.proxy.binds if bind.at > woken]
        assert made.times_bound == Counter({1: len(names)})
        verification = await verify(made.client)
        assert verification.is_good, verification.lines()
        other.process.send(signal.SIGTERM)
        assert await other.process.exit_status() == 0
