"""The families of ``/metrics/slis`` (spec §8), which has a registry of its own."""

from typing import Final

from berth.runtime.metrics import Stability, counter, gauge

STABLE = Stability.STABLE

HEALTHCHECK: Final = gauge(
    name="kubernetes_healthcheck",
    stability=STABLE,
    text="This metric records the result of a single healthcheck.",
    labels=("name", "type"),
)
HEALTHCHECKS: Final = counter(
    name="kubernetes_healthchecks_total",
    stability=STABLE,
    text="This metric records the results of all healthcheck.",
    labels=("name", "status", "type"),
)
