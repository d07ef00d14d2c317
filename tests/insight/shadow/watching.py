"""A cluster that one scheduler schedules and a shadow watches."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec
from prometheus_client import CollectorRegistry

from berth.insight.shadow.comparisons import Shadowed
from berth.insight.shadow.shadow import Shadow
from berth.kube.informer.store import ResourceEventHandler
from berth.runtime.clock import FakeClock
from berth.scheduler.binding import Binding
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreOptions, SchedulerCore
from berth.scheduler.framework.listers import ApiObject, Listers
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.profile.build import Registry, args_models
from berth_plugins.registry import IN_TREE
from tests.harness import Harness, configuration_of

Config = dict[str, Any]


class Unwritable:
    """In place of what writes to an API server: calling anything of it fails."""

    def __init__(self, name: str = "api") -> None:
        self.name = name

    def __getattr__(self, name: str) -> "Unwritable":
        return Unwritable(f"{self.name}.{name}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError(f"a shadow calls {self.name}")


@dataclass
class Both:
    """Tells one handler after the other."""

    first: ResourceEventHandler[Any]
    second: ResourceEventHandler[Any]

    def on_add(self, obj: Any) -> None:
        self.first.on_add(obj)
        self.second.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self.first.on_update(old, new)
        self.second.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        self.first.on_delete(obj)
        self.second.on_delete(obj)


def shadow_core(
    config: Config | None = None, registry: Registry = IN_TREE, *, clock: FakeClock | None = None
) -> SchedulerCore:
    """Return a core that schedules nothing, and may not write."""
    models = args_models(registry)
    loaded = configuration_of(config, models)
    api: Any = Unwritable()
    outside = Outside(
        api=api,
        pods={},
        listers=Listers(),
        clock=clock or FakeClock(),
        rng=RandomSources.of(random.Random(3)),
        metrics=SchedulerMetrics(CollectorRegistry()),
    )
    return SchedulerCore(loaded, registry, outside, CoreOptions(schedules=False))


class World:
    """A scheduler, its cluster, and the shadow of it."""

    def __init__(
        self, *, config: Config | None = None, shadow: Config | None = None, seed: int = 1
    ) -> None:
        """The scheduler follows *config*, the shadow *shadow*; both the default by default."""
        self.there = Harness(config=config)
        self.there.cluster.shows_conditions = True
        self.clock = FakeClock()
        self.core = shadow_core(shadow, clock=self.clock)
        self.shadow = Shadow(self.core, clock=self.clock)
        self.rng = random.Random(seed)
        told: Mapping[type, ResourceEventHandler[Any]] = {
            kind.type: handler for kind, handler in self.shadow.handlers().items()
        }
        self.there.cluster.connect(
            {kind: Both(handler, told[kind]) for kind, handler in self.there.handlers.items()}
        )

    def put(self, *objects: ApiObject) -> None:
        self.there.put(*objects)

    async def run(self, *, at_once: int = 1) -> list[Shadowed]:
        """Have all pods scheduled, *at_once* being bound beside each other, in any order.

        Return what the shadow says of them, oldest first.
        """
        running = asyncio.create_task(self.shadow.run())
        await asyncio.sleep(0)
        try:
            while await self._schedule(at_once):
                await until_looked_at(self.shadow)
            await until_looked_at(self.shadow)
        finally:
            running.cancel()
        self.core.cache.check_invariants()
        return self.found()

    async def _schedule(self, at_once: int) -> bool:
        core, scheduler = self.there.core, self.there.scheduler
        bindings: list[Binding] = []
        while len(bindings) < at_once and (decided := await core.schedule_next()) is not None:
            bindings += decided
        while self.there.failure_reporter.report_next():
            pass  # before victims are evicted, which takes them longer
        self.rng.shuffle(bindings)
        for binding in bindings:
            await scheduler.binding_cycle.run(binding)
            self._start(binding.pod.key)
        return bool(bindings) or await core.step()

    def _start(self, key: str) -> None:
        """Change a pod as its kubelet does."""
        bound = self.there.cluster.pods[key]
        status = msgspec.structs.replace(bound.status, phase="Running")
        self.put(msgspec.structs.replace(bound, status=status))

    def found(self) -> list[Shadowed]:
        return list(self.shadow.comparisons.newest_first())[::-1]


class Told:
    """A shadow that is told of changes one by one, and no scheduler."""

    def __init__(self, *objects: ApiObject, config: Config | None = None) -> None:
        core = shadow_core(config)
        self.is_relisting = False
        self.shadow = Shadow(core, clock=core.outside.clock, is_relisting=lambda: self.is_relisting)
        self._handlers: Mapping[type, ResourceEventHandler[Any]] = {
            kind.type: handler for kind, handler in self.shadow.handlers().items()
        }
        for obj in objects:
            self.come(obj)

    def come(self, obj: ApiObject) -> None:
        self._handlers[type(obj)].on_add(obj)

    def change(self, old: ApiObject, new: ApiObject) -> None:
        self._handlers[type(new)].on_update(old, new)

    def go(self, obj: ApiObject) -> None:
        self._handlers[type(obj)].on_delete(obj)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have it compare in the block, which begins when the whole state is known."""
        task = asyncio.create_task(self.shadow.run())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()

    async def until_looked_at(self) -> None:
        await until_looked_at(self.shadow)

    def found(self) -> list[Shadowed]:
        """Return the comparisons, oldest first."""
        return list(self.shadow.comparisons.newest_first())[::-1]


async def until_looked_at(shadow: Shadow) -> None:
    """Let *shadow* look at all that it was told; time passes as it has to."""
    clock = shadow.clock
    assert isinstance(clock, FakeClock)
    while shadow.num_behind:
        await asyncio.sleep(0)
        wakeup = clock.next_wakeup()
        if wakeup is not None:
            clock.advance_to(wakeup)
    clock.advance(1)
