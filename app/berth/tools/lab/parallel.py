"""All runs of a Lab, side by side in processes."""

from collections.abc import Callable, Container, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from berth.tools.lab.curves import RunResult
from berth.tools.lab.load import LabFile
from berth.tools.lab.processes import Processes, Progress
from berth.tools.lab.run import Policy, run
from berth.tools.lab.workload import Workload


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a process needs for all runs."""

    file: LabFile
    policies: Sequence[Policy]
    workload: Workload


class _Run(NamedTuple):
    policy: int
    seed: int


def run_all(
    file: LabFile,
    *,
    jobs: int,
    done: Container[tuple[str, int]] = (),
    look: Callable[[float], None] | None = None,
) -> Generator[RunResult, None, None]:
    """Do all runs, *jobs* at a time, and yield what comes of each as it ends.

    Those *done*, by policy and seed, are left out. The first run that fails ends all: its error is
    raised. However this ends, it leaves no process behind; close it where it is not read to its
    end. *look* is called every second with how many runs are done, whole ones and parts.
    """
    lab = file.lab
    seeds = range(lab.seeds.first, lab.seeds.first + lab.seeds.count)
    wanted = [
        _Run(policy, seed)
        for seed in seeds
        for policy, named in enumerate(lab.policies)
        if (named.name, seed) not in done
    ]
    if not wanted:
        return
    with Processes(min(jobs, len(wanted)), partial(_load, file.path), _do) as processes:
        for _, result in processes.run(wanted, look=look):
            yield result


def _load(path: Path) -> _Loaded:
    file = LabFile(path)
    return _Loaded(file, file.policies(), file.workload())


def _do(loaded: _Loaded, what: _Run, progress: Progress) -> RunResult:
    return run(
        loaded.policies[what.policy],
        loaded.workload,
        loaded.file.chance(what.seed),
        loaded.file.terms(),
        seed=what.seed,
        progress=progress,
    )
