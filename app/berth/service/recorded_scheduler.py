"""A scheduler as it was at a moment of a recording, with the endpoints of a running one."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import Final

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from berth.insight.recording import lines
from berth.insight.recording.past_cluster import (
    PastCluster,
    Until,
    after_time,
    at_attempt,
    attempts,
    run_at,
)
from berth.insight.recording.runs import RecordedRun
from berth.insight.whatif.live import LiveSnapshots
from berth.kube.client.writes.lanes import WriteLanes
from berth.runtime.clock import Clock, rfc3339_micro
from berth.scheduler.metrics.overview import Sample, Series
from berth.service.applications import SIMULATION_WORKER, configuration_of, devices_of
from berth.service.overview.sampler import Sampler, State
from berth.service.plugin_sources import KnownPlugins
from berth.service.server.application import Application
from berth.service.server.index_page import NO_PAGE
from berth.service.server.scheduler.debug.endpoints import DebugState, debug_endpoints
from berth.service.server.scheduler.explain import explain_endpoints
from berth.service.server.scheduler.overview import Samples, overview_endpoints
from berth.service.server.scheduler.recording import (
    RecordedAttempt,
    RecordingPosition,
    recording_endpoints,
)
from berth.service.server.scheduler.simulate import simulate_endpoints
from berth.service.server.scheduler.simulation_process import SimulationProcesses
from berth.service.server.scheduler.snapshot import snapshot_endpoints

SAMPLE_SECONDS: Final = 1.0
"""Of the recording, between two samples of the overview, as of a running scheduler."""
REPEATED_SECONDS: Final = 2.0
"""Between samples of a stream: the page takes one that is silent for longer to be lost."""
STEPS_PER_TURN: Final = 50
"""Of a replay, between which requests are answered."""


class RecordedScheduler:
    """An ASGI application that shows one moment of recordings after the other.

    A replay only moves on. To go back, the steps are made again from the beginning of the
    recording.
    """

    def __init__(
        self, recorded: Sequence[RecordedRun], plugins: KnownPlugins, *, clock: Clock
    ) -> None:
        """Read which attempts there are, in *recorded*, by time. Raises RecordingError.

        *clock* is what streams go by; a recording has its own.
        """
        self._runs = [*recorded]
        self._plugins = plugins
        self.clock = clock
        self._places: list[tuple[int, int]] = []
        """Of each attempt, the recording and its number there."""
        self._attempts: list[RecordedAttempt] = []
        for index, run in enumerate(self._runs):
            for attempt in attempts(run):
                self._places.append((index, attempt.number))
                self._attempts.append(_told(attempt))
        more = plugins.as_flags
        self._simulate = SimulationProcesses(SIMULATION_WORKER, more=lambda: more).simulate
        self._moving = asyncio.Lock()
        self._shown: _Shown | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._shown is None:
            await self.move()
        assert self._shown is not None
        await self._shown.application(scope, receive, send)

    async def move(self, *, made: int | None = None, time: float | None = None) -> None:
        """Show the moment just before the attempt after so many, or at a *time*, or the end.

        Requests that are answered meanwhile see what was shown before, or a moment between. Raises
        RecordingError, and ConfigError when a recorded plugin is not known.
        """
        async with self._moving:
            run, number, until = len(self._runs) - 1, inf, after_time(inf)
            if time is not None:
                run, until = self._runs.index(run_at(self._runs, time)), after_time(time)
            elif made is not None and made < len(self._places):
                run, number = self._places[made]
                until = at_attempt(number)
            shown = before = self._shown
            if shown is None or shown.run != run or shown.has_passed(number, time):
                shown = _Shown(self, run, PastCluster(self._runs[run], self._plugins.registry))
            await shown.advance(until, time)
            self._shown = shown
            if before is not None and before is not shown:
                before.end_streams()
                await before.past.end()

    def end(self) -> None:
        """End all answers: streams would go on until the server loses its patience with them."""
        if self._shown is not None:
            self._shown.end_streams()

    async def close(self) -> None:
        """Give up what has not ended."""
        if self._shown is not None:
            await self._shown.past.end()

    def position(self) -> RecordingPosition:
        """Say which moment is shown."""
        assert self._shown is not None
        past = self._shown.past
        made = bisect_right(self._places, (self._shown.run, past.attempt))
        return RecordingPosition(
            files=tuple(str(file.path) for run in self._runs for file in run.files),
            begins=rfc3339_micro(self._runs[0].header.t),
            at=rfc3339_micro(past.view.clock.now()),
            made=made,
            attempts=len(self._attempts),
            next=self._attempts[made] if made < len(self._attempts) else None,
        )

    def application_of(self, past: PastCluster, samples: Samples) -> FastAPI:
        """Return the endpoints that show *past*."""
        application = Application(about=NO_PAGE)
        take = LiveSnapshots(past.core).take_in_turns
        state = DebugState(
            view=past.view,
            explainer=past.explainer,
            comparison=None,
            devices=devices_of(past.core),
            configuration=configuration_of(past.core, lambda: self._plugins),
            reflectors={},
            is_ready=lambda: True,
        )
        for router in (
            recording_endpoints(self),
            explain_endpoints(past.explainer),
            debug_endpoints(state),
            overview_endpoints(samples),
            snapshot_endpoints(take, is_synced=lambda: True),
            simulate_endpoints(take, self._simulate, is_synced=lambda: True),
        ):
            application.include_router(router)
        return application


class _Shown:
    """A recorded cluster that is shown, and the samples that its overview has of it."""

    def __init__(self, scheduler: RecordedScheduler, run: int, past: PastCluster) -> None:
        self.run = run
        self.past = past
        core = past.core
        self._sampler = Sampler(
            past.view,
            lanes=WriteLanes(clock=past.view.clock),
            live=core.live,
            attempts=core.outside.metrics.attempts,
            state=State(
                is_synced=lambda: True,
                is_leading=lambda: True,
                leader=lambda: "",
                stale=lambda: "",
            ),
        )
        self._due = -inf
        self.application = scheduler.application_of(past, _Repeated(self._sampler, scheduler.clock))

    def has_passed(self, number: float, time: float | None) -> bool:
        """Whether this is after the attempt of this *number* has begun, or after *time*."""
        return self.past.attempt >= number or (
            time is not None and self.past.view.clock.now() > time
        )

    async def advance(self, until: Until, time: float | None) -> None:
        """Go to the moment before the first step of which *until* is true, and *time* if given."""
        past, steps = self.past, 0
        while past.next_step is not None and not until(past.next_step):
            await past.step()
            steps += 1
            if past.view.clock.now() >= self._due:
                await self._sample()
            if steps % STEPS_PER_TURN == 0:
                await asyncio.sleep(0)
        past.set_clock(time)
        await self._sample()

    async def _sample(self) -> None:
        self._due = self.past.view.clock.now() + SAMPLE_SECONDS
        await self._sampler.measure(0.0)

    def end_streams(self) -> None:
        self._sampler.end()


class _Repeated:
    """The samples of a :class:`Sampler`, the last one again and again if no other comes."""

    def __init__(self, sampler: Sampler, clock: Clock) -> None:
        self._sampler = sampler
        self._clock = clock

    def latest(self) -> Sample:
        return self._sampler.latest()

    def series(self, seconds: int) -> Series:
        return self._sampler.series(seconds)

    async def after(self, number: int) -> Sample | None:
        if number:
            await self._clock.sleep(REPEATED_SECONDS)
        return None if self._sampler.has_ended else self._sampler.latest()


def _told(attempt: lines.Attempt) -> RecordedAttempt:
    first = next(iter(attempt.decisions), None)
    return RecordedAttempt(
        at=rfc3339_micro(attempt.t),
        pod=attempt.pod,
        result="" if first is None else first.result,
        node="" if first is None else first.node,
    )
