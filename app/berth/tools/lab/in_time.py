"""Runs in which pods come and go, and wait for a node."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain, count
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.profile.build import Registry
from berth.tools.lab.curves import DECIMALS, Curve, Curves
from berth.tools.lab.measures import PREEMPTED, WAITING, Measures
from berth.tools.lab.meters import Meters
from berth.tools.lab.setup import lab_plugins, put_all
from berth.tools.lab.trace import called
from berth.tools.lab.workload import Arrival, Change, Workload, pod_owners

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
AGAIN: Final = "-again-"
"""In the names of pods that came in place of others that were evicted."""
MOST_CLASSES: Final = 20
"""Of pods, whose waiting is told apart; the largest ones."""


@dataclass(slots=True, eq=False)
class _Job:
    """Pods that begin to run when all of them have nodes: one pod, or a gang."""

    came: float
    lifetime: float | None
    size: int
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    """Its pods that have come, by ``namespace/name``; later ones in place of those evicted."""
    with_node: int = 0
    epoch: int = 0
    """Counts when it began to run, and when it stopped because a pod was evicted."""


class _End(NamedTuple):
    """A job has run for its time, if it is still in this epoch."""

    job: _Job
    epoch: int


class _Order(IntEnum):
    """What happens first of what is due at the same time."""

    ARRIVAL = 0
    CHANGE = 1
    MEASUREMENT = 2
    END = 3


class _Due(NamedTuple):
    at: float
    order: _Order
    number: int
    what: Arrival | Change | Pod | _End | None
    """A Pod is deleted; None: it is time to measure."""


async def run_in_time(
    config: KubeSchedulerConfiguration,
    registry: Registry,
    workload: Workload,
    arrivals: Iterable[Arrival],
    *,
    seed: int,
    select: Any,
    meters: Meters,
    waiting_by: str,
    progress: Callable[[float], None],
) -> dict[str, Any]:
    """Return what was measured at even intervals until the last pod came, and what became of all.

    The run ends when all pods that have a node and are to end have ended.
    """
    cluster = SimulatedCluster(config, registry, SimulationOptions(select=select))
    cluster.rng.seed(seed)
    length = workload.length
    if not length:
        arrivals = list(arrivals)
        length = max((arrival.at for arrival in arrivals), default=0.0)
    return await _Run(cluster, workload, arrivals, length, meters, waiting_by, progress).run()


class _Run:
    def __init__(
        self,
        cluster: SimulatedCluster,
        workload: Workload,
        arrivals: Iterable[Arrival],
        length: float,
        meters: Meters,
        waiting_by: str,
        progress: Callable[[float], None],
    ) -> None:
        self._cluster, self._workload = cluster, workload
        self._arrivals, self._length = iter(arrivals), length
        self._meters, self._waiting_by, self._progress = meters, waiting_by, progress
        self._numbers = count()
        self._started = cluster.clock.now()
        self._due: list[_Due] = []
        self._waiting: dict[str, tuple[float, str]] = {}
        """When those came that have not had a node yet, and their class."""
        self._waited: defaultdict[str, list[float]] = defaultdict(list)
        """Seconds until pods had a node, by class."""
        self._jobs: dict[str, _Job] = {}
        """Those that are there, by pod."""
        self._gangs: dict[str, _Job] = {}
        """Those of them that are gangs, by their group's UID."""
        self._pods = self._preempted = self._ending = 0
        self._completed: list[float] = []
        """Seconds from when jobs came until they ended; others of :attr:`_ending` did not."""
        self._makespan = 0.0
        self._used: defaultdict[str, float] = defaultdict(float)
        """What meters showed, times seconds."""
        self._there: set[tuple[type, str]] = set()
        """Type and name of what there is beside pods."""
        self._owned: defaultdict[str, list[Any]] = defaultdict(list)
        """What ends with a pod, by its UID."""

    async def run(self) -> dict[str, Any]:
        cluster, interval = self._cluster, self._workload.interval
        put_all(cluster, self._workload)
        for obj in (*self._workload.objects, *self._workload.nodes):
            self._note(obj)
        self._push_arrival()
        for change in self._workload.changes:
            self._push(change.at, _Order.CHANGE, change)
        for moment in range(interval, round(self._length) + 1, interval):
            self._push(moment, _Order.MEASUREMENT)
        nodes = cluster.cache.table
        measures = Measures(nodes, self._workload.pods, lab_plugins(cluster), self._meters)
        curves = Curves()
        sample: float | None = None
        while True:
            await cluster.run_now()
            self._note_bound()
            if self._note_victims():
                continue
            if sample is not None:
                curves.add(sample, self._measured(measures))
            moments = [self._due[0].at + self._started] if self._due else []
            if (next_ := cluster.next_moment()) is not None:
                moments.append(next_)
            if not moments:
                break
            seconds = max(min(moments) - cluster.clock.now(), 0.0)
            for name, rate in self._meters.rates(nodes).items():
                self._used[name] += rate * seconds
            await cluster.advance_to(min(moments))
            sample = self._happen()
            self._progress(min(self._now / self._length, 1.0) if self._length else 1.0)
        means = curves.means()
        return {
            "axis": "seconds",
            "curves": means,
            "pods": self._pods,
            "preempted": self._preempted,
            "waited": list(_percentiles([*chain(*self._waited.values())]).values()),
            "totals": self._totals(means),
            **self._unplaced(),
        }

    @property
    def _now(self) -> float:
        return self._cluster.clock.now() - self._started

    def _push(
        self, at: float, order: _Order, what: Arrival | Change | Pod | _End | None = None
    ) -> None:
        heapq.heappush(self._due, _Due(at, order, next(self._numbers), what))

    def _push_arrival(self) -> None:
        if (arrival := next(self._arrivals, None)) is not None:
            self._push(arrival.at, _Order.ARRIVAL, arrival)

    def _note_bound(self) -> None:
        """Take note of pods that got a node since this was last called, which is now."""
        for bound in self._cluster.bound:
            key = bound.pod.key
            came, class_ = self._waiting.pop(key)
            self._waited[class_].append(self._now - came)
            self._begin(self._jobs[key])
        self._cluster.bound.clear()

    def _begin(self, job: _Job) -> None:
        """Take note that a pod of *job* got a node."""
        job.with_node += 1
        if job.with_node == job.size and job.lifetime is not None:
            job.epoch += 1
            self._push(self._now + job.lifetime, _Order.END, _End(job, job.epoch))

    def _note_victims(self) -> bool:
        """Take note of pods that were evicted; return whether others have come in their place."""
        victims = [victim.pod.key for victim in self._cluster.victims]
        self._cluster.victims.clear()
        again = False
        for key in victims:
            self._preempted += 1
            job = self._jobs[key]
            arrival = job.arrivals[key]
            if not arrival.comes_again:
                continue
            again = True
            del self._jobs[key], job.arrivals[key]
            if self._waiting.pop(key, None) is None:  # else it had not got its node for good
                job.with_node -= 1
            job.epoch += 1
            name = f"{arrival.pod.metadata.name.split(AGAIN)[0]}{AGAIN}{self._preempted}"
            self._put(job, replace(arrival, pod=called(arrival.pod, name)))
        return again

    def _happen(self) -> float | None:
        """Have happen what is due; return the time if it is time to measure."""
        sample = None
        while self._due and self._due[0].at <= self._now:
            due = heapq.heappop(self._due)
            match due.what:
                case Arrival():
                    self._push_arrival()
                    self._come(due.what)
                case Change():
                    self._change(due.what)
                case Pod():
                    self._go(due.what)
                case _End():
                    self._end(due.what)
                case None:
                    sample = due.at
        return sample

    def _come(self, arrival: Arrival) -> None:
        group = arrival.group
        job = self._gangs.get(group.metadata.uid) if group is not None else None
        if job is None:
            job = _Job(arrival.at, arrival.lifetime, arrival.size)
            self._ending += arrival.lifetime is not None
            if group is not None:
                self._gangs[group.metadata.uid] = job
                self._cluster.put(group)
        self._pods += not arrival.pod.spec.node_name
        self._put(job, arrival)
        if arrival.until is not None:
            self._push(arrival.until, _Order.END, arrival.pod)

    def _put(self, job: _Job, arrival: Arrival) -> None:
        pod = arrival.pod
        self._jobs[pod.key] = job
        job.arrivals[pod.key] = arrival
        self._cluster.put(pod)
        if pod.spec.node_name:
            self._begin(job)
        else:
            self._waiting[pod.key] = self._now, self._class_of(pod)

    def _class_of(self, pod: Pod) -> str:
        if self._waiting_by:
            return pod.metadata.labels.get(self._waiting_by, "")
        return f"priority {pod.spec.priority or 0}"

    def _go(self, pod: Pod) -> None:
        """Delete a pod, unless it was preempted, and what it owns."""
        if (bound := self._cluster.pods.get(pod.key)) is not None:
            self._cluster.delete(bound)
        for obj in self._owned.pop(pod.metadata.uid, ()):
            self._delete(obj)

    def _end(self, end: _End) -> None:
        job = end.job
        if end.epoch != job.epoch:
            return
        pods = self._cluster.pods
        if all(key in pods for key in job.arrivals):
            self._completed.append(self._now - job.came)
            self._makespan = self._now
        for key, arrival in job.arrivals.items():
            self._go(arrival.pod)
            del self._jobs[key]
        group = arrival.group
        if group is not None:
            del self._gangs[group.metadata.uid]
            self._cluster.delete(group)

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
        return {
            **measures.now(),
            **measures.seldom(),
            WAITING: waiting,
            PREEMPTED: self._preempted,
        }

    def _totals(self, means: Mapping[str, Curve]) -> dict[str, float]:
        """Return what the whole run comes to, by name."""
        totals = {name: fmean(curve.values()) for name, curve in means.items()}
        totals[PREEMPTED] = self._preempted
        totals["unplaced pods"] = len(self._waiting)
        for came, class_ in self._waiting.values():
            self._waited[class_].append(self._now - came)
        waited = sorted(self._waited.items(), key=lambda item: (-len(item[1]), item[0]))
        totals |= _named("waiting", [*chain(*self._waited.values())])
        if len(waited) > 1:
            for class_, waits in sorted(waited[:MOST_CLASSES]):
                totals |= _named(f"waiting of {class_}", waits)
        if self._ending:
            totals |= _named("job completion", self._completed)
            totals["unfinished jobs"] = self._ending - len(self._completed)
            totals["makespan"] = self._makespan
        totals |= self._meters.totals(self._used)
        return totals

    def _unplaced(self) -> dict[str, Any]:
        """Return which pods have never had a node, by what the scheduler last said."""
        reasons: Counter[str] = Counter()
        for key in self._waiting:
            condition = self._cluster.api.conditions.get(key)
            reasons[condition.message if condition else "not tried"] += 1
        return {"unplaced": reasons.total(), "unplaced_by_reason": dict(reasons.most_common())}


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the percentiles by name; none of nothing."""
    ordered, last = sorted(values), len(values) - 1
    return {
        name: round(ordered[round(share * last)], DECIMALS)
        for name, share in PERCENTILES.items()
        if ordered
    }


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    mean = {"mean": fmean(values)} if values else {}
    return {f"{name} {which}": value for which, value in (mean | _percentiles(values)).items()}
