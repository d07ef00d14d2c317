"""Counts of kube-scheduler's API dispatcher, made of our own writes (spec G12).

Writes always leave through lanes here; the feature gate SchedulerAsyncAPICalls decides only whether
somebody counts them.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from berth.kube.client.writes.lanes import Write
from berth.runtime.clock import Clock

POD_BINDING: Final = "pod_binding"
POD_STATUS_PATCH: Final = "pod_status_patch"

T = TypeVar("T")


class AsyncCalls(Protocol):
    """Hears of calls of a type: :data:`POD_BINDING` or :data:`POD_STATUS_PATCH`."""

    def waits(self, call_type: str, change: int) -> None:
        """One call more waits for its turn (1), or one less (-1)."""
        ...

    def executed(self, call_type: str, *, failed: bool, seconds: float) -> None:
        """A call was made. Those that would have changed nothing are not."""
        ...


async def counted(
    calls: AsyncCalls,
    call_type: str,
    write: Write[T],
    submit: Callable[[Write[T]], Awaitable[T]],
    *,
    clock: Clock,
) -> T:
    """Have *write* made by *submit*, and tell *calls* of it."""
    waits = True

    def ends_waiting() -> None:
        nonlocal waits
        if waits:
            waits = False
            calls.waits(call_type, -1)

    async def timed() -> T:
        ends_waiting()
        return await executed(calls, call_type, write, clock=clock)

    calls.waits(call_type, 1)
    try:
        return await submit(timed)
    finally:
        ends_waiting()  # if it was never made


async def executed(calls: AsyncCalls, call_type: str, write: Write[T], *, clock: Clock) -> T:
    """Make *write*, and tell *calls* what came of it: nothing if it says that it made no call."""
    started, failed, was_made = clock.monotonic(), True, True
    try:
        answer = await write()
        failed, was_made = False, answer is not False
        return answer
    finally:
        if was_made:
            calls.executed(call_type, failed=failed, seconds=clock.monotonic() - started)
