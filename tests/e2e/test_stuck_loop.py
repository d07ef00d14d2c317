"""A plugin that loops for ever: log, probe and metric say so, and its call is ended."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest

from berth.runtime.addresses import LOOPBACK
from tests.e2e.replicas import cluster, until
from tests.e2e.test_secure_port import free_port

pytestmark = [pytest.mark.wall, pytest.mark.slow]

PLUGIN = """
from berth.plugin import ScalarFilter

class Loops(ScalarFilter):
    NAME = "Loops"

    def filter_node(self, state, pod, node_info):
        while pod.pod.metadata.name == "trap":
            pass
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Loops}]}}
"""


async def test_a_plugin_that_loops_for_ever_is_found(tmp_path: Path) -> None:
    folder, config = tmp_path / "plugins", tmp_path / "config.yaml"
    folder.mkdir()
    (folder / "loops.py").write_text(PLUGIN)
    config.write_text(CONFIG)
    port, certificates = free_port(), tmp_path / "certificates"

    async def ask(path: str) -> httpx.Response:
        trusted = ssl.create_default_context(cafile=certificates / "kube-scheduler.crt")
        async with httpx.AsyncClient(verify=trusted) as client:
            return await client.get(f"https://localhost:{port}{path}")

    async with cluster(tmp_path, nodes=2, cpu="8") as made:
        flags = [
            f"--config={config}",
            f"--plugin-dir={folder}",
            "--leader-elect=false",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
        ]
        process = (await made.replica("scheduler", flags)).process
        await made.create_pods(["easy"], cpu="100m")
        await until(lambda: made.bound == 1, "an ordinary pod is bound")
        assert (await ask("/livez")).status_code == 200

        await made.create_pods(["trap"], cpu="100m")
        async with asyncio.timeout(60):
            await until(lambda: "event loop is stuck" in process.output, "the log says so")
        live, metrics = await ask("/livez"), await ask("/metrics")
        async with asyncio.timeout(60):
            await until(lambda: "event loop turns again" in process.output, "the call is ended")
        assert (await ask("/livez")).status_code == 200

    assert (live.status_code, live.text) == (
        500,
        "[-]event-loop failed: reason withheld\nlivez check failed\n",
    )
    assert "berth_event_loop_stuck_seconds" in metrics.text
    assert "plugin=Loops pod=default/trap" in process.output
    assert "in filter_node\n" in process.output
    assert "plugin failed plugin=Loops extension_point=Filter pod=default/trap" in process.output
    assert 'while pod.pod.metadata.name == "trap":\n' in process.output
