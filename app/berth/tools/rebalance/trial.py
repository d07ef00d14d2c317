"""A private copy of a cluster, in which evictions are carried out, and taken back."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import msgspec

from berth.insight.explain.choice import choose, node_score
from berth.insight.explain.explanation import Choice
from berth.insight.whatif.claims import claims_made_for, free_claims
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.world import World, unplaced
from berth.kube.objects.devices import ResourceClaim, ResourceClaimStatus
from berth.kube.objects.pod import Pod
from berth.kube.objects.selectors import Operator, Selector
from berth.kube.objects.taints import UNSCHEDULABLE_TAINT
from berth.scheduler.config.load import default_configuration, from_object
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry, args_models
from berth.scheduler.schedule_pod import smallest_name
from berth.tools.rebalance.evictable import Evictable
from berth.tools.rebalance.proposal import Eviction, Placement, Round

AGAIN: Final = "+"
"""What makes the name of a pod that was made again; no name in a cluster has it."""

_replace = msgspec.structs.replace


@dataclass(slots=True)
class Outcome:
    """What came of evictions."""

    rounds: list[Round] = field(default_factory=list)
    failure: str = ""
    """Why it did not go as it should; empty: everybody has a node."""


class Trial:
    """Pods wait in it only while they are placed; whoever is pending and not asked for stays so."""

    def __init__(
        self,
        snapshot: Snapshot,
        registry: Registry,
        *,
        before_trial: Callable[[], None] = lambda: None,
    ) -> None:
        """*before_trial* is called whenever pods are evicted; SnapshotError or ConfigError."""
        self._before_trial = before_trial
        models = args_models(registry)
        config = (
            default_configuration(models)
            if snapshot.config is None
            else from_object(snapshot.config, source="config", args_models=models)
        )
        options = SimulationOptions(
            preempts=False, select=smallest_name, start=snapshot.now, is_watched=True
        )
        cluster = SimulatedCluster(config, registry, options, listers=snapshot.listers)
        self._placing = Placing(cluster, seed=None)
        self._world = World.of(
            Question(include_pending=False), snapshot, self._placing.cluster, None
        )
        self._cluster = cluster
        self._evicted: list[PodInfo] = []
        self._made: list[PodInfo] = []
        """In their place; both since the last :meth:`keep`."""
        self._claims_gone: list[ResourceClaim] = []
        self._claims_made: list[ResourceClaim] = []
        self._labelled = LabelledPods(cluster.cache.pods())
        self._domains: dict[tuple[str, str], Mapping[str, str]] = {}
        self.made: set[str] = set()
        """The UIDs of all pods that there are in this trial only."""
        self.evictable = Evictable(self._cluster.listers, self._placing.profiles)

    @property
    def table(self) -> NodeTable:
        return self._cluster.cache.table

    def pods_on(self, node: str) -> list[PodInfo]:
        """Return the pods of a node, by key."""
        table = self.table
        return sorted(table.pods[table.row_of[node]].values(), key=lambda pod: pod.key)

    def pods_matching(self, namespace: str, selector: Selector) -> Iterator[PodInfo]:
        """Yield the pods of *namespace* on nodes that *selector* matches."""
        table = self.table
        for key in self._labelled.candidates(namespace, selector):
            pod = self._cluster.pods.get(key)
            row = None if pod is None else table.row_of.get(pod.spec.node_name)
            if pod is None or row is None:
                continue
            info = table.pods[row].get(pod.metadata.uid)
            if info is not None and selector.matches(info.labels):
                yield info

    def domains(self, topology_key: str, pod: PodInfo) -> Mapping[str, str]:
        """Return the domain of each node that has one, and where *pod* may run; by name."""
        spec = pod.pod.spec
        known = (topology_key, repr((spec.node_selector, spec.affinity)))
        if known not in self._domains:
            affinity = pod.template.required_node_affinity
            self._domains[known] = {
                node: labels[topology_key]
                for node in self.table.row_of
                if topology_key in (labels := self.labels(node))
                and (affinity is None or affinity.matches(labels, node))
            }
        return self._domains[known]

    def labels(self, node: str) -> Mapping[str, str]:
        return self._world.node(node).labels

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes, sorted."""
        return sorted(self.table.row_of)

    def pod(self, key: str) -> PodInfo | None:
        """Return the pod ``namespace/name``, if it is there and has not finished."""
        pod = self._cluster.pods.get(key)
        return None if pod is None or pod.is_terminated else PodInfo(pod)

    def is_cordoned(self, name: str) -> bool:
        return self._world.node(name).spec.unschedulable

    def set_cordoned(self, name: str, *, cordoned: bool) -> None:
        node = self._world.node(name)
        self._cluster.put(_replace(node, spec=_replace(node.spec, unschedulable=cordoned)))

    def uncordon(self, name: str) -> None:
        """Uncordon a node of a running cluster, if it is there, where it has a taint, too."""
        if name in self.table.row_of:
            node = self._world.node(name)
            taints = tuple(taint for taint in node.spec.taints if taint != UNSCHEDULABLE_TAINT)
            spec = _replace(node.spec, taints=taints, unschedulable=False)
            self._cluster.put(_replace(node, spec=spec))

    @property
    def pending(self) -> list[PodInfo]:
        """The pods that a profile could place now, by priority and then by key."""
        pods = [
            PodInfo(pod)
            for pod in self._cluster.pods.values()
            if not (
                pod.spec.node_name
                or pod.is_terminated
                or pod.metadata.deletion_timestamp is not None
                or pod.spec.scheduling_gates
                or pod.spec.scheduler_name not in self._placing.profiles
            )
        ]
        return sorted(pods, key=lambda pod: (-pod.priority, pod.key))

    def emptied(self) -> tuple[SimulatedCluster, list[PodInfo]]:
        """Take all pods off that may be evicted; return the cluster without them, and the pods.

        The trial is of no use afterwards.
        """
        pods = [
            pod
            for node in self.nodes
            for pod in self.pods_on(node)
            if not self.evictable.why_not(pod)
        ]
        for pod in pods:
            self._cluster.delete(pod.pod)
            free_claims(self._cluster, pod.pod)
        self._cluster.cache.refresh_order()
        return self._cluster, pods

    async def evict(
        self, pods: Sequence[PodInfo], wanted: Sequence[PodInfo], *, cordoned: Sequence[str] = ()
    ) -> Outcome:
        """Evict *pods*, in rounds, while *wanted* wait; :meth:`keep` it or :meth:`take_back`.

        Nodes that are *cordoned* for that time are not, when *wanted* get their turn.

        As in a cluster: first pods are made in the place of those that were evicted, which still
        hold their room while they end; a StatefulSet waits for that end. Whoever waited before is
        in backoff, and comes last. The scheduler decides about all of them.
        """
        self._before_trial()
        if not cordoned:
            return await self._evict(pods, wanted, is_open=True)
        for name in cordoned:
            self.set_cordoned(name, cordoned=True)
        try:
            outcome = await self._evict(pods, wanted, is_open=False)
        finally:
            for name in cordoned:
                self.set_cordoned(name, cordoned=False)
        if not outcome.failure:
            placements = await self._place_waiting(outcome, list(wanted))
            outcome.rounds[-1] = Round(outcome.rounds[-1].evictions, placements)
        return outcome

    async def _evict(
        self, pods: Sequence[PodInfo], wanted: Sequence[PodInfo], *, is_open: bool
    ) -> Outcome:
        outcome, left = Outcome(), list(wanted) if is_open else []
        rounds = self.evictable.in_rounds(pods) or [()]
        for number, evicted in enumerate(rounds, 1):
            made = {pod.key: self._made_again(pod) for pod in evicted}
            for pod in evicted:
                self._evicted.append(pod)
                self._cluster.put(_terminating(pod.pod))
            at_once = [made[pod.key] for pod in evicted if not _keeps_name(pod)]
            nodes = (await self._place(at_once)).nodes
            for pod in evicted:
                self._cluster.delete(pod.pod)
                for claim in [*claims_made_for(self._cluster, pod.pod)]:
                    self._claims_gone.append(claim)
                    self._cluster.delete(claim)
            later = [pod for pod in made.values() if pod.key not in nodes]
            placed = await self._place(later)
            nodes |= placed.nodes
            for pod in evicted:
                if message := placed.refusals.get(made[pod.key].key):
                    outcome.failure = f"{pod.key} would find no other node: {message}"
                    return outcome
            placements = await self._place_waiting(outcome, left, is_last=number == len(rounds))
            fitting = {placement.pod for placement in placements}
            left = [pod for pod in left if pod.key not in fitting]
            evictions = (self._eviction(pod, made[pod.key].key, nodes) for pod in evicted)
            outcome.rounds.append(Round(tuple(evictions), placements))
        return outcome

    async def _place_waiting(
        self, outcome: Outcome, waiting: Sequence[PodInfo], *, is_last: bool = True
    ) -> tuple[Placement, ...]:
        """Place those who wait; it is a failure if somebody still does after the *is_last* time."""
        placed = await self._place(waiting)
        if is_last and placed.refusals:
            key, message = next(iter(placed.refusals.items()))
            outcome.failure = f"{key} fits nowhere: {message}"
        return tuple(
            Placement(pod.key, placed.nodes[pod.key], self._choice(pod.key).words)
            for pod in waiting
            if pod.key in placed.nodes
        )

    async def _place(self, pods: Sequence[PodInfo]) -> Placed:
        self._cluster.cache.refresh_order()
        return await self._placing.place_anew(pods)

    def _made_again(self, pod: PodInfo) -> PodInfo:
        """Return the pod that the controller of *pod* makes in its place."""
        again = unplaced(pod.pod)
        claims = {
            claim.metadata.name: self._claim_again(claim)
            for claim in [*claims_made_for(self._cluster, pod.pod)]
        }
        statuses = tuple(
            _replace(status, resource_claim_name=claims[name].metadata.name)
            if (name := status.resource_claim_name) in claims
            else status
            for status in again.status.resource_claim_statuses
        )
        again = _replace(again, status=_replace(again.status, resource_claim_statuses=statuses))
        meta = _replace(again.metadata, uid=f"{pod.uid}{AGAIN}")
        if not _keeps_name(pod):
            meta = _replace(meta, name=f"{pod.name}{AGAIN}")
        made = PodInfo(_replace(again, metadata=meta))
        self.made.add(made.uid)
        self._labelled.add(made)
        self._made.append(made)
        return made

    def _claim_again(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim that is made in the place of *claim*, for another pod."""
        meta = claim.metadata
        owners = tuple(_replace(o, uid=f"{o.uid}{AGAIN}") for o in meta.owner_references)
        name, uid = f"{meta.name}{AGAIN}", f"{meta.uid}{AGAIN}"
        meta = _replace(meta, name=name, uid=uid, owner_references=owners)
        made = _replace(claim, metadata=meta, status=ResourceClaimStatus())
        self._cluster.put(made)
        self._claims_made.append(made)
        return made

    def keep(self) -> None:
        """Let all be as it is now."""
        self._placing.keep()
        self._forget()

    def take_back(self) -> None:
        """Let all be as it was at the last :meth:`keep`, or at the beginning."""
        self._placing.take_back()
        for pod in self._made:
            if pod.key in self._cluster.pods:
                self._cluster.delete(pod.pod)
        for claim in self._claims_made:
            self._cluster.delete(claim)
        for claim in self._claims_gone:
            self._cluster.put(claim)
        for pod in self._evicted:
            self._cluster.put(pod.pod)
        self._forget()
        self._cluster.cache.refresh_order()

    def _forget(self) -> None:
        for things in (self._evicted, self._made, self._claims_gone, self._claims_made):
            things.clear()

    def _eviction(self, pod: PodInfo, made: str, nodes: Mapping[str, str]) -> Eviction:
        controller, choice = pod.pod.metadata.controller, self._choice(made)
        return Eviction(
            pod=pod.key,
            uid=pod.uid,
            node=pod.node_name,
            priority=pod.priority,
            controller=f"{controller.kind}/{controller.name}" if controller else "",
            goes_to=nodes[made],
            why=choice.words,
            or_to=self._equals(made) if choice.equals else (),
        )

    def _choice(self, key: str) -> Choice:
        """Say why a pod that was just placed is where it is."""
        record = self._record(key)
        scores = [node_score(ranked, weights=record.weights) for ranked in record.top]
        return choose(record.node, scores, equals=record.equals)

    def _equals(self, key: str) -> tuple[str, ...]:
        """Return the other nodes where it could be as well, of the best that are recorded."""
        record = self._record(key)
        best = max(ranked.total for ranked in record.top)
        equals = (ranked.name for ranked in record.top if ranked.total == best)
        return tuple(sorted(name for name in equals if name != record.node))

    def _record(self, key: str) -> DecisionRecord:
        records = self._cluster.core.scheduler.decisions.of(key)
        return next(record for record in reversed(records) if record.node)


def _keeps_name(pod: PodInfo) -> bool:
    """Whether the pod that is made in its place has its name, and so waits for its end."""
    controller = pod.pod.metadata.controller
    return controller is not None and controller.kind == "StatefulSet"


def _terminating(pod: Pod) -> Pod:
    meta = _replace(pod.metadata, deletion_timestamp="1970-01-01T00:00:00Z")
    return _replace(pod, metadata=meta)


# Finds the pods that a selector matches without a look at all pods.


class LabelledPods:
    """Keys of pods by namespace and label; they may be gone meanwhile, for nobody removes one."""

    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._in_namespace: dict[str, set[str]] = {}
        self._with_label: dict[tuple[str, str, str], set[str]] = {}
        for pod in pods:
            self.add(pod)

    def add(self, pod: PodInfo) -> None:
        self._in_namespace.setdefault(pod.namespace, set()).add(pod.key)
        for key, value in pod.labels.items():
            self._with_label.setdefault((pod.namespace, key, value), set()).add(pod.key)

    def candidates(self, namespace: str, selector: Selector) -> Iterable[str]:
        """Return the keys of all pods that *selector* matches, and of as few others as can be."""
        if selector.is_nothing:
            return ()
        fewest = [self._in_namespace.get(namespace, set())]
        for wanted in selector.requirements:
            if wanted.operator is Operator.IN:
                sets_of_keys = [
                    self._with_label.get((namespace, wanted.key, value), set())
                    for value in wanted.values
                ]
                fewest = min(fewest, sets_of_keys, key=lambda sets: sum(map(len, sets)))
        return chain.from_iterable(fewest)
