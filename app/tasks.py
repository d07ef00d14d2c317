"""Every task has a name and an owner."""

import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def forever(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run *run*, which must only ever end by cancellation.

    Any other ending is a bug: it is raised to the owning TaskGroup, which stops the process.
    Takes a function, not a coroutine: a coroutine cancelled before its first step would warn.
    """
    try:
        await run()
    except Exception:
        log.exception("task failed", extra={"task": name})
        raise
    raise RuntimeError(f"task {name!r} returned")
