"""A private copy of a cluster with the changes that a question makes to it."""

import dataclasses
import fnmatch
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from berth.insight.whatif.admission import Admission
from berth.insight.whatif.claims import free_claims
from berth.insight.whatif.daemons import DAEMON_SET, DaemonSet, by_their_pods, owner_of
from berth.insight.whatif.filling import fill
from berth.insight.whatif.manifests import (
    Made,
    QuestionError,
    copies,
    daemon_set,
    node,
    nodes_called,
    pod,
    replicas,
    without_condition,
)
from berth.insight.whatif.movable import Movable
from berth.insight.whatif.question import (
    MOST_NODES,
    MOST_PODS,
    NodeChoice,
    NodeType,
    PodChoice,
    Question,
    Replicas,
)
from berth.insight.whatif.renders import Workload, sort_out
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.usage import NodesThen
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.node import Node
from berth.kube.objects.node_pods import goes_with_node
from berth.kube.objects.pod import Pod, PodStatus
from berth.kube.objects.selector_text import parse_label_selector
from berth.kube.objects.selectors import Selector
from berth.kube.objects.storage import BETA_CLASS, DEFAULT_CLASS, PersistentVolumeClaim
from berth.kube.objects.taints import COMPARISONS
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.core.scheduler_state import SchedulerState
from berth.scheduler.core.simulated_cluster import SimulatedCluster
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.words import counted

MOST_NAMED: Final = 10
"""Things that a note names."""
_PATTERN: Final = frozenset("*?[")
"""What tells a pattern from a name."""

_replace = msgspec.structs.replace


