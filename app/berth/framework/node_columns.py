"""The arrays of a table of nodes, which are grown, cleared and gathered together."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.framework.pod_info import PodTemplate
from berth.framework.verdict import Ints, Mask

NO_NODE: Final = np.iinfo(np.int64).max
"""In place of what is left of a resource: so nobody looks for a reason there."""


class NodeColumns(NamedTuple):
    """One array per fact about nodes; the last dimension of each is the slot."""

    exists: Mask
    unschedulable: Mask
    taint_set: NDArray[np.intp]
    allowed_pods: Ints
    pod_count: Ints
    generation: Ints
    allocatable: Ints
    requested: Ints
    non_zero_requested: Ints
    free: Ints
    """What follows from others: first ``allowed_pods - pod_count``, then the resources."""

    @classmethod
    def zeros(cls, slots: int, *, resources: int) -> "NodeColumns":
        """Return columns of *slots* free slots."""
        return cls(
            exists=np.zeros(slots, bool),
            unschedulable=np.zeros(slots, bool),
            taint_set=np.zeros(slots, np.intp),
            allowed_pods=np.zeros(slots, np.int64),
            pod_count=np.zeros(slots, np.int64),
            generation=np.zeros(slots, np.int64),
            allocatable=np.zeros((resources, slots), np.int64),
            requested=np.zeros((resources, slots), np.int64),
            non_zero_requested=np.zeros((2, slots), np.int64),
            free=np.zeros((1 + resources, slots), np.int64),
        )

    @property
    def slots(self) -> int:
        return len(self.exists)

    def grown(self, slots: int, *, resources: int) -> "NodeColumns":
        """Return columns of this size, which is no smaller, that hold what these hold."""
        grown = NodeColumns.zeros(slots, resources=resources)
        for new, old in zip(grown, self, strict=True):
            new[tuple(slice(length) for length in old.shape)] = old
        return grown

    def clear(self, row: int) -> None:
        """Make *row* a free slot."""
        for column in self:
            column[..., row] = 0
        self.free[:4, row] = NO_NODE

    def set_free(self, row: "int | slice | NDArray[np.intp]") -> None:
        """Work out what is left on *row*, or on several."""
        self.free[0, row] = self.allowed_pods[row] - self.pod_count[row]
        self.free[1:, row] = self.allocatable[:, row] - self.requested[:, row]

    def load(self, row: int) -> bytes:
        """Return what the pods on *row* take, to be compared."""
        requested, non_zero = self.requested[:, row], self.non_zero_requested[:, row]
        return b"".join([requested.tobytes(), non_zero.tobytes(), self.pod_count[row].tobytes()])

    def loads(self, rows: int) -> Ints:
        """Return by row, of so many, what :meth:`load` has the bytes of; the last are the pods."""
        parts = self.requested, self.non_zero_requested, self.pod_count[np.newaxis]
        return np.ascontiguousarray(np.concatenate(parts)[:, :rows].T)

    def copy(self) -> "NodeColumns":
        return NodeColumns._make([column.copy() for column in self])

    def take(self, rows: NDArray[np.intp]) -> "NodeColumns":
        """Return copies of *rows*."""
        return NodeColumns._make([column.take(rows, axis=-1) for column in self])

    def add_replicas(
        self, template: PodTemplate, counts: Ints, resources: Mapping[str, int]
    ) -> None:
        """Count so many more pods of *template* in each slot; *resources* tells where each is."""
        native, non_zero = template.columns
        self.requested[:3] += native[:, np.newaxis] * counts
        self.non_zero_requested[:] += non_zero[:, np.newaxis] * counts
        self.pod_count[:] += counts
        for name, amount in template.requested.scalars.items():
            index = resources.get(name, len(self.requested))
            if index < len(self.requested):
                self.requested[index] += amount * counts
        self.set_free(slice(None))
