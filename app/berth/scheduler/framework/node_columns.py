"""The arrays of a table of nodes, which are grown, cleared and gathered together."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.quantity import MAX_INT64
from berth.scheduler.framework.pod_info import PodTemplate
from berth.scheduler.framework.verdict import Ints, Mask

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

    def count_pod(self, row: int, template: PodTemplate, sign: int) -> None:
        """Count a pod on *row* if *sign* is 1, discount it if -1; without its scalar resources."""
        native, non_zero = template.columns
        if sign > 0:
            self.requested[:3, row] += native
            self.non_zero_requested[:, row] += non_zero
            self.free[1:4, row] -= native
        else:
            self.requested[:3, row] -= native
            self.non_zero_requested[:, row] -= non_zero
            self.free[1:4, row] += native
        self.pod_count[row] += sign
        self.free[0, row] -= sign

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
        for column, amount in zip(self.requested, native.tolist(), strict=False):
            _add_products(column, amount, counts)
        for column, amount in zip(self.non_zero_requested, non_zero.tolist(), strict=True):
            _add_products(column, amount, counts)
        self.pod_count[:] += counts
        for name, amount in template.requested.scalars.items():
            index = resources.get(name, len(self.requested))
            if index < len(self.requested):
                _add_products(self.requested[index], amount, counts)
        self.set_free(slice(None))


def _add_products(column: Ints, amount: int, counts: Ints) -> None:
    """Add to *column* so many times *amount*; what int64 does not hold is the most that it does."""
    most = int(column.max(initial=0)) + amount * int(counts.max(initial=0))
    if most <= MAX_INT64:
        column += amount * counts
        return
    fits = counts <= (MAX_INT64 - column) // amount
    column[:] = np.where(fits, column + amount * np.where(fits, counts, 0), MAX_INT64)
