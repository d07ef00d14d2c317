"""Runs in which pods come and go, and wait for a node."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.profile.build import Registry
from berth.tools.lab.curves import DECIMALS, Curves
from berth.tools.lab.measures import Measures
from berth.tools.lab.setup import lab_plugins, put_all
from berth.tools.lab.workload import Arrival, Change, Workload, pod_owners

PERCENTILES: Final = (0.5, 0.9, 0.99, 1.0)


class _Due(NamedTuple):
    at: float
    number: int
    what: Arrival | Change | Pod | None
    """A Pod goes; None: it is time to measure."""


async def run_in_time(
    config: KubeSchedulerConfiguration,
    registry: Registry,
    workload: Workload,
    arrivals: Sequence[Arrival],
    *,
    seed: int,
    select: Any,
) -> dict[str, Any]:
    """Return what was measured at even intervals until the last pod came, and what became of all.

    The run ends when all pods that have a node and are to end have ended.
    """
    cluster = SimulatedCluster(config, registry, SimulationOptions(select=select))
    return await _Run(cluster, workload, arrivals, seed=seed).run()


class _Run:
    def __init__(
        self,
        cluster: SimulatedCluster,
        workload: Workload,
        arrivals: Sequence[Arrival],
        *,
        seed: int,
    ) -> None:
        self._cluster, self._workload = cluster, workload
        self._arrivals = {arrival.pod.key: arrival for arrival in arrivals}
        self._came = {
            key: arrival.at
            for key, arrival in self._arrivals.items()
            if not arrival.pod.spec.node_name
        }
        self._pods = len(self._came)
        self._numbers = count()
        self._started = cluster.clock.now()
        self._due: list[_Due] = []
        self._waited: list[float] = []
        self._length = max((arrival.at for arrival in arrivals), default=0.0)
        self._length = max(self._length, workload.length)
        self._there: set[tuple[type, str]] = set()
        """Type and name of what there is beside pods."""
        self._owned: defaultdict[str, list[Any]] = defaultdict(list)
        """What ends with a pod, by its UID."""
        cluster.rng.seed(seed)

    async def run(self) -> dict[str, Any]:
        cluster = self._cluster
        put_all(cluster, self._workload)
        for obj in (*self._workload.objects, *self._workload.nodes):
            self._note(obj)
        for arrival in self._arrivals.values():
            self._push(arrival.at, arrival)
        for change in self._workload.changes:
            self._push(change.at, change)
        for moment in range(
            self._workload.interval, round(self._length) + 1, self._workload.interval
        ):
            self._push(moment)
        measures = Measures(cluster.cache.table, self._workload.pods, lab_plugins(cluster))
        curves = Curves()
        sample: float | None = None
        while True:
            await cluster.run_now()
            self._note_bound()
            if sample is not None:
                curves.add(sample, self._measured(measures))
            moments = [self._due[0].at + self._started] if self._due else []
            if (next_ := cluster.next_moment()) is not None:
                moments.append(next_)
            if not moments:
                break
            await cluster.advance_to(min(moments))
            sample = self._happen()
        return {
            "axis": "seconds",
            "curves": curves.means(),
            "pods": self._pods,
            "preempted": len(cluster.victims),
            "waited": self._percentiles(),
            **self._unplaced(),
        }

    @property
    def _now(self) -> float:
        return self._cluster.clock.now() - self._started

    def _push(self, at: float, what: Arrival | Change | Pod | None = None) -> None:
        heapq.heappush(self._due, _Due(at, next(self._numbers), what))

    def _note_bound(self) -> None:
        """Take note of pods that got a node since this was last called, which is now."""
        for bound in self._cluster.bound:
            key = bound.pod.key
            self._waited.append(self._now - self._came.pop(key))
            lifetime = self._arrivals[key].lifetime
            if lifetime is not None:
                self._push(self._now + lifetime, bound.pod.pod)
        self._cluster.bound.clear()

    def _happen(self) -> float | None:
        """Have happen what is due; return the time if it is time to measure."""
        sample = None
        while self._due and self._due[0].at <= self._now:
            due = heapq.heappop(self._due)
            match due.what:
                case Arrival():
                    self._come(due.what)
                case Change():
                    self._change(due.what)
                case Pod():
                    self._go(due.what)
                case None:
                    sample = due.at
        return sample

    def _come(self, arrival: Arrival) -> None:
        self._cluster.put(arrival.pod)
        if arrival.until is not None:
            self._push(arrival.until, arrival.pod)
        elif arrival.lifetime is not None and arrival.pod.spec.node_name:
            self._push(arrival.at + arrival.lifetime, arrival.pod)

    def _go(self, pod: Pod) -> None:
        """Delete a pod, unless it was preempted, and what it owns."""
        if (bound := self._cluster.pods.get(pod.key)) is not None:
            self._cluster.delete(bound)
        for obj in self._owned.pop(pod.metadata.uid, ()):
            self._delete(obj)

    def _change(self, change: Change) -> None:
        obj = change.obj
        if isinstance(obj, Pod):
            self._change_pod(obj)
        elif change.is_gone:
            if isinstance(obj, Node):  # the garbage collector of pods deletes those
                for pod in [*self._cluster.pods.values()]:
                    if pod.spec.node_name == obj.name:
                        self._go(pod)
            self._delete(obj)
        else:
            self._note(obj)
            self._cluster.put(obj)

    def _change_pod(self, told: Pod) -> None:
        current = self._cluster.pods.get(told.key)
        if current is None:
            return
        claims = told.status.resource_claim_statuses
        status = msgspec.structs.replace(current.status, resource_claim_statuses=claims)
        changed = told.assigned_to(current.spec.node_name)
        self._cluster.put(msgspec.structs.replace(changed, status=status))

    def _note(self, obj: Any) -> None:
        place = type(obj), obj.metadata.key
        if place not in self._there:
            self._there.add(place)
            for uid in pod_owners(obj):
                self._owned[uid].append(obj)

    def _delete(self, obj: Any) -> None:
        place = type(obj), obj.metadata.key
        if place in self._there:
            self._there.remove(place)
            self._cluster.delete(obj)

    def _measured(self, measures: Measures) -> dict[str, float]:
        waiting = sum(self._cluster.core.queue.sub_queues.pending_counts().values())
        counted = {"waiting pods": waiting, "preempted pods": len(self._cluster.victims)}
        return {**measures.now(), **measures.seldom(), **counted}

    def _percentiles(self) -> list[float]:
        waited = sorted(self._waited)
        last = len(waited) - 1
        return [round(waited[round(share * last)], DECIMALS) for share in PERCENTILES if waited]

    def _unplaced(self) -> dict[str, Any]:
        """Return which pods have never had a node, by what the scheduler last said."""
        reasons: Counter[str] = Counter()
        for key in self._came:
            condition = self._cluster.api.conditions.get(key)
            reasons[condition.message if condition else "not tried"] += 1
        return {"unplaced": reasons.total(), "unplaced_by_reason": dict(reasons.most_common())}
