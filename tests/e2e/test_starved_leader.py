"""A leader with a twentieth of a core leads on as long as it binds, and not when it is stopped.

For half a minute by default, or for as many seconds as ``BERTH_STARVED`` says in the environment.
The API server and the other replica are processes of their own, which are not starved.
"""

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.kube.client.errors import NotFoundError
from berth.kube.informer.watch_event import WatchEvent
from tests.e2e.replicas import PODS, Cluster, clock, cluster, until
from tests.e2e.starved import starved

SECONDS = float(os.environ.get("BERTH_STARVED", "30"))
pytestmark = [pytest.mark.wall, pytest.mark.slow, pytest.mark.timeout(SECONDS + 240)]

SHARE = 0.05
NODES = 100
PLUGIN = """
import time
from berth.plugin import ScalarFilter

class Ponders(ScalarFilter):
    NAME = "Ponders"

    def filter_node(self, state, pod, node_info):
        end = time.thread_time() + 0.0003
        while time.thread_time() < end:
            pass
"""
"""An attempt takes 30 ms of CPU, as those with volumes and devices do, and 0.6 s when starved."""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Ponders}]}}
"""
AT_A_TIME = 4
"""Pods that are being created at the same time."""
MOST_WAITING = 1000
"""Pods that are created ahead: there is always more to do than can be done."""
KEPT = 2000
"""Pods that stay; older ones are deleted."""
LONGEST_SILENCE = 30.0
"""Seconds without a bind after which "as long as it binds" would mean nothing."""
TAKEOVER = 15 + 4.4 + 2 + 3.0
"""The lease, a look of the standby that comes late, a retry period, and a busy machine."""


class Leases:
    """What the Lease is seen to say."""

    def __init__(self) -> None:
        self.holders: list[str] = []
        self.renewals: list[float] = []

    async def follow(self, made: Cluster) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        async with aclosing(made.client.watch(path, {})) as lines:
            async for line in lines:
                if line:
                    lease: Any = msgspec.json.decode(
                        msgspec.json.decode(line, type=WatchEvent[msgspec.Raw]).object
                    )
                    if lease["metadata"]["name"] == "kube-scheduler":
                        self.see(lease["spec"]["holderIdentity"])

    def see(self, holder: str) -> None:
        self.renewals.append(clock.monotonic())
        if self.holders[-1:] != [holder]:
            self.holders.append(holder)

    @property
    def longest_gap(self) -> float:
        return longest_gap(self.renewals)


def longest_gap(times: list[float]) -> float:
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


async def create_and_delete(made: Cluster, numbers: Iterator[int]) -> None:
    """Create pods for ever, and delete those that are bound, so that there is always room.

    Every eighth asks for what takes long to decide: to be spread, and away from each other.
    """
    for number in numbers:
        labels = {"group": str(number % 800)}
        selector = {
            "labelSelector": {"matchLabels": labels},
            "topologyKey": "kubernetes.io/hostname",
        }
        spread = {**selector, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        hard: Any = {
            "topologySpreadConstraints": [spread],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [selector],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": selector}
                    ],
                }
            },
        }
        await made.create_pods(
            [f"pod-{number:06}"], cpu="10m", labels=labels, **(hard if number % 8 == 0 else {})
        )
        old = f"pod-{number - KEPT:06}"
        if made.placements.get(old):
            with suppress(NotFoundError):
                await made.client.request("DELETE", f"{PODS}/{old}")
        await until(lambda number=number: number - made.bound < MOST_WAITING, "some are bound")


async def test_a_starved_leader_leads_as_long_as_it_binds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster(tmp_path, nodes=NODES, cpu="64") as made:
        (tmp_path / "plugins").mkdir()
        (tmp_path / "plugins" / "ponders.py").write_text(PLUGIN)
        (tmp_path / "config.yaml").write_text(CONFIG)
        flags = [f"--config={tmp_path / 'config.yaml'}", f"--plugin-dir={tmp_path / 'plugins'}"]
        leader = await made.replica("leader", flags)
        await until(lambda: "became leader" in leader.process.output, "the first leads")
        standby = await made.replica("standby", flags)
        await until(lambda: "another leads" in standby.process.output, "the second waits")
        leases, numbers = Leases(), itertools.count()
        tasks = [
            asyncio.create_task(each, name="beside")
            for each in (
                leases.follow(made),
                *(create_and_delete(made, numbers) for _ in range(AT_A_TIME)),
            )
        ]
        try:
            async with starved(leader.process.pid, share=SHARE) as how:
                await asyncio.sleep(SECONDS)
            binds = [bind.at for bind in leader.proxy.binds if bind.status == 201]
            gap, silence = leases.longest_gap, longest_gap(binds)
            created = len(made.placements)
            assert len(leases.holders) == 1, leases.holders
            assert not standby.proxy.binds
            assert "stopped leading" not in leader.process.output
            assert silence < LONGEST_SILENCE

            stopped = leader.process.send(signal.SIGSTOP)
            await until(lambda: standby.proxy.binds, "the standby binds", seconds=TAKEOVER)
            takeover = standby.proxy.binds[0].at - stopped
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        assert len(leases.holders) == 2
    with capsys.disabled():
        sys.stdout.write(
            f"\n{SECONDS:.0f} s with {SHARE:.0%} of a core ({how}): {len(binds)} binds of"
            f" {created}, at most"
            f" {silence:.1f} s apart; renewals at most {gap:.1f} s apart;"
            f" takeover {takeover:.1f} s\n"
        )
