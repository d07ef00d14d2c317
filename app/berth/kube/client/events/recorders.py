"""One event recorder per profile."""

import asyncio
from collections.abc import Callable

from berth.kube.client.events.recorder import EventRecorder
from berth.runtime.tasks import forever


class Recorders:
    """Event recorders by scheduler name, made when first asked for. Somebody must own :meth:`run`.

    They are kept: a pod of a profile that is no more may still be on its way to a node.
    """

    def __init__(self, make: Callable[[str], EventRecorder]) -> None:
        self._make = make
        self._made: dict[str, EventRecorder] = {}
        self._added = asyncio.Event()

    def __getitem__(self, name: str) -> EventRecorder:
        recorder = self._made.get(name)
        if recorder is None:
            recorder = self._made[name] = self._make(name)
            self._added.set()
        return recorder

    async def run(self) -> None:
        """Run all of them, also those that are made meanwhile; for ever."""
        running: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._added.clear()
                for name in self._made.keys() - running:
                    task = f"events of {name}"
                    tasks.create_task(forever(task, self._made[name].run), name=task)
                    running.add(name)
                await self._added.wait()
