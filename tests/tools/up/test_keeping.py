"""A cluster that is kept in a folder: what is the same after a restart, and what ends it."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from berth.cluster.access.users import ADMIN
from berth.cluster.embedded_cluster import COMPONENTS, MONITORING_TOKEN, EmbeddedCluster
from berth.cluster.storage.database import Database
from berth.cluster.storage.journal import JournalError
from berth.kube.client.connect import connect
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import RealClock
from tests.cluster.custom.definitions import DEFINITIONS, definition, widget, widgets
from tests.cluster.storage.keeping import SlowDatabase

pytestmark = pytest.mark.wall

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@asynccontextmanager
async def cluster(
    database: Database | None, *, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[EmbeddedCluster]:
    running = EmbeddedCluster(clock=RealClock(), rng=random.Random(1), host=host, database=database)
    await running.start(port)
    try:
        yield running
    finally:
        await running.stop()


def with_token(kubeconfig: Path, token: str) -> Path:
    """Write the same kubeconfig with another token."""
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"]["token"] = token
    path = kubeconfig.with_name("with-token")
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


async def whoami(kubeconfig: Path) -> str:
    """Return who the API server says that the user of a kubeconfig is."""
    client = await connect(kubeconfig=str(kubeconfig), qps=0)
    try:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await client.request("POST", path, body=b"{}")
    finally:
        await client.close()
    name: str = msgspec.json.decode(answer)["status"]["userInfo"]["username"]
    return name


async def test_old_credentials_are_good_after_a_restart(tmp_path: Path) -> None:
    data, old = tmp_path / "data", tmp_path / "old"
    async with cluster(Database(data)) as before:
        before.write_kubeconfig(tmp_path / "admin")
        before.write_credentials(old)
        asked = await before.in_process("test", user=ADMIN).request(
            "POST", f"{ACCOUNT}/token", body=b"{}"
        )
        token = msgspec.json.decode(asked)["status"]["token"]
    # Also when it is reached at more addresses: the authority is the same.
    async with cluster(Database(data), host="0.0.0.0") as after:
        assert after.url == before.url
        assert await whoami(tmp_path / "admin") == "berth-admin"
        for name, user in COMPONENTS.items():
            assert await whoami(old / name) == user.name
        monitoring = (old / MONITORING_TOKEN).read_text(encoding="utf-8")
        for kept, user_name in (
            (monitoring, "berth-monitoring"),
            (token, "system:serviceaccount:default:default"),
        ):
            assert await whoami(with_token(tmp_path / "admin", kept)) == user_name


async def test_another_port_is_used_when_that_of_before_is_taken(tmp_path: Path) -> None:
    async with cluster(Database(tmp_path)) as before:
        url = before.url
    with socket.create_server((LOOPBACK, int(url.rpartition(":")[2]))):
        async with cluster(Database(tmp_path)) as after:
            assert after.url != url


async def test_kinds_that_were_defined_are_there_after_a_restart(tmp_path: Path) -> None:
    async with cluster(Database(tmp_path)) as before:
        api = before.in_process("test", user=ADMIN)
        await api.request("POST", DEFINITIONS, body=msgspec.json.encode(definition()))
        await api.request("POST", widgets(), body=msgspec.json.encode(widget()))
    async with cluster(Database(tmp_path)) as after:
        api = after.in_process("test", user=ADMIN)
        found = msgspec.json.decode(await api.request("GET", f"{widgets()}/w"))
        assert found["kind"] == "Widget"


def test_a_cluster_is_made_before_its_event_loop(tmp_path: Path) -> None:
    for _ in range(2):
        made = EmbeddedCluster(clock=RealClock(), rng=random.Random(1), database=Database(tmp_path))

        async def serve(running: EmbeddedCluster = made) -> None:
            await running.start(0)
            await running.stop()

        asyncio.run(serve())


async def test_a_cluster_that_is_not_kept_is_new_each_time() -> None:
    async with cluster(None) as one, cluster(None) as other:
        assert one.authority != other.authority
        assert one.access().token != other.access().token
        assert one.how_kept == "the cluster ends with this process; to keep it, use --data-dir"


async def test_what_cannot_be_kept_ends_the_cluster(tmp_path: Path) -> None:
    database = SlowDatabase(tmp_path, kept_changes=100)
    async with cluster(database) as running:
        working = asyncio.create_task(running.while_kept(running.run_controllers()))
        await asyncio.sleep(0)
        database.fail()
        with pytest.raises(JournalError, match=r"berth\.db: disk I/O error"):
            await working


async def test_work_that_ends_ends_the_wait_for_the_journal(tmp_path: Path) -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async with cluster(Database(tmp_path)) as running:
        assert await running.while_kept(work()) == 7
