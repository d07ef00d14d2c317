"""ResourceClaims of an API in memory that may fail, conflict and lag behind."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from berth.kube.objects.devices import ResourceClaim
from berth.scheduler.core.in_memory_claims import InMemoryClaims, OnChange
from berth.scheduler.framework.listers import Lister


class Write(NamedTuple):
    verb: str
    name: str


class FakeClaims(InMemoryClaims):
    """What is written is told at once, unless it ``lags``; then :meth:`refresh` tells it."""

    def __init__(self, on_change: OnChange) -> None:
        super().__init__(on_change)
        self.writes: list[Write] = []
        self.conflicts = 0
        """How many of the next writes find that the claim was changed meanwhile."""
        self.error: Exception | None = None
        """Raised by the next writes."""
        self.faults: Iterator[Exception | None] = repeat(None)
        """What each of the next updates of a status ends with, if anything."""
        self.losses: Iterator[bool] = repeat(object=False)
        """Whether the answer to each of them gets lost: it is made and fails nevertheless."""
        self.turns = 0
        """How many turns of the event loop each update of a status takes."""
        self.lags = False

    @classmethod
    def known_to(cls, lister: Lister[ResourceClaim]) -> "FakeClaims":
        """Make claims that *lister* hears of."""

        def changed(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
            if new is not None:
                lister.on_add(new)
            elif old is not None:
                lister.on_delete(old)

        return cls(changed)

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        fault = next(self.faults)
        if fault is not None:
            raise fault
        updated = await super().update_status(body)
        if next(self.losses):
            raise OSError("the answer got lost")
        return updated

    def refresh(self) -> None:
        """Tell what was written while the watch lagged."""
        self.lags = False
        for namespace, name in self._bodies:
            self._on_change(None, self.claim(name, namespace))

    def _before(self, verb: str, name: str) -> None:
        if self.error is not None:
            raise self.error
        self.writes.append(Write(verb, name))

    def _checked(self, verb: str, body: Any) -> dict[str, Any]:
        if self.conflicts:
            self.conflicts -= 1
            meta = body["metadata"]
            self._store(self._bodies[meta["namespace"], meta["name"]])
        return super()._checked(verb, body)

    def _notify(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if not self.lags:
            super()._notify(old, new)
