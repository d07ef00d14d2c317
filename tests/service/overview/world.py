"""A sampler of a scheduler in process."""

from typing import Any

from berth.kube.client.writes.lanes import WriteLanes
from berth.service.overview.sampler import Sampler, State
from tests.harness import Harness


def sampler(harness: Harness, **state: Any) -> Sampler:
    """Return one that finds everything well, unless *state* says otherwise."""
    fine = {
        "is_synced": lambda: True,
        "is_leading": lambda: True,
        "leader": lambda: "",
        "stale": lambda: "",
    }
    return Sampler(
        harness.view,
        lanes=WriteLanes(clock=harness.clock),
        live=harness.core.live,
        attempts=harness.metrics.attempts,
        state=State(**{**fine, **state}),
    )
