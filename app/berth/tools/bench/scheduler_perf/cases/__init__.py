"""All test cases; the modules are called like the folders of scheduler_perf."""

from collections.abc import Mapping
from typing import Final

from berth.tools.bench.scheduler_perf.cases import (
    affinity,
    batching,
    dra,
    event_handling,
    misc,
    topology_spreading,
    volumes,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase

CASES: Final[Mapping[str, PerfCase]] = {
    **misc.CASES,
    **affinity.CASES,
    **topology_spreading.CASES,
    **volumes.CASES,
    **event_handling.CASES,
    **batching.CASES,
    **dra.CASES,
}
