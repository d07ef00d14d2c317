"""The transport that writes once where its owner writes twice."""

import asyncio
from typing import Any

from app.http_server import GatheringTransport


class Recorder(asyncio.Transport):
    """Remembers what reached it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def test_what_is_written_in_one_turn_is_one_write() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder)
    transport.write(b"head")
    transport.write(b"body")
    assert recorder.written == []
    await asyncio.sleep(0)
    transport.write(b"next")
    await asyncio.sleep(0)
    assert recorder.written == [b"headbody", b"next"]


async def test_closing_writes_the_rest_first() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder)
    transport.write(b"last words")
    transport.close()
    await asyncio.sleep(0)
    assert (recorder.written, recorder.closed) == ([b"last words"], True)


async def test_nothing_is_written_to_a_client_that_has_gone() -> None:
    recorder = Recorder()
    transport = GatheringTransport(recorder)
    transport.write(b"too late")
    recorder.close()
    await asyncio.sleep(0)
    assert recorder.written == []