@dataclass(slots=True)
class World:
    """A cluster that might be, and who is to be placed on it."""

    cluster: SimulatedCluster
    before: NodesThen
    """As the snapshot has them."""
    admission: Admission
    """What the API server does with pods that the question creates."""
    profile: str = ""
    """Which one places the pods that are asked for; empty: the one that each names."""
    asked: list[PodInfo] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Who of those that are asked for is not created, and why; by key."""
    creates: bool = False
    """Whether the question is about pods that there are not yet."""
    pending: list[PodInfo] = field(default_factory=list)
    """Those that wait in the snapshot and are to be placed."""
    template_of: dict[str, str] = field(default_factory=dict)
    """What the pods were made from, by key."""

    added: list[str] = field(default_factory=list)
    """Names of the nodes that the question adds."""
    moving: dict[str, str] = field(default_factory=dict)
    """Who is placed anew though its node stays: the node where it was, by key."""
    homeless: dict[str, str] = field(default_factory=dict)
    """Who is placed anew for its node is removed: that node, by key."""
    busy_before: set[str] = field(default_factory=set)
    """If pods are placed anew: what :meth:`busy_nodes` told of the snapshot."""
    notes: list[str] = field(default_factory=list)
    _daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)
    """Those of the snapshot, if nodes come; by key, as the next."""
    _asked_daemon_sets: dict[str, DaemonSet] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        question: Question,
        snapshot: Snapshot,
        cluster: SimulatedCluster,
        state: SchedulerState | None,
    ) -> "World":
        """Fill the empty *cluster* and change it; QuestionError or SnapshotError if impossible.

        *state* is that of the scheduler which goes on in the simulation; None: it begins anew.
        """
        fill(cluster, snapshot, state, with_waiting=question.include_pending)
        admission = Admission(snapshot.policies, snapshot.now)
        world = cls(cluster, NodesThen.of(cluster.cache.table), admission, question.profile)
        if question.add_nodes or question.find_nodes is not None:
            running = by_their_pods(cluster.cache.pods())
            world._daemon_sets = {**running, **_written(snapshot.daemon_sets, running)}
        if question.repack:
            world.busy_before = world.busy_nodes()
        for name in world.chosen_nodes(question.remove_nodes, at="removeNodes"):
            world.remove_node(name)
        world._cordon(question.cordon_nodes)
        world._add_nodes(question)
        world._remove_pods(question.remove_pods)
        world._add_pods(question)
        if question.include_pending:
            world._take_pending()
        cluster.cache.refresh_order()
        return world

    # Nodes.

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are asked for, but those that go with it."""
        for info in self.take_node(name)[1]:
            if not goes_with_node(info.pod):
                self.homeless[info.key] = name
                self._ask_for(unplaced(info.pod), template=_origin(info.pod))

    def take_node(self, name: str) -> tuple[Node, list[PodInfo]]:
        """Take a node out with all of its pods, and return them."""
        cache, node = self.cluster.cache, self.node(name)
        pods = list(cache.table.pods[cache.table.row_of[name]].values())
        for info in pods:
            self.cluster.delete(info.pod)
        self.cluster.delete(node)
        return node, pods

    def put_back(self, node: Node, pods: Iterable[PodInfo]) -> None:
        """Add a node that runs *pods*."""
        self.cluster.put(node)
        for info in pods:
            self.cluster.put(info.pod)

    def _cordon(self, choice: NodeChoice) -> None:
        for name in self.chosen_nodes(choice, at="cordonNodes"):
            node = self.node(name)
            spec = _replace(node.spec, unschedulable=True)
            self.cluster.put(_replace(node, spec=spec))

    def _add_nodes(self, question: Question) -> None:
        total = sum(added.count for added in question.add_nodes)
        if total > MOST_NODES:
            raise QuestionError(f"addNodes: {total}: more than {MOST_NODES} nodes")
        for i, added in enumerate(question.add_nodes):
            for new in self.new_nodes(added, added.count, at=f"addNodes[{i}]"):
                self.put_back(new, self.daemons_on(new, like=added.like))
                self.added.append(new.name)

    def new_nodes(self, type_: NodeType, count: int, *, at: str) -> list[Node]:
        """Return *count* nodes of a type, under names that are free; nothing is added yet.

        A node *like* another gets a copy of its CSINode, too, which has its volume limits.
        """
        like, listers = type_.like, self.cluster.listers
        if like:
            if like not in self.cluster.cache.table.row_of:
                raise QuestionError(f"{at}.like: {like!r}: there is no such node")
            model = without_condition(self.node(like))
        else:
            model = node(type_.manifest or {}, at=f"{at}.manifest")
        made = list(islice(nodes_called(model, taken=self.cluster.cache.table.row_of), count))
        drivers = listers.csi_nodes.get("", like) if like else None
        if drivers is not None:
            for added in made:
                meta = _replace(drivers.metadata, name=added.name)
                self.cluster.put(_replace(drivers, metadata=meta))
        running = [daemon.key for daemon in self._running_on(made[0], like=like)]
        if running:
            self.notes.append(f"{at}: with the pods of DaemonSets {_named(running)}")
        return made

    def daemons_on(self, node: Node, *, like: str) -> tuple[PodInfo, ...]:
        """Return the pods of DaemonSets that a new *node* runs, *like* another or like none."""
        return tuple(
            PodInfo(daemon.running_on(node.name, taken=self.cluster.pods))
            for daemon in self._running_on(node, like=like)
        )

    @property
    def _compares(self) -> bool:
        """Whether tolerations may compare numbers."""
        return COMPARISONS in features_of(self.cluster.core.live.current)

    def _running_on(self, node: Node, *, like: str) -> Iterator[DaemonSet]:
        sets = {**self._daemon_sets, **self._asked_daemon_sets}
        compares = self._compares
        return (e for e in sets.values() if e.runs_on(node, like=like, comparisons=compares))

    def busy_nodes(self) -> set[str]:
        """Return the names of the nodes that run more than what goes with them."""
        table = self.cluster.cache.table
        return {
            name
            for name, row in table.row_of.items()
            if not all(goes_with_node(info.pod) for info in table.pods[row].values())
        }

    def node(self, name: str) -> Node:
        table = self.cluster.cache.table
        node = table.nodes[table.row_of[name]]
        assert node is not None, name
        return node

    def chosen_nodes(self, choice: NodeChoice, *, at: str) -> list[str]:
        """Return the names of the nodes of a choice; QuestionError for a name that no node has.

        A pattern or selector that no node matches is noted.
        """
        rows = self.cluster.cache.table.row_of
        chosen: dict[str, None] = {}
        for i, name in enumerate(choice.names):
            names = [name] if name in rows else fnmatch.filter(rows, name)
            if not names and not _PATTERN & set(name):
                raise QuestionError(f"{at}.names[{i}]: {name!r}: there is no such node")
            if not names:
                self.notes.append(f"{at}.names[{i}]: {name!r} matches no node")
            chosen |= dict.fromkeys(names)
        if choice.selector:
            selector = _selector(choice.selector, at=at)
            names = [name for name in rows if selector.matches(self.node(name).labels)]
            if not names:
                self.notes.append(f"{at}.selector: {choice.selector!r} matches no node")
            chosen |= dict.fromkeys(names)
        return list(chosen)

    # Pods.

    def _remove_pods(self, choice: PodChoice) -> None:
        for key in self._chosen_pods(choice):
            self.forget(key)

    def forget(self, key: str) -> None:
        """Take a pod out of the cluster, bound or not; it is not placed either."""
        self.admission.release(self.cluster.pods[key])
        self.cluster.delete(self.cluster.pods[key])
        if self.template_of.pop(key, None) is not None:
            self.asked = [info for info in self.asked if info.key != key]

    def _chosen_pods(self, choice: PodChoice) -> list[str]:
        pods = self.cluster.pods
        keys = [name if "/" in name else f"default/{name}" for name in choice.names]
        for i, key in enumerate(keys):
            if key not in pods:
                raise QuestionError(f"removePods.names[{i}]: {key!r}: there is no such pod")
        if choice.namespace and not choice.selector:
            raise QuestionError("removePods.namespace: goes with a selector")
        if choice.selector:
            selector = _selector(choice.selector, at="removePods")
            keys += [
                key
                for key, info in pods.items()
                if choice.namespace in ("", info.metadata.namespace)
                and selector.matches(info.metadata.labels)
            ]
        return list(dict.fromkeys(keys))

    def repack(self, movable: Movable) -> None:
        """Place anew who runs and may move. To be called once."""
        stay: Counter[str] = Counter()
        for info in list(self.cluster.cache.pods()):
            if goes_with_node(info.pod) or info.node_name not in self.cluster.cache.table.row_of:
                continue
            if why := movable.why_not(info):
                stay[why] += 1
                continue
            self.moving[info.key] = info.node_name
            free_claims(self.cluster, info.pod)
            self._ask_for(unplaced(info.pod), template=_origin(info.pod))
        self.notes += (
            f"not moved: {counted(count, 'pod')}, because {why}" for why, count in stay.items()
        )
        if len(self.moving) > MOST_PODS:
            raise QuestionError(f"repack: {len(self.moving)}: more than {MOST_PODS} pods")

    def _add_pods(self, question: Question) -> None:
        render = sort_out(question.templates)
        self.notes += render.notes
        admission = self.admission
        for class_ in render.priority_classes:
            admission.add_class(class_)
        for name, value in question.priority_classes.items():
            admission.set_priority(name, value)
        for obj in render.objects:
            self.cluster.put(self._with_default_class(obj))
        for i, manifest in enumerate(question.pods):
            made = pod(manifest, at=f"pods[{i}]", admission=admission)
            if made.pods[0].key in self.cluster.pods:  # as if it were created anew
                self.forget(made.pods[0].key)
            self._take_in(made)
        left = MOST_PODS - len(question.pods)
        for workload in render.workloads:
            if workload.manifest["kind"] == DAEMON_SET:
                made = self._daemons(workload, most=left)
            else:
                made = replicas(
                    workload.manifest,
                    workload.replicas,
                    at=workload.at,
                    admission=admission,
                    taken=self.cluster.pods,
                    most=left,
                )
            left -= len(made.pods)
            self._take_in(made)
        for at, asked in render.copies:
            made = self._copies(asked, at=at, most=left)
            left -= len(made.pods)
            self._take_in(made)

    def _copies(self, asked: Replicas, *, at: str, most: int) -> Made:
        key = asked.like if "/" in asked.like else f"default/{asked.like}"
        model = self.cluster.pods.get(key)
        if model is None:
            raise QuestionError(f"{at}.like: {asked.like!r}: there is no such pod")
        number = 1 if asked.replicas is None else asked.replicas
        return copies(model, number, at=at, taken=self.cluster.pods, most=most)

    def _daemons(self, asked: Workload, *, most: int) -> Made:
        """Return the pods of a DaemonSet, one for each node that runs it; those it has go."""
        at = asked.at
        if asked.replicas is not None:
            raise QuestionError(f"{at}.replicas: a DaemonSet has a pod for each node")
        asked_set, written = daemon_set(asked.manifest, at=at, admission=self.admission)
        self._asked_daemon_sets[asked_set.key] = asked_set
        pods = self.cluster.pods
        for key in [key for key, other in pods.items() if owner_of(other) == asked_set.key]:
            self.forget(key)
        nodes = filter(None, self.cluster.cache.table.nodes)
        compares = self._compares
        here = [node.name for node in nodes if asked_set.runs_on(node, comparisons=compares)]
        if len(here) > most:
            raise QuestionError(f"{at}: {len(here)} pods: must be at most {most}, with the others")
        made = tuple(asked_set.pod_on(name, taken=pods) for name in here)
        return Made(f"{DAEMON_SET} {asked_set.key}", made, written=written)

    def _take_in(self, made: Made) -> None:
        """Create what was made, as far as the API server would."""
        self.creates = True
        for obj in made.objects:
            self.cluster.put(self._with_default_class(obj))
        if not made.pods:
            return
        first = made.pods[0]
        written = self.admission.written(first) if made.written is None else made.written
        number, why = self.admission.create(
            dict(written),
            [created.metadata.name for created in made.pods],
            namespace=first.metadata.namespace,
            claims=[{**claim, "metadata": claim.get("metadata") or {}} for claim in made.claims],
        )
        for created in made.pods[:number]:
            self._ask_for(created, template=made.template)
        for created in made.pods[number:]:
            self.refused[created.key] = why
            self.template_of[created.key] = made.template

    def _with_default_class(self, obj: KubeStruct) -> KubeStruct:
        """Let a claim without a class have the default one, as admission does."""
        if not isinstance(obj, PersistentVolumeClaim) or obj.spec.storage_class_name:
            return obj
        if BETA_CLASS in obj.metadata.annotations:
            return obj
        names = [
            storage_class.metadata.name
            for storage_class in self.cluster.listers.storage_classes
            if storage_class.metadata.annotations.get(DEFAULT_CLASS) == "true"
        ]
        spec = _replace(obj.spec, storage_class_name=names[0] if names else "")
        return _replace(obj, spec=spec)

    def _ask_for(self, pod: Pod, *, template: str) -> None:
        if self.profile:
            pod = _replace(pod, spec=_replace(pod.spec, scheduler_name=self.profile))
        self.cluster.put(pod)
        self.template_of[pod.key] = template
        self.asked.append(PodInfo(pod))

    def _take_pending(self) -> None:
        asked = {info.key for info in self.asked}
        for key, pending in self.cluster.pods.items():
            is_leaving = pending.metadata.deletion_timestamp is not None
            if key in asked or pending.spec.node_name or pending.is_terminated or is_leaving:
                continue
            self.template_of[key] = _origin(pending)
            self.pending.append(PodInfo(pending))

    def leave_to_others(self, schedulers: Container[str]) -> None:
        """Place no pods that wait for a scheduler which is none of *schedulers*.

        QuestionError if the question is about such a pod.
        """
        for info in self.asked:
            if info.pod.spec.scheduler_name not in schedulers:
                name = info.pod.spec.scheduler_name
                raise QuestionError(f"pod {info.key}: spec.schedulerName: no profile {name!r}")
        self.pending = [i for i in self.pending if i.pod.spec.scheduler_name in schedulers]

    @property
    def waiting(self) -> Iterator[PodInfo]:
        yield from self.asked
        yield from self.pending


