"""Records what happens, for metrics: requests, extender calls, plugins, health checks, leadership.

:mod:`berth.scheduler.metrics.scheduler_metrics` records attempts.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.clock import Clock
from berth.runtime.metrics import Counters, Histograms, numbers
from berth.scheduler.metrics.families import berth, kube, slis

SAMPLED: Final = 0.1
"""The share of cycles in which each plugin is timed (spec §2.1)."""

NO_ANSWER: Final = "<error>"
"""client-go's status code of a request without an answer."""


class ExtenderMetrics(Collector):
    """Told of every call to an extender. Registers itself with *registry*."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Histograms(berth.EXTENDER_CALLS)
        registry.register(self)

    def called(self, extender: str, verb: str, outcome: str, *, seconds: float) -> None:
        """A call ended, or was not made."""
        self._calls.observe(seconds, extender, verb, outcome)

    def collect(self) -> Iterator[Metric]:
        yield self._calls.collect()


class ExtenderServerMetrics(Collector):
    """Told by the endpoints. Registers itself with *registry*."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histograms(berth.EXTENDER_SERVER_CALLS)
        self._asked = Counters(berth.EXTENDER_SERVER_NODES_ASKED)
        self._passed = Counters(berth.EXTENDER_SERVER_NODES_PASSED)
        self._errors = Counters(berth.EXTENDER_SERVER_ERRORS)
        registry.register(self)

    def called(self, verb: str, profile: str, code: int, *, seconds: float) -> None:
        """A call was answered with HTTP status *code*."""
        self._duration.observe(seconds, verb, profile, str(code))

    def evaluated(self, verb: str, profile: str, *, asked: int, passed: int, failed: bool) -> None:
        """A call was about *asked* nodes, of which *passed* are in the answer."""
        self._asked.add(verb, profile, amount=asked)
        self._passed.add(verb, profile, amount=passed)
        if failed:
            self._errors.add(verb, profile)

    def collect(self) -> Iterator[Metric]:
        for instrument in (self._duration, self._asked, self._passed, self._errors):
            yield instrument.collect()


class HealthMetrics(Collector):
    """Told of each answer of a check; for a registry of its own."""

    def __init__(self) -> None:
        self._healthy: dict[tuple[str, str], float] = {}
        self._answers = Counters(slis.HEALTHCHECKS)

    def answered(self, check: str, probe: str, *, healthy: bool) -> None:
        """*check* was asked as a part of *probe*, like ``readyz``."""
        self._healthy[check, probe] = float(healthy)
        self._answers.add(check, "success" if healthy else "error", probe)

    def reset(self) -> None:
        """Forget all."""
        self._healthy.clear()
        self._answers = Counters(slis.HEALTHCHECKS)

    def collect(self) -> Iterator[Metric]:
        yield numbers(slis.HEALTHCHECK, self._healthy)
        yield self._answers.collect()


class LeaderMetrics(Collector):
    """Told by the elector of one lease. Registers itself with *registry*."""

    def __init__(self, lease: str, registry: CollectorRegistry) -> None:
        self._lease = lease
        self._leads = False
        self._slow_path = Counters(kube.LEADER_SLOW_PATH)
        registry.register(self)

    def on_master(self, leads: bool) -> None:
        """Leadership begins or ends."""
        self._leads = leads

    def on_slow_path(self) -> None:
        """A renewal had to read the Lease first."""
        self._slow_path.add(self._lease)

    def collect(self) -> Iterator[Metric]:
        yield numbers(kube.LEADER, {(self._lease,): float(self._leads)})
        yield self._slow_path.collect()


class PluginMetrics:
    """Told by one profile what its plugins were asked and when they began (spec §8)."""

    def __init__(
        self,
        profile: str,
        points: Histograms,
        plugins: Histograms,
        *,
        seconds: Counters,
        errors: Counters,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._profile = profile
        self._observe_point = points.observe
        self._observe_plugin = plugins.observe
        self._seconds = seconds
        self._errors = errors
        self._rng = rng
        self.now = clock.monotonic

    def is_sampled(self) -> bool:
        """Whether to time each plugin in the cycle, or on the way into the queue, that begins."""
        return self._rng.random() < SAMPLED

    def ran_point(self, point: str, status: str, started: float) -> None:
        """An extension point's plugins have been asked since *started*, to end with *status*."""
        self._observe_point(self.now() - started, point, self._profile, status)

    def ran_points(self, points: Iterable[str], status: str, started: float) -> None:
        """The plugins of several extension points have been asked in one go."""
        seconds = self.now() - started
        for point in points:
            self._observe_point(seconds, point, self._profile, status)

    def ran_plugin(self, point: str, plugin: str, status: str, started: float) -> None:
        """One plugin has been asked since *started*."""
        self._observe_plugin(self.now() - started, point, plugin, status)

    def plugin_took(self, point: str, plugin: str, seconds: float) -> None:
        """A plugin by others was called."""
        self._seconds.add(plugin, point, self._profile, amount=seconds)

    def plugin_failed(self, point: str, plugin: str) -> None:
        """A plugin raised, or its answer made no sense."""
        self._errors.add(plugin, point, self._profile)


class RequestMetrics:
    """The ``rest_client_...`` families. Methods are verbs of HTTP, *host* has the port."""

    def __init__(self) -> None:
        self._requests = Counters(kube.REQUESTS)
        self._duration = Histograms(kube.REQUEST_DURATION)
        self._limiter = Histograms(kube.RATE_LIMITER_DURATION)
        self._sent = Histograms(kube.REQUEST_SIZE)
        self._received = Histograms(kube.RESPONSE_SIZE)
        self._instruments = (
            self._requests, self._duration, self._limiter, self._sent, self._received
        )  # fmt: skip

    def held_back(self, host: str, method: str, *, seconds: float) -> None:
        """A request waited for the client's own rate limit, maybe 0 seconds."""
        self._limiter.observe(seconds, host, method)

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None:
        """A request, whose body had *sent* bytes, was answered with *received* bytes."""
        self._requests.add(str(status), host, method)
        self._duration.observe(seconds, host, method)
        self._sent.observe(sent, host, method)
        self._received.observe(received, host, method)

    def unanswered(self, host: str, method: str, *, seconds: float) -> None:
        """A request ended without an answer."""
        self._requests.add(NO_ANSWER, host, method)
        self._duration.observe(seconds, host, method)

    def watching(self, host: str, status: int) -> None:
        """A watch was begun, or refused; how long it lasts says nothing about the server."""
        self._requests.add(str(status), host, "GET")

    def reset(self) -> None:
        """Forget all."""
        for instrument in self._instruments:
            instrument.reset()

    def collect(self) -> Iterator[Metric]:
        for instrument in self._instruments:
            yield instrument.collect()
