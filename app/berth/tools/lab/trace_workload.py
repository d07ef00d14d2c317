"""The pods of a trace in random order, as in published experiments."""

from collections.abc import Iterator, Sequence
from typing import Any

from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import requested
from berth.tools.lab.chance import Chance
from berth.tools.lab.trace import MILLI_PER_GPU, Trace, called
from berth.tools.lab.workload import Arrival, Change


class TraceWorkload:
    """All pods of a trace, and then some of them again, up to a share of the capacity."""

    is_timed = False
    interval = 0
    length = 0.0
    changes: Sequence[Change] = ()
    warnings: Sequence[str] = ()
    objects: Sequence[Any] = ()

    def __init__(self, trace: Trace, *, tune: float | None, shuffle: bool) -> None:
        """With *tune*, pods are added, or left out, until they request so much of all GPUs."""
        self.nodes, self.pods, self.resource = trace.nodes, trace.pods, trace.resource
        self._tune, self._shuffle = tune, shuffle
        self._demand = {pod.metadata.name: self._gpus_of(pod) for pod in self.pods}
        self._capacity = sum(
            int(node.status.allocatable.get(self.resource, "0")) for node in self.nodes
        )

    def arrivals(self, chance: Chance) -> Sequence[Arrival]:
        pods = list(self.pods)
        if self._shuffle:
            chance.shuffle(pods)
        if self._tune is not None:
            wanted = self._tune * self._capacity
            demand = sum(self._demand.values())
            if demand < wanted:
                pods += self._added(demand, wanted, chance)
            while demand > wanted:
                demand -= self._demand[pods.pop(chance.below(len(pods))).metadata.name]
        return [Arrival(pod) for pod in pods]

    def _added(self, demand: int, wanted: float, chance: Chance) -> Iterator[Pod]:
        """Yield pods drawn with replacement; one that would ask for too much is the end.

        As in the published simulator, what is too much goes by the request for each GPU.
        """
        number = 0
        while True:
            pod = self.pods[chance.below(len(self.pods))]
            total = self._demand[pod.metadata.name]
            if demand + min(total, MILLI_PER_GPU) > wanted:
                return
            demand += total
            number += 1
            yield called(pod, f"{pod.metadata.name}-again-{number}")

    def _gpus_of(self, pod: Pod) -> int:
        return requested(pod).scalars.get(self.resource, 0)
