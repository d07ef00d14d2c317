"""Coroutines that never wait, driven without an event loop: writes that no webhook concerns."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end; fail if it waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise AssertionError("the coroutine waits")
