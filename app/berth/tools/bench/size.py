"""``berth bench size``: what a scheduler process needs for a large cluster, and for its changes.

::

    size_server process  -- generated lists and watches -->  scheduler process
                                                                  ^  GET /livez, /proc
                                                             this process
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from berth.kube.client.connect import connect
from berth.runtime.clock import Clock
from berth.tools.bench.api_server import BERTH
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.questions import free_port, unverified
from berth.tools.bench.results import Figure, figure, used_figure

SERVER: Final = (sys.executable, "-m", "berth.tools.bench.size_server")
START_SECONDS: Final = 30.0
SECONDS_PER_POD: Final = 1e-3
"""How long filling the caches may take: ten times as long as it should."""
REST_SECONDS: Final = 5.0
PROBE_SECONDS: Final = 0.05
MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Settings:
    """The cluster, and its changes: so many a second, for so many seconds."""

    nodes: int = 5_000
    pods: int = 150_000
    rate: int = 2_000
    seconds: float = 20.0


class Late(msgspec.Struct):
    """The answer of the server when it has sent all changes."""

    late: float
    """By how many milliseconds the last was."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Fill a scheduler, let the cluster change, and yield what that took."""
    at: dict[str, Any] = {"nodes": settings.nodes, "pods": settings.pods}
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        async with serving(settings, folder, clock) as kubeconfig:
            port = free_port()
            command = (
                *BERTH, "run", f"--kubeconfig={kubeconfig}", "--leader-elect=false",
                "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder}",
            )  # fmt: skip
            started = clock.monotonic()
            async with running(command, output=folder / "scheduler.log") as scheduler:
                probe = _Probe(f"https://127.0.0.1:{port}", scheduler, clock)
                async with probe.probing():
                    await probe.until_ready(START_SECONDS + settings.pods * SECONDS_PER_POD)
                    took, used = clock.monotonic() - started, scheduler.used()
                    yield figure("start until all is known", took, "s", **at)
                    yield used_figure("start until all is known, CPU", used, "s", **at)
                    yield figure("longest wait of a probe meanwhile", probe.longest, "ms", **at)
                    await clock.sleep(REST_SECONDS)
                    yield figure("memory", scheduler.memory() / MIB, "MiB", **at)
                    yield figure("memory, at most", scheduler.peak_memory() / MIB, "MiB", **at)
                    async for change in _changes(settings, kubeconfig, scheduler, probe, clock):
                        yield msgspec.structs.replace(change, at=at)


async def _changes(
    settings: Settings, kubeconfig: Path, scheduler: Measured, probe: "_Probe", clock: Clock
) -> AsyncIterator[Figure]:
    changes = f"{settings.rate} changes a second"
    client = await connect(kubeconfig=str(kubeconfig), qps=0, user_agent="berth-bench")
    try:
        probe.longest = 0.0
        before, started = scheduler.used(), clock.monotonic()
        path = "/churn"
        params = {"rate": str(settings.rate), "seconds": str(settings.seconds)}
        answer = await client.request(
            "POST", path, params=params, timeout=10 * settings.seconds + START_SECONDS
        )
        used, took = scheduler.used().since(before), clock.monotonic() - started
    finally:
        await client.close()
    late = msgspec.json.decode(answer, type=Late).late
    count = int(settings.rate * settings.seconds)
    yield used_figure(f"{changes}, CPU of one", used, "µs", count=count)
    yield figure(f"{changes}, share of a core", used.cpu / took * 100, "%")
    yield figure(f"{changes}, how late the last is sent", late, "ms")
    yield figure(f"{changes}, longest wait of a probe", probe.longest, "ms")
    await clock.sleep(REST_SECONDS)
    yield figure(f"{changes}, memory after", scheduler.memory() / MIB, "MiB")


class _Probe:
    """Asks a scheduler all the time how it is, and notes how long it takes to say."""

    def __init__(self, url: str, scheduler: Measured, clock: Clock) -> None:
        self._url = url
        self._scheduler = scheduler
        self._clock = clock
        self.longest = 0.0
        """Milliseconds of CPU that the scheduler used while it owed an answer, which is what the
        wait would be on an idle machine. The first answer waits for the process to start, and does
        not count. Resolution: 10 ms."""

    @asynccontextmanager
    async def probing(self) -> AsyncIterator[None]:
        async with httpx.AsyncClient(
            base_url=self._url, verify=unverified(), timeout=60.0
        ) as client:
            self._client = client
            asking = asyncio.create_task(self._ask(), name="probe")
            try:
                yield
            finally:
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking

    async def until_ready(self, seconds: float) -> None:
        """Wait until the scheduler knows the cluster. Raises BenchError if it never does."""
        deadline = self._clock.monotonic() + seconds
        while not await self._succeeds("/readyz"):
            self._scheduler.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"the scheduler was not ready within {seconds:.0f} s")
            await self._clock.sleep(PROBE_SECONDS)

    async def _ask(self) -> None:
        while not await self._succeeds("/livez"):
            await self._clock.sleep(PROBE_SECONDS)
        while True:
            before = self._scheduler.cpu_seconds()
            if await self._succeeds("/livez"):
                used = self._scheduler.cpu_seconds() - before
                self.longest = max(self.longest, used * 1e3)
            await self._clock.sleep(PROBE_SECONDS)

    async def _succeeds(self, path: str) -> bool:
        try:
            return (await self._client.get(path)).is_success
        except httpx.TransportError:
            return False


@asynccontextmanager
async def serving(settings: Settings, folder: Path, clock: Clock) -> AsyncIterator[Path]:
    """Start the server of a made-up cluster, and yield its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    command = (*SERVER, str(settings.nodes), str(settings.pods), str(kubeconfig))
    async with running(command, output=folder / "server.log") as server:
        deadline = clock.monotonic() + START_SECONDS
        while not kubeconfig.exists():
            server.check()
            if clock.monotonic() > deadline:
                raise BenchError(f"the API server did not start within {START_SECONDS:.0f} s")
            await clock.sleep(0.05)
        yield kubeconfig
