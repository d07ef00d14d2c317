"""Several things to wait for, of which the first that fails decides."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from berth.scheduler.framework.status import Status

Run = Callable[[], Awaitable[Status | None]]


async def first_failure(runs: Sequence[Run]) -> Status | None:
    """Run all at the same time; the first that fails, or raises, cancels the others.

    Returns once all have ended.
    """
    if len(runs) == 1:
        return await runs[0]()
    tasks = [asyncio.ensure_future(run()) for run in runs]
    try:
        for finished in asyncio.as_completed(tasks):
            status = await finished
            if status is not None:
                return status
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
