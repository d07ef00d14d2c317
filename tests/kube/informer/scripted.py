"""An API that answers by script, and a handler that writes down what it is told."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from berth.kube.informer.watch_event import INITIAL_EVENTS_END

encode = msgspec.json.encode
Object = dict[str, Any]


def obj(name: str, version: int, *, uid: str = "", **fields: Any) -> Object:
    """Make an object of the namespace ``ns`` whose uid is its name, unless said otherwise."""
    metadata = {
        "namespace": "ns",
        "name": name,
        "resourceVersion": str(version),
        "uid": uid or name,
    }
    return {"metadata": metadata, **fields}


def line(kind: str, what: object) -> bytes:
    return encode({"type": kind, "object": what})


def added(name: str, version: int, **fields: Any) -> bytes:
    return line("ADDED", obj(name, version, **fields))


def modified(name: str, version: int, **fields: Any) -> bytes:
    return line("MODIFIED", obj(name, version, **fields))


def deleted(name: str, version: int, **fields: Any) -> bytes:
    return line("DELETED", obj(name, version, **fields))


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def initial_end(version: int) -> bytes:
    annotations = {INITIAL_EVENTS_END: "true"}
    return line(
        "BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}}
    )


def error(code: int, reason: str = "", message: str = "") -> bytes:
    return line("ERROR", {"code": code, "reason": reason, "message": message})


def page(*items: object, version: int, more: str = "") -> bytes:
    return encode({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items})


OPEN: Final = None
"""In a watch's script: the watch stays open from here on."""

Step = bytes | Exception | asyncio.Event | None
"""A line, an error, something to wait for in silence, or OPEN."""


@dataclass
class ScriptedApi:
    """Answers the n-th watch with the n-th script, and lists likewise; hangs when there is none."""

    watches: Iterable[Iterable[Step]] = ()
    lists: Iterable[bytes | Exception] = ()
    asked: list[Mapping[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watches = deque(self.watches)
        self._lists = deque(self.lists)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        assert (method, path, body) == ("GET", "/things", None)
        self.asked.append(dict(params or {}))
        answer = self._lists.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        assert path == "/things"
        self.asked.append(dict(params))
        for step in self._watches.popleft() if self._watches else [OPEN]:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif step is OPEN:
                await asyncio.get_running_loop().create_future()
            else:
                yield step


class Recorder:
    """A handler whose ``calls`` read ``add a@1``, ``update a@1>2``, ``delete a@2``."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: Object) -> None:
        self.calls.append(f"add {spelt(obj)}")

    def on_update(self, old: Object, new: Object) -> None:
        self.calls.append(f"update {spelt(old)}>{new['metadata']['resourceVersion']}")

    def on_delete(self, obj: Object) -> None:
        self.calls.append(f"delete {spelt(obj)}")

    def taken(self) -> list[str]:
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


def spelt(obj: Object) -> str:
    return f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}"
