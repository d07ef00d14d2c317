"""One reflector under test, its task ended with the test."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import pytest

from berth.kube.client.contact import Contact
from berth.kube.informer.reflector import DecodePartly, MayWait, Reflector
from berth.runtime.clock import FakeClock
from tests.kube.informer.scripted import Object, Recorder, ScriptedApi

decode = msgspec.json.Decoder(dict).decode


def decode_strictly(raw: bytes) -> Object:
    """Decode an object to dicts; one with a field ``bad`` is malformed."""
    decoded: Object = decode(raw)
    if "bad" in decoded:
        raise ValueError(f"bad: {decoded['bad']}")
    return decoded


@dataclass
class Rig:
    """A running reflector and all it touches."""

    api: ScriptedApi
    reflector: Reflector[Object]
    handler: Recorder
    clock: FakeClock
    contact: Contact
    malformed: list[str] = field(default_factory=list)

    async def settle(self) -> None:
        """Let the reflector run until it waits for time or for its watch."""
        for _ in range(40):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settle()

    def versions(self) -> dict[str, str]:
        return {
            key: obj["metadata"]["resourceVersion"] for key, obj in self.reflector.store.items()
        }


class Start(Protocol):
    """Starts a reflector on *api*."""

    def __call__(
        self,
        api: ScriptedApi,
        *,
        decode_partly: DecodePartly[Object] | None = None,
        may_wait: MayWait | None = None,
    ) -> Rig: ...


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start a reflector on a scripted API."""
    tasks: list[asyncio.Task[None]] = []

    def started(
        api: ScriptedApi,
        *,
        decode_partly: DecodePartly[Object] | None = None,
        may_wait: MayWait | None = None,
    ) -> Rig:
        clock, handler = FakeClock(), Recorder()
        contact = Contact(clock)
        malformed: list[str] = []
        reflector: Reflector[Object] = Reflector(
            api,
            "/things",
            decode=decode_strictly,
            decode_partly=decode_partly,
            handler=handler,
            clock=clock,
            rng=random.Random(1),
            contact=contact,
            on_malformed=lambda key, raw, exc: malformed.append(f"{key}: {exc}"),
            params={"fieldSelector": "f"},
            page_size=2,
            may_wait=may_wait,
        )
        tasks.append(asyncio.create_task(reflector.run(), name="reflector"))
        return Rig(api, reflector, handler, clock, contact, malformed)

    yield started
    for task in tasks:
        assert not task.done(), "a reflector never ends by itself"
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
