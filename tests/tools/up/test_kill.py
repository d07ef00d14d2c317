"""``berth cluster --data-dir`` is killed again and again while clients write and watch."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import ApiError

pytestmark = [pytest.mark.wall, pytest.mark.slow, pytest.mark.timeout(600)]

MAPS: Final = "/api/v1/namespaces/default/configmaps"
KILLS: Final = 8
WRITES: Final = 800
"""Before a kill, at most. The journal is compacted under kills in tests/cluster/storage."""
WRITERS: Final = 16
NAMES_OF_WRITER: Final = 20

Content = str | None
"""Of a ConfigMap; None: it is not there. No two writes have the same."""


@dataclass
class Known:
    """What clients have learnt."""

    acknowledged: dict[str, Content] = field(default_factory=dict)
    """By name, as the last write that was answered made it."""
    asked: dict[str, Content] = field(default_factory=dict)
    """What was asked for, and not answered: it may have happened or not."""
    versions: dict[int, tuple[str, Content]] = field(default_factory=dict)
    """What each version was seen to be."""
    written: int = 0
    goal: int = 0
    """How many writes are waited for."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def wrote(self) -> None:
        """Count an acknowledged write."""
        self.written += 1
        if self.written >= self.goal:
            self.reached.set()

    async def more(self, count: int) -> None:
        """Wait for so many more writes."""
        self.goal = self.written + count
        self.reached.clear()
        await self.reached.wait()

    def saw(self, version: int, name: str, content: Content) -> None:
        """Note what somebody was told of a version; nobody may be told another thing."""
        assert self.versions.setdefault(version, (name, content)) == (name, content), version


class Writer:
    """Creates, changes and deletes ConfigMaps of its own, one after the other."""

    def __init__(self, number: int, known: Known, rng: random.Random) -> None:
        self._number = number
        self._known = known
        self._rng = rng
        self._count = 0

    async def write(self, client: ApiClient) -> None:
        """Write until the server does not answer."""
        with suppress(ApiError):
            while True:
                await self._write(client)

    async def _write(self, client: ApiClient) -> None:
        known = self._known
        name = f"map-{self._number}-{self._rng.randrange(NAMES_OF_WRITER)}"
        self._count += 1
        new = f"{self._number}/{self._count}"
        content: Content = new
        body: bytes | None = _map(name, new)
        method, path = "POST", MAPS
        if known.acknowledged.get(name) is not None:
            method, path = "PUT", f"{MAPS}/{name}"
            if self._rng.random() < 0.2:
                method, content, body = "DELETE", None, None
        known.asked[name] = content
        answer = msgspec.json.decode(await client.request(method, path, body=body))
        del known.asked[name]
        if content is not None:  # else the answer is a Status
            known.saw(int(answer["metadata"]["resourceVersion"]), name, content)
        known.acknowledged[name] = content
        known.wrote()


class Watcher:
    """Lists once and watches ever after, over all restarts."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self.version = 0
        self.state: dict[str, Content] = {}

    async def list(self, client: ApiClient) -> None:
        self.version, self.state = await listed(client, self._known)

    async def watch(self, client: ApiClient, *, last: str = "") -> None:
        """Watch until the server does not answer, or what was missed is forgotten.

        Or until the map *last* was seen.
        """
        params = {"resourceVersion": str(self.version)}
        with suppress(ApiError):
            async with aclosing(client.watch(MAPS, params)) as lines:
                async for line in lines:
                    if not line:  # the watch was accepted
                        continue
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        assert event["object"]["code"] == 410
                        await self.list(client)
                        return
                    self._take(event)
                    if last in self.state:
                        return

    def _take(self, event: Any) -> None:
        obj = event["object"]
        name, version = obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"])
        assert version > self.version
        self.version = version
        if not name.startswith("map-"):
            return
        content = None if event["type"] == "DELETED" else obj["data"]["content"]
        assert (event["type"] == "ADDED") == (name not in self.state)
        if content is None:
            del self.state[name]
        else:
            self.state[name] = content
        self._known.saw(version, name, content)


def _map(name: str, content: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": name}, "data": {"content": content}})


async def listed(client: ApiClient, known: Known) -> tuple[int, dict[str, Content]]:
    """Return version and contents of the list of now."""
    found = msgspec.json.decode(await client.request("GET", MAPS))
    contents: dict[str, Content] = {}
    for item in found["items"]:
        name = item["metadata"]["name"]
        if name.startswith("map-"):
            contents[name] = item["data"]["content"]
            known.saw(int(item["metadata"]["resourceVersion"]), name, contents[name])
    return int(found["metadata"]["resourceVersion"]), contents


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, ApiClient]]:
    """Run a cluster that is kept in *folder*; it is killed at the end.

    Clients use the kubeconfig of its first start.
    """
    config = folder / "kubeconfig"
    written = Path(os.devnull) if config.exists() else config
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "berth", "cluster"),
        *("--data-dir", str(folder / "data"), "--kubeconfig-out", str(written)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line.startswith(b"API server at "), line
        client = await connect(kubeconfig=str(config), qps=0)
        try:
            yield process, client
        finally:
            await client.close()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def check(client: ApiClient, known: Known) -> None:
    """Hold what is there against what was acknowledged; take up what is not known."""
    _, there = await listed(client, known)
    for name, content in known.acknowledged.items():
        possible = {content, known.asked.get(name, content)}
        assert there.get(name) in possible, name
    for name in {*there, *known.asked}:
        if name not in known.acknowledged:
            assert there.get(name) in {None, known.asked[name]}, name
        known.acknowledged[name] = there.get(name)
    known.asked.clear()


async def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    rng = random.Random(14)
    known = Known()
    writers = [Writer(number, known, rng) for number in range(WRITERS)]
    watcher = Watcher(known)
    resumed = 0
    async with cluster(tmp_path) as (_, client):
        await watcher.list(client)
    for _ in range(KILLS):
        async with cluster(tmp_path) as (process, client):
            await check(client, known)
            before = watcher.version
            writing = [asyncio.create_task(writer.write(client)) for writer in writers]
            watching = asyncio.create_task(watcher.watch(client))
            await known.more(rng.randrange(1, WRITES))
            process.send_signal(signal.SIGKILL)
            await asyncio.gather(*writing, watching)
            resumed += watcher.version > before
    async with cluster(tmp_path) as (_, client):
        await check(client, known)
        await client.request("POST", MAPS, body=_map("map-last", "last"))
        await watcher.watch(client, last="map-last")
        assert watcher.state == (await listed(client, known))[1]
    assert resumed > KILLS / 2
    assert known.written > KILLS * WRITES / 4
