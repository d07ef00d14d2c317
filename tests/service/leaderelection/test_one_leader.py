"""Never two at once: replicas on one Lease, with a network and machines that behave badly.

Requests are slow, lost before or after they count, or counted long after their sender gave up; for
some seconds a replica reaches nobody; for some it stands still, and then goes on as if nothing had
happened. Repeatable by seed.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

import pytest

from berth.kube.client.errors import UnavailableError
from berth.runtime.clock import FakeClock
from berth.service.leaderelection.candidate import Timing
from berth.service.leaderelection.elector import LeaderElector, LeadershipLostError
from tests.service.leaderelection.lease_api import (
    DEAD,
    NO_TROUBLE,
    LeaseApi,
    Trouble,
    lead_for_ever,
    make_elector,
    settle,
)

STEP = 0.125


@dataclass(frozen=True)
class Weather:
    """How bad it is: shares of requests that fail, of time cut off, and of time frozen."""

    failures: float = 0.0
    cut_off: float = 0.0
    frozen: float = 0.0


class Machine:
    """The clock and the network of one replica."""

    def __init__(self, api: LeaseApi, clock: FakeClock, rng: random.Random, weather: Weather):
        self._api = api
        self._clock = clock
        self._rng = rng
        self._weather = weather
        self._cut_off_until = self._frozen_until = 0.0

    def change_weather(self) -> None:
        """To be called once a second."""
        length, now = self._rng.uniform(1.0, 25.0), self._clock.now()
        if self._rng.random() * length < self._weather.cut_off:
            self._cut_off_until = now + length
        if self._rng.random() * length < self._weather.frozen:
            self._frozen_until = now + length

    def now(self) -> float:
        return self._clock.now() + 1e6  # the wall clock is wrong, which must not matter

    def monotonic(self) -> float:
        return self._clock.monotonic()

    cpu_time = monotonic

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._thawed()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        assert timeout is not None
        trouble = self._trouble(timeout)
        try:
            return await self._api.exchange(
                method, path, body=body, timeout=timeout, trouble=trouble
            )
        finally:
            await self._thawed()

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nobody watches leases")

    def _trouble(self, timeout: float) -> Trouble:
        if self._clock.now() < self._cut_off_until:
            return DEAD
        if self._rng.random() >= self._weather.failures:
            return NO_TROUBLE
        slow = self._rng.uniform(0.0, 1.5 * timeout)
        match self._rng.randrange(3):
            case 0:
                return Trouble(error=UnavailableError("reset", sent=None))
            case 1:
                return Trouble(until_applied=slow)
            case _:
                return Trouble(until_answered=slow)

    async def _thawed(self) -> None:
        while (left := self._frozen_until - self._clock.now()) > 0:
            await self._clock.sleep(left)


@dataclass
class World:
    """Replicas that are started anew when they end, as a kubelet would."""

    rng: random.Random
    timing: Timing
    weather: Weather
    replicas: int = 3
    clock: FakeClock = field(default_factory=FakeClock)
    terms: int = 0

    def __post_init__(self) -> None:
        self._api = LeaseApi(self.clock)
        self._started = 0
        self._led: LeaderElector | None = None
        self._running: dict[LeaderElector, tuple[asyncio.Task[None], Machine]] = {}

    async def run(self, seconds: int) -> None:
        """Let time pass; raise AssertionError when two may write at once."""
        try:
            for step in range(round(seconds / STEP)):
                self._restart()
                await settle()
                self._look()
                if step % round(1 / STEP) == 0:
                    for _, machine in self._running.values():
                        machine.change_weather()
                self.clock.advance(STEP)
        finally:
            await self._stop()

    def _look(self) -> None:
        leaders = [elector for elector in self._running if elector.is_leader]
        assert len(leaders) <= 1, [leader.identity for leader in leaders]
        if leaders and leaders[0] is not self._led:
            self._led = leaders[0]
            self.terms += 1

    def _restart(self) -> None:
        for elector, (task, _) in list(self._running.items()):
            if task.done():
                assert isinstance(task.exception(), LeadershipLostError), task.exception()
                del self._running[elector]
        while len(self._running) < self.replicas:
            self._started += 1
            machine = Machine(self._api, self.clock, self.rng, self.weather)
            elector = make_elector(
                machine,
                machine,
                identity=f"replica-{self._started}",
                timing=self.timing,
                seed=self.rng.randrange(1 << 30),
            )
            task = asyncio.create_task(elector.run(lead_for_ever), name=elector.identity)
            self._running[elector] = task, machine

    async def _stop(self) -> None:
        for task, _ in self._running.values():
            while not task.done():
                task.cancel()
                self.clock.advance(STEP)
                await asyncio.wait([task], timeout=0)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(
        logging.CRITICAL, "berth.service.leaderelection"
    )  # thousands of lines say it is bad


async def test_in_fair_weather_the_first_leader_stays() -> None:
    world = World(random.Random(0), Timing(), Weather())
    await world.run(60)

    assert world.terms == 1


@pytest.mark.parametrize("seed", range(40))
async def test_never_two_leaders(seed: int) -> None:
    rng = random.Random(seed)
    lease_seconds = rng.randint(3, 10)
    deadline = lease_seconds - rng.choice([0.05, 0.5, 2.0])  # down to hardly any margin
    timing = Timing(
        lease_duration=lease_seconds,
        renew_deadline=deadline,
        retry_period=deadline / rng.uniform(1.3, 5.0),
    )
    weather = Weather(
        failures=rng.choice([0.2, 0.5, 0.8]),
        cut_off=rng.choice([0.0, 0.1, 0.5]),
        frozen=rng.choice([0.0, 0.1, 0.5]),
    )
    await World(rng, timing, weather, replicas=rng.randint(2, 4)).run(60)


async def test_the_weather_is_bad_enough() -> None:
    """Or the test above would show nothing: leaders come and go in it."""
    world = World(random.Random(1), Timing(5.0, 4.0, 1.0), Weather(0.5, 0.3, 0.3))
    await world.run(400)

    assert world.terms > 5
