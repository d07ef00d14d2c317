"""The watchdog: when it tells, and what."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace

import pytest

from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.service import watchdog as watchdog_module
from berth.service.watchdog import INTERRUPTED, PATIENCE, Watchdog, traceback_of, whereabouts
from tests.builders import pod

ERRORS = "event loop is stuck"


class Loops(Plugin):
    NAME = "Loops"

    def ask(self, pod: PodInfo, busy: threading.Event, end: threading.Event) -> None:
        busy.set()
        end.wait()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def look(watchdog: Watchdog, times: int) -> None:
    for _ in range(times):
        watchdog.look()


def test_a_loop_that_turns_is_not_stuck(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog()
    for _ in range(3 * PATIENCE):
        watchdog.beat()
        look(watchdog, PATIENCE)
        assert watchdog.stuck_seconds == 0
    assert (watchdog.stalls, told(caplog)) == (0, [])


def test_a_stuck_loop_is_told_of_again_and_again_but_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watchdog = Watchdog()
    watchdog.beat()
    look(watchdog, 1 + PATIENCE)
    assert (watchdog.stuck_seconds, watchdog.stalls, told(caplog)) == (5.0, 1, [ERRORS])
    look(watchdog, PATIENCE - 1)
    assert told(caplog) == [ERRORS]
    look(watchdog, 1 + 6 * PATIENCE)
    assert (watchdog.stalls, told(caplog)) == (1, 4 * [ERRORS])


def test_what_holds_the_loop_is_interrupted() -> None:
    interrupted: list[None] = []
    watchdog = Watchdog(interrupt=lambda: interrupted.append(None))
    look(watchdog, INTERRUPTED - 1)
    assert interrupted == []
    look(watchdog, 1)
    assert len(interrupted) == 1
    look(watchdog, INTERRUPTED)
    assert len(interrupted) == 2
    watchdog.beat()
    look(watchdog, INTERRUPTED)
    assert len(interrupted) == 2


def test_a_loop_that_turns_again_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog()
    look(watchdog, PATIENCE)
    watchdog.beat()
    watchdog.look()
    assert watchdog.stuck_seconds == 0
    assert told(caplog) == [ERRORS, "event loop turns again"]
    look(watchdog, PATIENCE)
    assert watchdog.stalls == 2


@contextmanager
def busy_frame() -> Iterator[FrameType]:
    """Yield the innermost frame of a thread that is busy in a plugin's hands."""
    busy, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=Loops().ask, args=(PodInfo(pod("p")), busy, end))
    thread.start()
    busy.wait()
    try:
        yield sys._current_frames()[thread.ident or 0]
    finally:
        end.set()
        thread.join()


def test_it_is_known_what_the_loop_is_busy_with() -> None:
    with busy_frame() as frame:
        assert whereabouts(frame) == {"plugin": "Loops", "pod": "default/p"}


def test_the_log_has_the_stack(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog()  # of this thread
    look(watchdog, PATIENCE)
    [record] = caplog.records
    text = logging.Formatter().format(record)
    assert "in test_the_log_has_the_stack\n    look(watchdog, PATIENCE)" in text
    assert text.endswith("StuckLoopError: no turn for 5 s")


def test_a_stack_is_told_from_the_outermost_call_to_the_innermost() -> None:
    with busy_frame() as frame:
        trace, names = traceback_of(frame), []
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
    assert names.index("ask") < names.index("wait")


def test_what_fails_in_the_thread_does_not_end_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth.service.watchdog.INTERVAL", 0.0)
    pauses = 0

    def pause(_seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 5:
            watchdog._ended.set()
        raise OSError("no such socket")

    watchdog = Watchdog(pause=pause)
    watchdog._watch()

    assert pauses == watchdog.failures == 5
    assert told(caplog) == [ERRORS, *3 * ["watchdog failed, goes on"]]  # the 1st, 2nd and 4th


def test_a_stuck_loop_is_told_of_even_if_it_is_not_known_where(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that is looked at goes on, and changes what is looked at."""

    def changed(_frame: FrameType) -> dict[str, str]:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr("berth.service.watchdog.whereabouts", changed)
    watchdog = Watchdog()
    look(watchdog, PATIENCE)

    [record] = caplog.records
    assert record.getMessage() == ERRORS
    assert "dictionary changed" in record.whereabouts  # type: ignore[attr-defined]


def test_locals_that_change_while_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, object] = {"pod": PodInfo(pod("p")), "plugin": Loops()}
    frame = SimpleNamespace(f_locals=values, f_back=None)

    def named(value: object) -> Iterator[tuple[str, str]]:
        values[f"more-{len(values)}"] = value
        return named_before(value)

    named_before = watchdog_module._named
    monkeypatch.setattr(watchdog_module, "_named", named)
    assert whereabouts(frame) == {"plugin": "Loops", "pod": "default/p"}  # type: ignore[arg-type]
