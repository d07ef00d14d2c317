"""All runs of a Lab, side by side in processes."""

import os
import signal
from collections.abc import Container, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from berth.tools.lab.curves import RunResult
from berth.tools.lab.load import LabFile
from berth.tools.lab.run import Policy, run
from berth.tools.lab.workload import Workload


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a process needs for all runs."""

    file: LabFile
    policies: Sequence[Policy]
    workload: Workload


_loaded: _Loaded | None = None
"""Of a process that does runs; set once, by :func:`_begin`."""


def run_all(
    file: LabFile, *, jobs: int, done: Container[tuple[str, int]] = ()
) -> Generator[RunResult, None, None]:
    """Do all runs, *jobs* at a time, and yield what comes of each as it ends.

    Those *done*, by policy and seed, are left out. The first run that fails ends all: its error is
    raised. However this ends, it leaves no process behind; close it where it is not read to its
    end.
    """
    lab = file.lab
    seeds = range(lab.seeds.first, lab.seeds.first + lab.seeds.count)
    wanted = [
        (policy, seed)
        for seed in seeds
        for policy, named in enumerate(lab.policies)
        if (named.name, seed) not in done
    ]
    if not wanted:
        return
    # A fork would share the state of libraries that have threads.
    with ProcessPoolExecutor(
        min(jobs, len(wanted)),
        mp_context=get_context("spawn"),
        initializer=_begin,
        initargs=(file.path,),
    ) as processes:
        others = {child.pid for child in active_children()}
        try:
            runs: list[Future[RunResult]] = [processes.submit(_run, *run) for run in wanted]
            for ended in as_completed(runs):
                yield ended.result()
        except BaseException:
            processes.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                if child.pid not in others:
                    child.terminate()
                    child.join()
            raise


def _begin(path: Path) -> None:
    global _loaded
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends this one
    Thread(target=_end_with_parent, daemon=True).start()
    file = LabFile(path)
    _loaded = _Loaded(file, file.policies(), file.workload())


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however it did."""
    parent = parent_process()
    assert parent is not None, "it was spawned"
    wait([parent.sentinel])
    os._exit(1)


def _run(policy: int, seed: int) -> RunResult:
    assert _loaded is not None, "the process has begun"
    return run(
        _loaded.policies[policy],
        _loaded.workload,
        _loaded.file.chance(seed),
        seed=seed,
        in_node_order=_loaded.file.lab.ties == "nodeOrder",
    )
