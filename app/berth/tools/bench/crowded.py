"""``berth bench throughput --workload crowded``: are pods held up by others that fit nowhere?

With ``--workload crowded-different`` no two of the others are equal.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from berth.runtime.clock import Clock
from berth.tools.bench import throughput
from berth.tools.bench.names import CROWDED, CROWDED_DIFFERENT
from berth.tools.bench.throughput import Result, Settings

HOPELESS_PER_POD = 10
"""So many pods that fit nowhere come with each one that does."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Result]:
    """Measure plain pods alone, then the same ones in a crowd; errors as in throughput.

    *settings* say whether the others differ.
    """
    yield replace(await throughput.measure("plain", settings, clock=clock), workload="alone")
    crowd = replace(settings, hopeless=HOPELESS_PER_POD * settings.pods)
    name = CROWDED_DIFFERENT if settings.hopeless_differ else CROWDED
    yield replace(await throughput.measure("plain", crowd, clock=clock), workload=name)
