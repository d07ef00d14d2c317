"""The embedded cluster over TLS: kubeconfig, tokens, and who is turned away."""

import random
import ssl
import stat
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
import yaml

from berth.cluster.access.users import SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import ApiError
from berth.runtime.clock import RealClock

pytestmark = pytest.mark.wall

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODES = "/api/v1/nodes"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    made = EmbeddedCluster(clock=RealClock(), rng=random.Random(1))
    await made.start(0)
    yield made
    await made.stop()


async def refusal(client: ApiClient, method: str, path: str) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        await client.request(method, path)
    return caught.value.status, caught.value.message


async def test_the_kubeconfig_is_all_that_its_owner_needs(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    cluster.write_kubeconfig(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    client = await connect(kubeconfig=str(path))
    assert client.url == cluster.url
    assert client.url.startswith("https://127.0.0.1:")
    await client.request("POST", ACCOUNTS, body=b'{"metadata": {"name": "robot"}}')
    lines = client.watch(ACCOUNTS, {"timeoutSeconds": "5"})
    opened, *accounts = [await anext(lines) for _ in range(3)]
    assert opened == b""
    names = [msgspec.json.decode(account)["object"]["metadata"]["name"] for account in accounts]
    assert names == ["default", "robot"]
    await client.close()


async def test_a_file_in_its_place_is_replaced_whoever_could_read_it(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o644)
    cluster.write_kubeconfig(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_without_a_token_there_is_health_only(
    cluster: EmbeddedCluster, tmp_path: Path, host: str
) -> None:
    cluster.write_kubeconfig(tmp_path / "kubeconfig")
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text(encoding="utf-8"))
    authority = b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    base = cluster.url.replace("127.0.0.1", host)
    trusting = ssl.create_default_context(cadata=authority)
    async with httpx.AsyncClient(base_url=base, verify=trusting) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get(NODES)).status_code == 403
        wrong = {"Authorization": "Bearer nonsense"}
        assert (await client.get("/healthz", headers=wrong)).status_code == 401


async def test_who_does_not_know_the_certificate_does_not_talk(cluster: EmbeddedCluster) -> None:
    async with httpx.AsyncClient(base_url=cluster.url) as client:
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await client.get("/healthz")


async def test_a_client_is_who_it_says(cluster: EmbeddedCluster) -> None:
    client = await cluster.connect("test", user=SCHEDULER)
    await client.request("GET", NODES)
    assert await refusal(client, "DELETE", f"{NODES}/n") == (
        403,
        'nodes "n" is forbidden: User "system:kube-scheduler" cannot delete resource "nodes" '
        'in API group "" at the cluster scope',
    )
    await client.close()


async def test_a_client_of_a_service_account(cluster: EmbeddedCluster) -> None:
    admin = await cluster.connect("admin")
    await admin.request("POST", ACCOUNTS, body=b'{"metadata": {"name": "robot"}}')
    answer = await admin.request("POST", f"{ACCOUNTS}/robot/token", body=b"{}")
    token = msgspec.json.decode(answer)["status"]["token"]
    robot = await cluster.connect("robot", token=token)
    assert (await refusal(robot, "GET", NODES))[1] == (
        'nodes is forbidden: User "system:serviceaccount:default:robot" cannot list resource '
        '"nodes" in API group "" at the cluster scope'
    )
    await admin.request("DELETE", f"{ACCOUNTS}/robot")
    assert await refusal(robot, "GET", NODES) == (401, "Unauthorized")
    await robot.close()
    await admin.close()


async def test_an_insecure_cluster_asks_nobody(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(clock=RealClock(), rng=random.Random(1), insecure=True)
    await cluster.start(0)
    cluster.write_kubeconfig(tmp_path / "kubeconfig")
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text(encoding="utf-8"))
    assert config["users"] == [{"name": "berth-admin", "user": {}}]
    assert config["clusters"][0]["cluster"] == {"server": cluster.url}
    async with httpx.AsyncClient(base_url=cluster.url) as client:
        assert (await client.get(NODES)).status_code == 200
    await cluster.stop()
