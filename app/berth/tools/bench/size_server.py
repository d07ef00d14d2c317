"""An API server of a large cluster that holds nothing: it makes each object when it sends it.

``python -m berth.tools.bench.size_server NODES PODS KUBECONFIG`` serves the watches of nodes and
pods, and no other kind. ``POST /churn?rate=R&seconds=S`` sends R changes a second, of all kinds or
of the one that ``kind`` names; the answer, when all are sent, has how many milliseconds late the
last one was. A scheduler that does not keep up makes them late, because what it does not read is
not sent.
"""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import uvloop

from berth.tools.bench.large_cluster import LargeCluster

T = TypeVar("T")

_KINDS: Final = {"nodes": "Node", "pods": "Pod"}
_END: Final = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":'
    b'{"k8s.io/initial-events-end":"true"}}}}\n'
)
_AT_ONCE: Final = 16
"""Objects of a list that are sent together: some 100 kB."""
_TICK: Final = 0.01
"""Seconds between two batches of changes."""
_MIX: Final = ("heartbeat", "status", "status", "replaced", "replaced")
"""Kinds of changes, in the shares that they have; a replaced pod is two."""


class Churn:
    """Changes of a cluster: heartbeats of nodes, statuses of pods, and pods in others' place."""

    def __init__(self, cluster: LargeCluster) -> None:
        self._cluster = cluster
        self._rng = random.Random(0)
        self._version = 1
        self._generations: dict[int, int] = {}

    def lines(self, count: int, kind: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield at least *count* events, each with the resource it is about.

        They are of one *kind* of changes, or of all.
        """
        mix, sent = (kind,) if kind else _MIX, 0
        while sent < count:
            for resource, type_, obj in self._change(self._rng.choice(mix)):
                yield resource, event(type_, obj)
                sent += 1

    def _change(self, kind: str) -> Iterator[tuple[str, bytes, bytes]]:
        self._version += 2
        cluster, version = self._cluster, self._version
        if kind == "heartbeat":
            node = self._rng.randrange(cluster.nodes)
            yield "nodes", b"MODIFIED", cluster.node(node, version=version, heartbeat=version)
            return
        pod = self._rng.randrange(cluster.pods)
        generation = self._generations.get(pod, 0)
        if kind == "status":
            changed = cluster.pod(pod, version=version, generation=generation)
            yield "pods", b"MODIFIED", changed
            return
        yield "pods", b"DELETED", cluster.pod(pod, version=version, generation=generation)
        self._generations[pod] = generation + 1
        yield "pods", b"ADDED", cluster.pod(pod, version=version + 1, generation=generation + 1)


class SizeServer:
    """Serves *cluster* over HTTP/1.1, as far as ``berth bench size`` asks."""

    def __init__(self, cluster: LargeCluster) -> None:
        self._cluster = cluster
        self._churn = Churn(cluster)
        self._watches: dict[str, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, _ = head.split(b" ", 2)
                length = 0
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                await reader.readexactly(length)
                url = urlsplit(target.decode())
                async for part in self._answer(
                    method, url.path, dict(parse_qsl(url.query)), writer
                ):
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, method: bytes, path: str, query: dict[str, str], writer: asyncio.StreamWriter
    ) -> AsyncIterator[bytes]:
        resource = path.rpartition("/")[2]
        if path == "/api/v1":
            kinds = [{"name": n, "kind": k, "namespaced": n == "pods"} for n, k in _KINDS.items()]
            yield response(200, {"resources": kinds})
        elif method == b"POST" and path == "/churn":
            late = await self._send_changes(
                int(query["rate"]), float(query["seconds"]), query.get("kind", "")
            )
            yield response(200, {"late": late})
        elif path.startswith("/api/v1/") and resource in _KINDS and "watch" in query:
            yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
            if "sendInitialEvents" in query:
                async for part in self._initial(resource):
                    yield part
            self._watches[resource] = writer
            await writer.wait_closed()
        else:
            reason = "NotFound" if method == b"GET" else "MethodNotAllowed"
            yield response(404, {"kind": "Status", "code": 404, "reason": reason})

    async def _initial(self, resource: str) -> AsyncIterator[bytes]:
        objects = getattr(self._cluster, f"all_{resource}")()
        for some in batches((event(b"ADDED", obj) for obj in objects), _AT_ONCE):
            yield b"".join(some)
        yield _END

    async def _send_changes(self, rate: int, seconds: float, kind: str) -> float:
        """Send them, and return by how many milliseconds the last were late."""
        loop = asyncio.get_running_loop()
        lines = self._churn.lines(int(rate * seconds), kind)
        due = loop.time()
        for some in batches(lines, max(int(rate * _TICK), 1)):
            due += _TICK
            await asyncio.sleep(due - loop.time())
            for resource, line in some:
                self._watches[resource].write(line)
            for writer in self._watches.values():
                await writer.drain()
        return max(loop.time() - due, 0.0) * 1e3


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut *items* into lists of *size*; the last may be shorter."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def event(kind: bytes, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind, obj)


def response(status: int, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return f"{head}\r\n\r\n".encode() + data


def kubeconfig(url: str) -> dict[str, Any]:
    """Return a kubeconfig for the API server at *url*."""
    name = "size"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
    }


async def main(nodes: int, pods: int, written: Callable[[str], object]) -> None:
    """Serve for ever; call *written* with the text of a kubeconfig first."""
    cluster = SizeServer(LargeCluster(nodes, pods))
    server = await asyncio.start_server(cluster.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    written(json.dumps(kubeconfig(f"http://{host}:{port}")))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).write_text))
