"""Lifetime: pods go where others run for as long, so that nodes become empty together.

After "LAVA: Lifetime-Aware VM Allocation with Learned Distributions and Adaptation to
Mispredictions" (arXiv 2412.09840): how long a pod will run is expected of the durations of past
pods like it, and expected anew as it grows older.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from berth.plugin import (
    MAX_NODE_SCORE,
    CycleState,
    Handle,
    LabPlugin,
    NodeTable,
    PluginArgs,
    PodInfo,
    ScorePlugin,
    Scores,
    everywhere,
)

from ._durations import Durations, of_recordings, template_of

STEP: Final = 10
"""Points that a node loses for each doubling of the minutes by which a pod would keep it longer."""


class LifetimeArgs(PluginArgs):
    """Where durations are known from."""

    recordings: tuple[Path, ...] = ()
    """Files that ``--record`` has written; they are read once, at the start."""
    durations: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    """Seconds that past pods ran, by template, such as ``shop/ReplicaSet/web``; in place of what
    recordings say of the template."""
    repredict_seconds: float = Field(default=60.0, gt=0)
    """How old the expectation for a node may become."""
    repredicts: bool = True
    """Whether pods are expected anew as they grow older; if not, only when they start."""


class Lifetime(ScorePlugin, LabPlugin):
    """Prefers nodes that would not become empty later because of the pod.

    An empty node would be kept for as long as the pod runs. Enable it beside a plugin that packs,
    which decides between nodes that are as good.
    """

    NAME = "Lifetime"
    ARGS = LifetimeArgs

    def __init__(self, args: LifetimeArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args
        self._scheduler = handle
        self._durations = Durations({**of_recordings(args.recordings), **args.durations})
        self._started: dict[str, float] = {}
        """By UID, since when pods have been known here that do not say when they were created."""
        self._exits: NDArray[np.float64] = np.zeros(0)
        """By row, when the last pod is expected to end, in seconds since 1970; -inf: none runs."""
        self._due: NDArray[np.float64] = np.zeros(0)
        """By row, when that is to be expected anew."""
        self._generation = -1

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        remaining = self._durations.remaining(template_of(pod.pod), 0.0)
        if remaining is None:
            return everywhere(0, nodes.size)
        now = self._scheduler.clock.now()
        exits = np.maximum(self._exits_of(nodes, now), now)
        minutes = np.maximum(now + remaining - exits, 0.0) / 60
        steps = np.ceil(np.log2(1 + minutes))
        scores: Scores = np.maximum(MAX_NODE_SCORE - STEP * steps, 0).astype(np.int64)
        return scores

    def _exits_of(self, nodes: NodeTable, now: float) -> NDArray[np.float64]:
        """Return when each node is expected to be empty; only what has changed is read again."""
        if nodes is not self._scheduler.nodes:
            return self._read(nodes, range(nodes.size), now)
        rows: Any = range(nodes.size)
        if len(self._exits) == nodes.size:
            overdue = np.flatnonzero(self._due <= now).tolist() if self._args.repredicts else ()
            rows = sorted({*nodes.rows_changed_since(self._generation), *overdue})
        else:
            self._exits, self._due = np.zeros(nodes.size), np.zeros(nodes.size)
        if rows:
            self._exits[rows] = self._read(nodes, rows, now)
            latest = now + self._args.repredict_seconds
            self._due[rows] = np.where(self._exits[rows] > now, self._exits[rows], np.inf)
            self._due[rows] = np.minimum(self._due[rows], latest)
        self._generation = nodes.last_generation
        return self._exits

    def _read(self, nodes: NodeTable, rows: Any, now: float) -> NDArray[np.float64]:
        exits = (
            max((self._exit_of(pod, now) for pod in nodes.pods[row].values()), default=-np.inf)
            for row in rows
        )
        return np.fromiter(exits, np.float64, len(rows))

    def _exit_of(self, pod: PodInfo, now: float) -> float:
        """Return when *pod* is expected to end; as soon as it likes if nothing is known of it."""
        created = pod.pod.metadata.creation_timestamp
        if created is not None:
            started = datetime.fromisoformat(created).timestamp()
        else:
            started = self._started.setdefault(pod.uid, now)
        age = max(now - started, 0.0) if self._args.repredicts else 0.0
        remaining = self._durations.remaining(template_of(pod.pod), age)
        return now if remaining is None else started + age + remaining

    # The lab's.

    def measure(self) -> Mapping[str, float]:
        """Tell how many nodes run nothing, in percent of all."""
        nodes = self._scheduler.nodes
        empty = np.count_nonzero(nodes.exists & (nodes.pod_count == 0))
        return {"empty nodes": 100 * int(empty) / max(len(nodes), 1)}