def _written(
    manifests: Sequence[Mapping[str, Any]], running: Mapping[str, DaemonSet]
) -> dict[str, DaemonSet]:
    """Return DaemonSets of manifests; of those that are *running*, the pods tell the priority."""
    claims = {}
    for i, manifest in enumerate(manifests):
        at = f"DaemonSet[{i}] of the snapshot"
        made, _ = daemon_set({"kind": DAEMON_SET, **manifest}, at=at, admission=None)
        if made.key in running:
            priority = running[made.key].pod.spec.priority
            spec = _replace(made.pod.spec, priority=priority)
            made = dataclasses.replace(made, pod=_replace(made.pod, spec=spec))
        claims[made.key] = made
    return claims


def _named(keys: Sequence[str]) -> str:
    left = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")


def unplaced(pod: Pod) -> Pod:
    """Return the pod that the owner of *pod* would make in its place; its claims are kept."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    return _replace(
        pod,
        metadata=_replace(pod.metadata, deletion_timestamp=None),
        spec=_replace(pod.spec, node_name=""),
        status=status,
    )


def _origin(pod: Pod) -> str:
    """Name what made a pod: its controller, or nobody."""
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    return f"{owner.kind} {namespace}/{owner.name}" if owner else f"Pod {pod.key}"


def _selector(text: str, *, at: str) -> Selector:
    try:
        return parse_label_selector(text)
    except ValueError as exc:
        raise QuestionError(f"{at}.selector: {text!r}: {exc}") from exc
