"""All runs of a Lab, side by side in processes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from berth.lab.curves import RunResult
from berth.lab.load import LabFile
from berth.lab.run import Policy, run
from berth.lab.workload import Workload


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a process needs for all runs."""

    file: LabFile
    policies: Sequence[Policy]
    workload: Workload


_loaded: _Loaded | None = None
"""Of a process that does runs; set once, by :func:`_begin`."""


def run_all(file: LabFile, *, jobs: int) -> Iterator[RunResult]:
    """Do all runs, *jobs* at a time, and yield what comes of each as it ends.

    The first run that fails ends all: its error is raised.
    """
    lab = file.lab
    seeds = range(lab.seeds.first, lab.seeds.first + lab.seeds.count)
    # A fork would share the state of libraries that have threads.
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(file.path,)
    ) as processes:
        runs: list[Future[RunResult]] = [
            processes.submit(_run, policy, seed)
            for seed in seeds
            for policy in range(len(lab.policies))
        ]
        try:
            for done in as_completed(runs):
                yield done.result()
        except BaseException:
            processes.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(path: Path) -> None:
    global _loaded
    file = LabFile(path)
    _loaded = _Loaded(file, file.policies(), file.workload())


def _run(policy: int, seed: int) -> RunResult:
    assert _loaded is not None, "the process has begun"
    return run(
        _loaded.policies[policy],
        _loaded.workload,
        _loaded.file.chance(seed),
        seed=seed,
        in_node_order=_loaded.file.lab.ties == "nodeOrder",
    )
