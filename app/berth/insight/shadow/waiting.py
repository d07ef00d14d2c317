"""The pods that another scheduler has to place, in the order of its queue as far as that shows."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from berth.insight.shadow.claims import has_claims, share_a_volume
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.outcome import Outcome
from berth.scheduler.queue.nominator import Nominator

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"


class Decided(NamedTuple):
    """What was decided here, and on which nodes."""

    outcome: Outcome
    nodes: NodeTable


@dataclass(slots=True)
class WaitingPod:
    """A pod without a node."""

    pod: Pod
    came: int
    """Counts what came to the queue: new pods, and pods that failed."""
    ahead: list[Decided] = field(default_factory=list)
    """What was decided before its claims changed: in the order of the watch, and in that of the
    queue if that is another one."""
    missed: bool = False
    """Whether its claims changed, and nothing was decided before."""

    @property
    def place(self) -> tuple[int, int]:
        """Where the pod is in the queue of the other scheduler, as PrioritySort has it."""
        return -self.pod.priority, self.came


class WaitingPods:
    """Pods without a node of *scheduler_names*, and which of them are nominated to a node."""

    def __init__(self, scheduler_names: Container[str]) -> None:
        self._scheduler_names = scheduler_names
        self._pods: dict[str, WaitingPod] = {}
        """By namespace/name."""
        self._with_claims: dict[str, None] = {}
        """The keys of those with claims, in the order in which they came."""
        self._numbers = count()
        self.nominator = Nominator(self._lookup)

    def _lookup(self, key: str) -> Pod | None:
        waiting = self._pods.get(key)
        return None if waiting is None else waiting.pod

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, pod: Pod) -> WaitingPod | None:
        """Return *pod* as it waits; None if it does not, or is another one of that name."""
        waiting = self._pods.get(pod.key)
        return waiting if waiting and waiting.pod.metadata.uid == pod.metadata.uid else None

    def with_claims(self) -> Iterator[Pod]:
        """Yield the pods that have claims."""
        return (self._pods[key].pod for key in self._with_claims)

    def used_claims(self, bound: Pod) -> None:
        """Forget what was decided for others when claims changed that were meant for *bound*."""
        for key in self._with_claims:
            if share_a_volume(self._pods[key].pod, bound):
                self._pods[key].ahead, self._pods[key].missed = [], False

    def num_ahead(self) -> int:
        """Return how many pods are decided that are not bound yet."""
        return sum(bool(self._pods[key].ahead) for key in self._with_claims)

    def is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names

    def follow(self, old: Pod | None, new: Pod | None) -> None:
        """Take note of a pod that came, changed or went."""
        pod = new or old
        assert pod is not None
        if new is None or new.spec.node_name or new.is_terminated or not self.is_ours(new):
            self._forget(pod)
            return
        waiting = self.get(new)
        if waiting is None:
            self._pods[new.key] = WaitingPod(new, next(self._numbers))
            if has_claims(new):
                self._with_claims[new.key] = None
        else:
            if failure(waiting.pod) != failure(new):
                waiting.came = next(self._numbers)
                waiting.ahead, waiting.missed = [], False
            waiting.pod = new
        self.nominator.add_nominated_pod(PodInfo(new))

    def _forget(self, pod: Pod) -> None:
        if self.get(pod) is not None:
            del self._pods[pod.key]
            self._with_claims.pop(pod.key, None)
            self.nominator.delete_nominated_pod_if_exists(pod.metadata.uid)


def failure(pod: Pod) -> Condition | None:
    """Return the condition that says that *pod* fits nowhere, if it has it."""
    for condition in pod.status.conditions:
        if condition.type == POD_SCHEDULED:
            unschedulable = condition.status == "False" and condition.reason == UNSCHEDULABLE
            return condition if unschedulable else None
    return None
