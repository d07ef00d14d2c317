"""``berth run`` is given other configurations while it schedules, by file and by signal."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.replicas import cluster, until

pytestmark = [pytest.mark.wall, pytest.mark.slow]

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
QUICK = "clientConnection: {qps: 1000, burst: 1000}\n"
CONFIGS = (
    f"{HEADER}{QUICK}",
    f"{HEADER}{QUICK}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: other}}]\n",
    f"{HEADER}{QUICK}podMaxBackoffSeconds: 3\n",
)


async def test_reloads_under_load(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIGS[0])
    names = [f"p{number}" for number in range(400)]
    async with cluster(tmp_path, nodes=8, cpu="8") as made:
        replica = await made.replica("scheduler", [f"--config={file}", "--leader-elect=false"])
        process = replica.process

        def said(sentence: str) -> int:
            return process.output.count(f"berth.scheduler.core.live_configuration: {sentence}")

        for turn in range(4):
            await made.create_pods(names[turn * 100 : turn * 100 + 50], cpu="100m")
            await until(lambda: made.bound > 0, "it schedules")
            file.write_text(CONFIGS[turn % len(CONFIGS)])
            process.send(signal.SIGHUP)
            await made.create_pods(names[turn * 100 + 50 : turn * 100 + 100], cpu="100m")
        await until(lambda: made.bound == len(names), "all pods are bound")
        assert made.times_bound == Counter({1: len(names)})
        assert said("configuration replaced") >= 3

        # What is wrong is told, and changes nothing.
        file.write_text(f"{HEADER}{QUICK}parallelism: -1\npodMaxBackoffSeconds: -1\n")
        await until(
            lambda: process.output.count("configuration not reloaded") == 2,
            "the change is noticed without a signal",
        )
        process.send(signal.SIGUSR2)
        await until(lambda: "cache compared differences=0" in process.output, "it tells all")
        await made.create_pods(["one-more"], cpu="100m")
        await until(lambda: made.bound == len(names) + 1, "it goes on")
