"""Test cases, and the names of their workloads."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from berth.tools.bench.scheduler_perf.operations import Operation


@dataclass(frozen=True, slots=True)
class Workload:
    """The size of a test case."""

    params: tuple[int, ...]
    """In the order in which the test case's operations take them."""
    threshold: float | None = None
    """Pods per second; None where scheduler_perf has none."""


@dataclass(frozen=True, slots=True)
class PerfCase:
    """What is done one after the other, and in which sizes."""

    operations: Callable[..., Iterable[Operation]]
    workloads: Mapping[str, Workload]

    @property
    def default(self) -> str:
        """The first workload with a threshold, or the last one."""
        with_threshold = [name for name, workload in self.workloads.items() if workload.threshold]
        return with_threshold[0] if with_threshold else list(self.workloads)[-1]

    def params(self, workload: Workload) -> Mapping[str, int]:
        """Return the parameters of *workload* by name."""
        names = inspect.signature(self.operations).parameters
        return dict(zip(names, workload.params, strict=True))
