"""The throughput benchmark on a small cluster: everything is counted; how fast is not asserted."""

import sys
from dataclasses import replace

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench import crowded
from berth.tools.bench.process import BenchError
from berth.tools.bench.throughput import Settings, measure

pytestmark = [pytest.mark.wall, pytest.mark.slow]

SMALL = Settings(nodes=50, pods=40)


@pytest.mark.parametrize("workload", ["plain", "hostname-anti-affinity"])
async def test_every_pod_is_seen_to_be_bound(workload: str) -> None:
    result = await measure(workload, SMALL, clock=RealClock())

    assert (result.pods, result.bound, result.events) == (40, 40, 40)
    assert 0 < result.until_first.cpu < result.until_last.cpu <= result.until_quiet.cpu
    without_start, with_start, *_ = result.figures()
    assert with_start.median > without_start.median > 0
    assert result.peak_memory > 10_000_000


async def test_a_scheduler_that_fails_is_quoted() -> None:
    command = f"{sys.executable} -c 'import sys; sys.exit(sys.argv[1:])' {{kubeconfig}}"

    with pytest.raises(BenchError, match=r"ended with status 1; it said:\n\['/.*/kubeconfig'\]"):
        await measure("plain", replace(SMALL, command=command), clock=RealClock())


async def test_a_scheduler_that_is_not_there_is_named() -> None:
    with pytest.raises(BenchError, match="no-such-scheduler: No such file"):
        await measure("plain", replace(SMALL, command="no-such-scheduler"), clock=RealClock())


@pytest.mark.timeout(300)
async def test_a_crowd_is_bound_or_told() -> None:
    alone, crowd = [result async for result in crowded.measure(SMALL, clock=RealClock())]

    assert (alone.bound, alone.told, alone.events) == (40, 0, 40)
    assert (crowd.bound, crowd.told, crowd.events) == (40, 400, 440)
    assert crowd.since_start > crowd.seconds > 0
