"""How often groups find a place by greed, and by looking back: the table of docs/groups.md.

Run it as ``python -m tests.scheduler.pod_group.look_back_rates``.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from berth.runtime.terminal import say
from tests.scheduler.pod_group.topologies import LOOK_BACK, Topology, placed, planted, small

MANY = 200


async def measure(name: str, make: Callable[[Random], Topology], number: int) -> str:
    """Return a row about *number* topologies, of which only those with a place count."""
    found = {"greed": 0, "back": 0}
    seconds: dict[str, list[float]] = {"greed": [], "back": []}
    with_place = seed = 0
    while with_place < number:
        seed += 1
        topology = make(Random(seed))
        if len(topology.pods) <= 8 and not topology.has_place():
            continue
        with_place += 1
        for way, gates in (("greed", ()), ("back", (LOOK_BACK,))):
            began = time.process_time()
            found[way] += bool(await placed(topology, *gates))
            seconds[way].append(time.process_time() - began)
    missed = number - found["greed"]
    recovered = found["back"] - found["greed"]
    times = " | ".join(f"{statistics.median(took) * 1e3:.0f} ms" for took in seconds.values())
    longest = max(seconds["back"]) * 1e3
    return f"| {name} | {found['greed']} | {recovered} of {missed} | {times} | {longest:.0f} ms |"


SIZES: Final = ((4, 4, 12, 20), (10, 8, 32, 20), (10, 16, 128, 10))
"""Racks, nodes of each, pods, and how many groups are measured."""


async def main() -> None:
    say(await measure(f"{MANY} small", small, MANY))
    for racks, nodes, pods, few in SIZES:
        for slack in (0.0, 0.1, 0.25):
            make = partial(planted, racks=racks, nodes=nodes, pods=pods, slack=slack)
            name = f"{few}: {racks} racks of {nodes} nodes, {pods} pods, {slack:.0%} more room"
            say(await measure(name, make, few))


if __name__ == "__main__":
    asyncio.run(main())
