"""``berth up`` answers ``berth explain``, on another port if its own is taken."""

import asyncio
import random
import re
import socket
import ssl
from base64 import b64decode
from pathlib import Path

import httpx
import pytest
import yaml

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.node_template import NodePool
from berth.kube.kubeconfig import scheduler_in
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.up import Up, UpOptions
from berth_plugins.registry import IN_TREE
from tests.tools.up.test_up import run

pytestmark = pytest.mark.wall


async def test_a_taken_port_is_told_and_another_one_used(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        written: list[str] = []  # in the kubeconfig, which goes with the cluster
        status, said = await run(
            tmp_path,
            hear=lambda _line: written.append(scheduler_in(str(tmp_path / "kubeconfig"))),
            debug_port=port,
        )

    assert status == 0
    assert said[0] == f"--debug-port {port} is not available; the kubeconfig has another one"
    where = rf"--kubeconfig {re.escape(str(tmp_path / 'kubeconfig'))}"
    told = rf"scheduler at (https://127\.0\.0\.1:\d+); try: berth explain {where} POD"
    found = re.fullmatch(told, said[3])
    assert found is not None
    assert written[3] == found[1] != f"https://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("insecure", "path", "with_token", "want"),
    [
        pytest.param(False, "/configz", True, 200, id="the kubeconfig is good for it"),
        pytest.param(False, "/configz", False, 403, id="nobody may"),
        pytest.param(False, "/readyz", False, 200, id="probes are for everybody"),
        pytest.param(True, "/configz", False, 200, id="everybody may where nobody is asked"),
    ],
)
async def test_who_is_answered(
    tmp_path: Path, insecure: bool, path: str, with_token: bool, want: int
) -> None:
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def say(line: str) -> None:
        if line.startswith("scheduler at "):
            url.set_result(line.split()[2].rstrip(";"))

    clock, rng = RealClock(), random.Random(1)
    kubeconfig = tmp_path / "kubeconfig"
    up = Up(
        UpOptions([NodePool(1)], kubeconfig=KubeconfigOut(kubeconfig)),
        default_configuration(args_models(IN_TREE)),
        EmbeddedCluster(clock=clock, rng=rng, insecure=insecure),
        clock=clock,
        rng=rng,
        say=say,
    )
    running = asyncio.create_task(up.run(), name="up")
    try:
        endpoint = await url
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        token = config["users"][0]["user"].get("token")
        headers = {"Authorization": f"Bearer {token}"} if with_token else {}
        authority = config["clusters"][0]["cluster"].get("certificate-authority-data", "")
        trusted = ssl.create_default_context(cadata=b64decode(authority).decode() or None)
        async with httpx.AsyncClient(base_url=endpoint, verify=trusted) as client:
            for _ in range(50):  # until it is ready
                status = (await client.get(path, headers=headers)).status_code
                if status != 500:
                    break
                await asyncio.sleep(0.1)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert status == want
