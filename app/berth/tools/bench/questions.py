"""Everything that can be asked of a running scheduler, one question after the other."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from typing import Final, NamedTuple

import httpx

from berth.runtime.clock import Clock
from berth.tools.bench.process import BenchError

PATHS: Final[Mapping[str, str]] = {
    "/metrics": "/metrics",
    "/metrics/resources": "/metrics/resources",
    "/debug/queue": "/debug/queue?limit=1000",
    "/debug/queue, by priority": "/debug/queue?limit=1000&sort=priority",
    "/debug/queue/groups": "/debug/queue/groups?byWorkload=true",
    "/debug/cache": "/debug/cache?limit=1000",
    "/debug/cache, with pods": "/debug/cache?limit=1000&pods=true",
    "/debug/cache, by use": "/debug/cache?limit=1000&sort=use",
    "/debug/decisions": "/debug/decisions?limit=1000",
    "/debug/inflight": "/debug/inflight?limit=1000",
    "/debug/tasks": "/debug/tasks?limit=1000",
    "/debug/compare": "/debug/compare",
    "/debug/cluster": "/debug/cluster?groupBy=topology.kubernetes.io/zone",
    "/debug/cluster/labels": "/debug/cluster/labels",
    "/debug/cluster/use": "/debug/cluster/use?resource=cpu",
    "/debug/cluster/filters": "/debug/cluster/filters?pod={pod}",
    "/debug/overview": "/debug/overview?seconds=3600",
    "/explain": "/explain/pods/{pod}",
    "/explain, all nodes": "/explain/pods/{pod}?nodes=all",
    "/snapshot": "/snapshot",
}
SIMULATE: Final = "/simulate"
DUMP: Final = "SIGUSR2"
PAUSE_SECONDS: Final = 0.2
"""Between an answer and the next question."""
DUMP_SECONDS: Final = 5.0
"""How long the lines of a dump may take to be written: nobody says when they are."""
READY_SECONDS: Final = 60.0
TIMEOUT_SECONDS: Final = 120.0


class Asked(NamedTuple):
    """A question, and when it was asked and answered, monotonic seconds."""

    name: str
    begin: float
    end: float


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unverified() -> ssl.SSLContext:
    """Trust a scheduler that has just made its own certificate."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


class Questions:
    """Asks the scheduler of process *pid* at *port* of this machine, which must let anybody ask."""

    def __init__(self, port: int, pid: int, *, pod: str, clock: Clock) -> None:
        """*pod* is asked about, as namespace/name; best one that waits."""
        self._pid = pid
        self._pod = pod
        self._clock = clock
        self._client = httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{port}", verify=unverified(), timeout=TIMEOUT_SECONDS
        )

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[list[Asked]]:
        """Yield what was asked, which grows until the end of the block; begin when it is ready.

        BenchError if a question is refused.
        """
        asked: list[Asked] = []
        async with self._client:
            await self._until_ready()
            task = asyncio.create_task(self._ask_all(asked), name="questions")
            try:
                yield asked
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _until_ready(self) -> None:
        """Return when the scheduler knows the cluster; BenchError if it never does."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while self._clock.monotonic() < deadline:
            with suppress(httpx.TransportError):
                if (await self._client.get("/readyz")).is_success:
                    return
            await self._clock.sleep(PAUSE_SECONDS)
        raise BenchError(f"the scheduler was not ready within {READY_SECONDS:.0f} s")

    async def _ask_all(self, asked: list[Asked]) -> None:
        """Ask one question after the other, again and again."""
        for name in cycle((*PATHS, SIMULATE, DUMP)):
            begin = self._clock.monotonic()
            await self._ask(name)
            asked.append(Asked(name, begin, self._clock.monotonic()))
            await self._clock.sleep(PAUSE_SECONDS)

    async def _ask(self, name: str) -> None:
        if name == DUMP:
            os.kill(self._pid, signal.SIGUSR2)
            await self._clock.sleep(DUMP_SECONDS)
            return
        path = PATHS.get(name, name).format(pod=self._pod)
        try:
            if name == SIMULATE:
                answer = await self._client.post(path, json={})
            else:
                answer = await self._client.get(path)
        except httpx.TransportError as exc:
            raise BenchError(f"{path}: no answer: {exc!r}") from exc
        if not answer.is_success:
            raise BenchError(f"{path}: {answer.status_code} {answer.text[:500]}")
