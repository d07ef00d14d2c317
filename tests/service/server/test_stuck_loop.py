"""Who answers while the event loop cannot: real sockets, and a loop that is held up."""

import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from berth.runtime.addresses import LOOPBACK
from berth.scheduler.metrics.collectors import StuckLoopCollector
from berth.service.server.stuck_loop import StuckLoopResponder

pytestmark = pytest.mark.wall


class Stuck:
    stuck_seconds = 7.5
    stalls = 2


@pytest.fixture
def url() -> Iterator[str]:
    """Where a responder answers."""
    responder, ended = StuckLoopResponder(), threading.Event()
    responder.metrics.register(StuckLoopCollector(Stuck()))
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.setblocking(False)  # noqa: FBT003 - as the event loop has it
        responder.listeners.append((listener, None))

        def answer() -> None:
            while not ended.is_set():
                responder.answer(0.05)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        ended.set()
        thread.join()


@pytest.mark.parametrize("probe", ["healthz", "livez", "readyz"])
def test_probes_fail(url: str, probe: str) -> None:
    answer = httpx.get(f"{url}/{probe}?verbose")
    assert answer.status_code == 500
    assert answer.text == f"[-]event-loop failed: reason withheld\n{probe} check failed\n"


def test_the_metric_says_so(url: str) -> None:
    answer = httpx.get(f"{url}/metrics")
    assert answer.status_code == 200
    assert "berth_event_loop_stuck_seconds 7.5\n" in answer.text
    assert "berth_event_loop_stalls_total 2.0\n" in answer.text
    assert "scheduler_" not in answer.text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everything_else_has_to_wait(url: str, method: str) -> None:
    answer = httpx.request(method, f"{url}/debug/queue")
    assert (answer.status_code, answer.text) == (503, "the event loop is stuck: see the log\n")


def test_who_says_nothing_holds_up_nobody(url: str) -> None:
    where = (LOOPBACK, int(url.rpartition(":")[2]))
    silent = [socket.create_connection(where) for _ in range(5)]
    try:
        assert httpx.get(f"{url}/livez").status_code == 500
    finally:
        for each in silent:
            each.close()
