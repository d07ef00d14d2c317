"""Work that is the same for many items, side by side in processes."""

import os
import signal
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Loaded = TypeVar("Loaded")

Progress: TypeAlias = Callable[[float], None]
"""Told how much of an item is done, from 0 to 1."""

STEP: Final = 0.01
"""Of an item; less is not told."""
LOOK_SECONDS: Final = 1.0
"""How often somebody who watches is told how far it is."""


@dataclass(slots=True)
class _State:
    """Of a process that works."""

    loaded: Any
    work: Callable[[Any, Any, Progress], Any]
    done: Any
    """Shared by all processes: how many items are done, whole ones and parts."""


_state: _State | None = None
"""Set once, by :func:`_begin`."""


class Processes(Generic[Item, Result]):
    """Processes for a block; it leaves none of them behind, however it ends.

    Each calls *load* once, then *work* with what that returned, an item and somebody to tell how
    much of it is done. Functions, items and results are sent between processes.
    """

    def __init__(
        self,
        number: int,
        load: Callable[[], Loaded],
        work: Callable[[Loaded, Item, Progress], Result],
    ) -> None:
        # A fork would share the state of libraries that have threads.
        context = get_context("spawn")
        self._done = context.Value("d", 0.0)
        self._pool = ProcessPoolExecutor(
            number, mp_context=context, initializer=_begin, initargs=(load, work, self._done)
        )
        self._others = {child.pid for child in active_children()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=exc is None, cancel_futures=True)
        if exc is not None:
            for child in active_children():
                if child.pid not in self._others:
                    child.terminate()
                    child.join()

    def run(
        self, items: Iterable[Item], *, look: Callable[[float], None] | None = None
    ) -> Generator[tuple[Item, Result], None, None]:
        """Yield what comes of each item, as they end; the first that fails ends all.

        *look* is called every second with how many items are done, whole ones and parts.
        """
        with self._done.get_lock():
            self._done.value = 0.0
        items_of: dict[Future[Result], Item] = {
            self._pool.submit(_work, item): item for item in items
        }
        pending = set(items_of)
        while pending:
            ended, pending = wait(
                pending, timeout=LOOK_SECONDS if look else None, return_when=FIRST_COMPLETED
            )
            for future in ended:
                yield items_of[future], future.result()
            if look is not None:
                look(self._done.value)


def _begin(load: Callable[[], Any], work: Callable[[Any, Any, Progress], Any], done: Any) -> None:
    global _state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends this one
    Thread(target=_end_with_parent, daemon=True).start()
    _state = _State(load(), work, done)


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however it did."""
    parent = parent_process()
    assert parent is not None, "it was spawned"
    connection.wait([parent.sentinel])
    os._exit(1)


def _work(item: Any) -> Any:
    state = _state
    assert state is not None, "the process has begun"
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share - told >= STEP or share == 1.0:
            with state.done.get_lock():
                state.done.value += share - told
            told = share

    result = state.work(state.loaded, item, tell)
    tell(1.0)
    return result
