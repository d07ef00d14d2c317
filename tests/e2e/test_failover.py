"""Two replicas under load; the leader is killed, or frozen and woken again.

As quick as it can be by default. With ``BERTH_FAILOVER=full`` in the environment it is 2,000 pods,
the default durations and rate limits, and half a minute of standing still.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from berth.tools.up.verify import verify
from tests.e2e.replicas import Cluster, Replica, cluster, until

pytestmark = [pytest.mark.wall, pytest.mark.slow]

NODE_CPU = 3
PODS_PER_NODE = 25
POD_CPU = f"{NODE_CPU * 1000 // PODS_PER_NODE}m"


@dataclass(frozen=True)
class Scale:
    """How much load, how long leases, how long frozen, in seconds."""

    nodes: int
    flags: Sequence[str]
    takeover: float
    """At most: the standby looks late by up to 2.2 retry periods, waits for the lease's duration,
    and looks again within one retry period."""
    frozen: float
    """At least; and until the standby binds."""

    @property
    def pods(self) -> list[str]:
        """As many as exactly fill the cluster: one bound twice is one that finds no room."""
        return [f"pod-{number:04}" for number in range(self.nodes * PODS_PER_NODE)]


QUICK = Scale(
    nodes=12,
    flags=(
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
        "--kube-api-qps=100",
        "--kube-api-burst=20",
    ),
    takeover=3 + 1.1 + 0.5,
    frozen=0.0,
)
FULL = Scale(nodes=80, flags=(), takeover=15 + 4.4 + 2, frozen=30.0)
SCALE = FULL if os.environ.get("BERTH_FAILOVER") == "full" else QUICK
SLACK = 3.0
"""Seconds for the first decision and for a busy machine."""


@dataclass(frozen=True)
class Scene:
    """A leader that has bound a quarter of the pods, and a standby."""

    cluster: Cluster
    leader: Replica
    standby: Replica

    def bound_by(self, replica: Replica) -> list[str]:
        return [bind.pod for bind in replica.proxy.binds if bind.status == 201]


@asynccontextmanager
async def under_load(folder: Path) -> AsyncIterator[Scene]:
    async with cluster(folder, nodes=SCALE.nodes, cpu=str(NODE_CPU)) as made:
        leader = await made.replica("leader", SCALE.flags)
        await until(lambda: "became leader" in leader.process.output, "the first leads")
        standby = await made.replica("standby", SCALE.flags)
        await until(lambda: "another leads" in standby.process.output, "the second waits")
        creating = asyncio.create_task(
            made.create_pods(SCALE.pods, cpu=POD_CPU), name="create pods"
        )
        scene = Scene(made, leader, standby)
        await until(lambda: made.bound >= len(SCALE.pods) // 4, "a quarter is bound", seconds=120)
        assert not standby.proxy.binds
        yield scene
        await creating


async def taken_over(scene: Scene) -> float:
    """Return when the standby bound its first pod."""
    seconds = SCALE.takeover + SLACK
    await until(lambda: scene.standby.proxy.binds, "the standby binds", seconds=seconds)
    return scene.standby.proxy.binds[0].at


async def all_is_well(scene: Scene) -> None:
    """Wait until all are bound, each once, no node is over-full, and nobody was refused."""
    await until(lambda: scene.cluster.bound == len(SCALE.pods), "all are bound", seconds=300)
    verification = await verify(scene.cluster.client)
    assert verification.is_good, verification.lines()
    assert verification.placed == len(SCALE.pods)
    assert scene.cluster.times_bound == Counter({1: len(SCALE.pods)})
    accepted = scene.bound_by(scene.leader) + scene.bound_by(scene.standby)
    assert sorted(accepted) == SCALE.pods


def tell(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{line}\n")


async def test_a_leader_that_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with under_load(tmp_path) as scene:
        killed = scene.leader.process.send(signal.SIGKILL)
        before = scene.cluster.bound
        takeover = await taken_over(scene) - killed
        tell(capsys, f"killed after {before} of {len(SCALE.pods)} pods, takeover {takeover:.2f} s")
        await all_is_well(scene)

        scene.standby.process.send(signal.SIGTERM)
        assert await scene.standby.process.exit_status() == 0
        assert await scene.cluster.holder() == ""


async def test_a_leader_that_is_frozen_and_wakes_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with under_load(tmp_path) as scene:
        stopped = scene.leader.process.send(signal.SIGSTOP)
        takeover = await taken_over(scene) - stopped
        await asyncio.sleep(SCALE.frozen - takeover)
        remaining = len(SCALE.pods) - scene.cluster.bound
        assert remaining > 0, "there is nothing left that the old leader could bind"
        binds = len(scene.leader.proxy.binds)
        scene.leader.process.send(signal.SIGCONT)
        tell(capsys, f"frozen, takeover {takeover:.2f} s, woken with {remaining} pods to bind")

        assert await scene.leader.process.exit_status() == 1
        await all_is_well(scene)
        assert len(scene.leader.proxy.binds) == binds


async def test_a_lease_that_is_taken_away(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=1, cpu="1") as made:
        leader = await made.replica("leader", QUICK.flags)
        await until(lambda: "became leader" in leader.process.output, "it leads")
        patch = b'{"spec":{"holderIdentity":"another","leaseDurationSeconds":60}}'
        await made.client.request(
            "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
            body=patch,
            content_type="application/merge-patch+json",
        )

        assert await leader.process.exit_status() == 1
        assert "is lost: another holds it" in leader.process.output
        assert await made.holder() == "another"


async def test_without_election_a_signal_is_a_failure_as_in_kube_scheduler(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=1, cpu="1") as made:
        alone = await made.replica("alone", ["--leader-elect=false"])
        await made.create_pods(["pod"], cpu="1")
        await until(lambda: made.bound == 1, "the pod is bound")
        alone.process.send(signal.SIGTERM)

        assert await alone.process.exit_status() == 1
        assert "finished without leader elect" in alone.process.output
        assert await made.holder() == ""
