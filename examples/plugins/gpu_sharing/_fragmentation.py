"""How much of the idle GPUs is of no use to pods as they usually come.

After "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (USENIX ATC 2023), as its simulator computes it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.plugin import Ints, NodeTable

MODEL_LABEL: Final = "example.com/gpu-model"
SHARE: Final = 0.95
"""Of all pods of a workload; the kinds of pods that make up so many are typical."""

Floats = NDArray[np.float64]


class PodKind(NamedTuple):
    """What pods that count as alike request; memory plays no part."""

    cpu: int
    milli: int
    gpus: int
    models: tuple[str, ...]


class Fragmentation:
    """Measures nodes by typical pods, which come with a probability each."""

    def __init__(self, typical: Sequence[tuple[PodKind, float]]) -> None:
        self.typical = typical
        kinds = [kind for kind, _ in typical]
        self._probability = np.array([probability for _, probability in typical])
        self._cpu = np.array([kind.cpu for kind in kinds])
        # Pods without GPUs have no use for any: they want more than there can be.
        self._gpus = np.array([kind.gpus or np.iinfo(np.int64).max for kind in kinds])
        self._milli, self._milli_of = np.unique([kind.milli for kind in kinds], return_inverse=True)
        self._generation = -1
        self._of_row: Floats = np.zeros(0)

    @classmethod
    def of(cls, pods: Iterable[PodKind]) -> "Fragmentation":
        """Take the most frequent kinds of *pods* as typical."""
        counts = Counter(pods)
        total = counts.total()
        taken: dict[PodKind, int] = {}
        for kind in sorted(
            counts, key=lambda k: (counts[k], *k[:3], "|".join(k.models)), reverse=True
        ):
            if sum(taken.values()) >= SHARE * total:
                break
            taken[kind] = counts[kind]
        return cls([(kind, count / sum(taken.values())) for kind, count in taken.items()])

    def may_use(self, nodes: NodeTable) -> Any:
        """Return which nodes have a model that each typical pod takes; shape (rows, typical)."""
        return nodes.kept((Fragmentation, self), lambda: self._may_use(nodes))

    def _may_use(self, nodes: NodeTable) -> NDArray[np.bool_]:
        models = [node.labels.get(MODEL_LABEL, "") if node else "" for node in nodes.nodes]
        may = [[not k.models or model in k.models for k, _ in self.typical] for model in models]
        return np.array(may, bool).reshape(len(models), len(self.typical))

    def measure(self, may_use: NDArray[np.bool_], cpu_left: Ints, left: Ints) -> Floats:
        """Return the fragmented thousandths of each node; *left* has the shape (nodes, GPUs)."""
        enough = left[:, :, np.newaxis] >= self._milli
        num_enough = np.count_nonzero(enough, axis=1)[:, self._milli_of]
        usable = np.einsum("ng,ngm->nm", left, enough)[:, self._milli_of]
        fits = may_use & (cpu_left[:, np.newaxis] >= self._cpu) & (num_enough >= self._gpus)
        fragmented = left.sum(axis=1)[:, np.newaxis] - np.where(fits, usable, 0)
        measured: Floats = (fragmented * self._probability).sum(axis=1)
        return measured

    def total(self, nodes: NodeTable, cpu_left: Ints, left: Ints) -> float:
        """Return the sum over all nodes, of which only those that changed are measured again."""
        changed: Any = nodes.rows_changed_since(self._generation)
        if len(self._of_row) != nodes.size:
            self._of_row, changed = np.zeros(nodes.size), slice(None)
        self._of_row[changed] = self.measure(
            self.may_use(nodes)[changed], cpu_left[changed], left[changed]
        )
        self._generation = nodes.last_generation
        return float(self._of_row.sum())
