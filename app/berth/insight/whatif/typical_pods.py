"""Typical pods, and how much of what nodes have free is of no use to them: fragmentation."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.pod_info import PodInfo

TYPICAL: Final = 0.95
"""Of all pods; the templates that make up so many are typical."""

Amounts: TypeAlias = Mapping[str, tuple[NDArray[np.int64], NDArray[np.int64]]]
"""What is allocatable and what is requested by row, by resource."""


class TypicalPods:
    """What pods request, and how often, but for the rarest kinds.

    As in "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent" (USENIX ATC 2023), section 3, with the resources of the node instead of GPUs.
    """

    def __init__(self, pods: Iterable[PodInfo]) -> None:
        counts: Counter[tuple[tuple[str, int], ...]] = Counter()
        for pod in pods:
            amounts = pod.template.requested
            requests = {"cpu": amounts.milli_cpu, "memory": amounts.memory, **amounts.scalars}
            counts[tuple(sorted(request for request in requests.items() if request[1]))] += 1
        taken: dict[tuple[tuple[str, int], ...], int] = {}
        for kind, count in counts.most_common():
            if sum(taken.values()) >= TYPICAL * counts.total():
                break
            taken[kind] = count
        self.kinds = [(count / sum(taken.values()), dict(kind)) for kind, count in taken.items()]
        """Probabilities, and what a pod of the kind requests."""

    def unfit(self, amounts: Amounts, rows: int) -> NDArray[np.float64]:
        """Return for each of so many *rows* how likely it is that a typical pod does not fit."""
        unfit = np.zeros(rows)
        for probability, requests in self.kinds:
            fits = np.ones(rows, bool)
            for name, amount in requests.items():
                if name in amounts:
                    allocatable, requested = amounts[name]
                    fits &= allocatable - requested >= amount
                else:
                    fits[:] = False
            unfit += probability * ~fits
        return unfit


def fragmented(amounts: Amounts, unfit: NDArray[np.float64]) -> dict[str, float]:
    """Return by resource how much of it is free on nodes where a typical pod does not fit.

    *unfit* is what :meth:`TypicalPods.unfit` returned for the same rows. Resources of which there
    is nothing are left out.
    """
    return {
        name: float((np.maximum(allocatable - requested, 0) * unfit).sum())
        for name, (allocatable, requested) in amounts.items()
        if allocatable.any()
    }
