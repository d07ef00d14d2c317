"""``berth bench extender``: how long another scheduler waits when it asks berth.

::

    API server process  <-- nodes --  this process  -- filter, prioritize -->  extender process
"""

import asyncio
import http.client
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import BERTH, START_SECONDS, api_server, create_nodes
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure, percentiles, used_figure

WARM_UP: Final = 20
NODE_BYTES: Final = 3_000
"""How large a node object is in a real cluster, about; ours are filled up with an annotation."""
SAID: Final = "extender at "


async def measure(*, nodes: int, repetitions: int, clock: Clock) -> AsyncIterator[Figure]:
    """Measure an extender process that has its caches filled; BenchError when that cannot be.

    The longest wait is the slowest answer to probes that were sent during a request.
    """
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        async with api_server(Path(folder), clock=clock) as (kubeconfig, client):
            await create_nodes(client, nodes)
            answer = msgspec.json.decode(await client.request("GET", "/api/v1/nodes"))
            rng = random.Random(1)
            async with _extender(kubeconfig, Path(folder), clock=clock) as (address, process):
                calling = _Calling(address, answer["items"], clock=clock, rng=rng)
                before = process.used()
                for what, seconds in await asyncio.to_thread(calling.with_names, repetitions):
                    for percentile in percentiles(what, seconds):
                        yield percentile
                yield used_figure(
                    "CPU of the extender for filter and prioritize",
                    process.used().since(before),
                    "ms",
                    count=WARM_UP + repetitions,
                )
                for figure in await calling.with_whole_nodes():
                    yield figure


@asynccontextmanager
async def _extender(
    kubeconfig: Path, folder: Path, *, clock: Clock
) -> AsyncIterator[tuple[str, Measured]]:
    """Yield ``host:port`` of an extender process that is ready, and the process."""
    output = folder / "extender.log"
    command = (*BERTH, "extender", f"--kubeconfig={kubeconfig}", "--port=0")
    async with running(command, output=output) as process:
        deadline = clock.monotonic() + START_SECONDS
        address = ""
        while not address or not await asyncio.to_thread(_is_ready, address):
            _check(process, clock.monotonic() > deadline)
            await clock.sleep(0.05)
            _, _, said = output.read_text(encoding="utf-8").partition(SAID)
            if "\n" in said:
                address = urlsplit(said.split()[0]).netloc
        yield address, process


def _check(process: Measured, is_late: bool) -> None:
    process.check()
    if is_late:
        raise BenchError(f"the extender was not ready within {START_SECONDS:.0f} s")


def _is_ready(address: str) -> bool:
    with closing(http.client.HTTPConnection(address)) as connection:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK


class _Calling:
    """Asks as kube-scheduler does: the same pod in every question, over a connection kept open."""

    def __init__(
        self, address: str, nodes: list[dict[str, Any]], *, clock: Clock, rng: random.Random
    ) -> None:
        self._rng = rng
        self._address = address
        self._nodes = nodes
        self._clock = clock
        spec = workloads.requests(100, 128)
        self._pod = {
            "metadata": {"name": "asked", "namespace": "default", "uid": "1"},
            "spec": spec,
        }

    def with_names(self, repetitions: int) -> list[tuple[str, Sequence[float]]]:
        """Ask about all nodes by name: filter, then prioritize those that are left.

        Return what was asked, and how many seconds each answer took.
        """
        names = [node["metadata"]["name"] for node in self._nodes]
        filters, priorities = [], []
        with closing(http.client.HTTPConnection(self._address)) as connection:
            for _ in range(WARM_UP + repetitions):
                # kube-scheduler begins with another node each time.
                first = self._rng.randrange(len(names))
                rotated = [*names[first:], *names[:first]]
                question = self._question({"Nodes": None, "NodeNames": rotated})
                began = self._clock.monotonic()
                left = _post(connection, "filter", question)
                filters.append(self._clock.monotonic() - began)
                again = self._question({"Nodes": None, "NodeNames": _node_names(left)})
                began = self._clock.monotonic()
                _post(connection, "prioritize", again)
                priorities.append(self._clock.monotonic() - began)
        filters, priorities = filters[WARM_UP:], priorities[WARM_UP:]
        both = [sum(pair) for pair in zip(filters, priorities, strict=True)]
        return [
            ("filter", filters),
            ("prioritize", priorities),
            ("filter and prioritize", both),
        ]

    async def with_whole_nodes(self) -> tuple[Figure, ...]:
        """Ask about all nodes by whole objects, those that berth knows and then newer ones."""
        for node in self._nodes:
            missing = NODE_BYTES - len(msgspec.json.encode(node))
            node["metadata"].setdefault("annotations", {})["filler"] = "x" * max(missing, 0)
        known = await self._stall("nodes as known")
        for node in self._nodes:
            node["metadata"]["resourceVersion"] += "1"
            node["metadata"]["labels"]["newer"] = "true"
        return (*known, *await self._stall("nodes all newer"))

    async def _stall(self, what: str) -> tuple[Figure, ...]:
        question = self._question({"Nodes": {"metadata": {}, "items": self._nodes}})
        began = self._clock.monotonic()
        asking = asyncio.create_task(asyncio.to_thread(self._ask, question), name="ask")
        waits = []
        while not asking.done():
            waits.append(await asyncio.to_thread(self._probe))
        await asking
        took, size = self._clock.monotonic() - began, f"{len(question) / 1e6:.1f} MB"
        return (
            figure(f"filter with whole nodes, {what}", took * 1e3, "ms", outcome=size),
            figure(f"longest wait of others meanwhile, {what}", max(waits), "ms"),
        )

    def _ask(self, question: bytes) -> None:
        with closing(http.client.HTTPConnection(self._address)) as connection:
            _post(connection, "filter", question)

    def _probe(self) -> float:
        began = self._clock.monotonic()
        _is_ready(self._address)
        return 1e3 * (self._clock.monotonic() - began)

    def _question(self, nodes: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"Pod": self._pod, **nodes})


def _post(connection: http.client.HTTPConnection, verb: str, body: bytes) -> bytes:
    connection.request("POST", f"/extender/{verb}", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != http.client.OK:
        raise BenchError(f"{verb} was answered {answer.status}: {content[:200]!r}")
    return content


def _node_names(answer: bytes) -> list[str]:
    said: dict[str, Any] = msgspec.json.decode(answer)
    names: list[str] | None = said["NodeNames"]
    if not names:
        raise BenchError(f"no node was left: {answer[-200:]!r}")
    return names
