"""An API server with one Lease, on a fake clock: slow, lossy or dead when a test wants it so."""

import asyncio
import copy
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    UnavailableError,
)
from berth.runtime.clock import Clock, FakeClock
from berth.service.leaderelection.candidate import Timing
from berth.service.leaderelection.elector import LeaderElector
from berth.service.leaderelection.lease_lock import LeaseLock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/kube-scheduler"
EVENTS = "/api/v1/namespaces/kube-system/events"
TIMING = Timing(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)

Object = dict[str, Any]


class Trouble(NamedTuple):
    """What happens to one request, in seconds."""

    until_applied: float = 0.0
    until_answered: float = 0.0
    error: ApiError | None = None
    """Comes in place of the answer, without anything being applied."""


NO_TROUBLE = Trouble()
DEAD = Trouble(error=UnavailableError("connection refused", sent=False))
SILENT = Trouble(until_applied=1e9)


class LeaseApi:
    """Holds a Lease under optimistic locking; remembers what was asked and what was told."""

    def __init__(self, clock: Clock, lease: Object | None = None) -> None:
        self.lease = lease
        self.asked: list[tuple[str, str]] = []
        self.params: list[Mapping[str, str] | None] = []
        self.events: list[Object] = []
        self.trouble: Callable[[str, str], Trouble] = lambda _method, _path: NO_TROUBLE
        self._clock = clock
        self._version = 100
        self._running: set[asyncio.Task[bytes]] = set()

    @property
    def spec(self) -> Object:
        assert self.lease is not None
        spec: Object = self.lease["spec"]
        return spec

    @property
    def messages(self) -> list[str]:
        return [event["message"] for event in self.events]

    def put(self, **spec: object) -> None:
        """Have the Lease say so, as if somebody wrote it."""
        metadata = {"name": "kube-scheduler", "namespace": "kube-system", "uid": "u"}
        self._store({"metadata": metadata, **(self.lease or {}), "spec": spec})

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
        self.asked.append((method, path))
        self.params.append(params)
        trouble = self.trouble(method, path)
        return await self.exchange(method, path, body=body, timeout=timeout, trouble=trouble)

    async def exchange(
        self, method: str, path: str, *, body: bytes | None, timeout: float | None, trouble: Trouble
    ) -> bytes:
        """Serve one request with this *trouble*."""
        serving = asyncio.create_task(self._serve(method, path, body, trouble), name="serve")
        self._running.add(serving)
        serving.add_done_callback(self._running.discard)
        # The server goes on, whoever gives up: he does not know what became of the request.
        serving.add_done_callback(lambda task: task.cancelled() or task.exception())
        if timeout is None:
            return await asyncio.shield(serving)
        too_late = asyncio.create_task(self._clock.sleep(timeout), name="timeout")
        try:
            await asyncio.wait((serving, too_late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            too_late.cancel()
        if serving.done():
            return serving.result()
        raise UnavailableError("timed out", sent=None)

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nobody watches leases")

    async def _serve(self, method: str, path: str, body: bytes | None, trouble: Trouble) -> bytes:
        if trouble.error is not None:
            raise trouble.error
        if trouble.until_applied:
            await self._clock.sleep(trouble.until_applied)
        answer = msgspec.json.encode(self._apply(method, path, body and msgspec.json.decode(body)))
        if trouble.until_answered:
            await self._clock.sleep(trouble.until_answered)
        return answer

    def _apply(self, method: str, path: str, body: Any) -> Object:
        match method, path:
            case "GET", path if path == LEASE:
                if self.lease is None:
                    raise NotFoundError(404, "NotFound", "no lease")
                return self.lease
            case "POST", path if path == LEASES:
                if self.lease is not None:
                    raise AlreadyExistsError(409, "AlreadyExists", "there is one")
                return self._store(body)
            case "PUT", path if path == LEASE:
                if self.lease is None:
                    raise NotFoundError(404, "NotFound", "no lease")
                known = body["metadata"].get("resourceVersion")
                if known != self.lease["metadata"]["resourceVersion"]:
                    raise ConflictError(409, "Conflict", "the object has been modified")
                return self._store(body)
            case "POST", path if path == EVENTS:
                self.events.append(body)
                return {}
        raise AssertionError(f"unexpected {method} {path}")

    def _store(self, lease: Object) -> Object:
        self._version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self._version)
        return self.lease


def lock_of(api: Api, clock: Clock) -> LeaseLock:
    return LeaseLock(
        api,
        namespace="kube-system",
        name="kube-scheduler",
        component="default-scheduler",
        clock=clock,
    )


def make_elector(
    api: Api, clock: Clock, *, identity: str = "me", timing: Timing = TIMING, seed: int = 1
) -> LeaderElector:
    return LeaderElector(
        lock_of(api, clock), identity=identity, timing=timing, clock=clock, rng=random.Random(seed)
    )


async def settle() -> None:
    """Let everybody do what can be done without time passing."""
    for _ in range(40):
        await asyncio.sleep(0)


async def advance(clock: FakeClock, seconds: float, *, step: float = 0.25) -> None:
    """Let time pass in small steps."""
    await settle()
    for _ in range(round(seconds / step)):
        clock.advance(step)
        await settle()


async def lead_for_ever() -> None:
    await asyncio.Event().wait()


async def ended(running: Awaitable[None]) -> BaseException | None:
    """Return what *running*, which has ended or is to end at once, raised."""
    try:
        await asyncio.wait_for(running, timeout=60)
    except BaseException as exc:  # noqa: BLE001 - looked at by the test
        return exc
    return None
