"""A private copy of a cluster with the changes that a question makes to it."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec

from app.framework.pod_info import PodInfo
from app.objects.meta import KubeStruct
from app.objects.node import Node
from app.objects.pod import Pod, PodStatus
from app.objects.selector_text import parse_label_selector
from app.objects.selectors import Selector
from app.objects.storage import BETA_CLASS, PersistentVolumeClaim
from app.offline.scenario import Scenario
from app.whatif.manifests import (
    Made,
    QuestionError,
    node,
    nodes_called,
    pod,
    replicas,
    without_condition,
)
from app.whatif.question import (
    MOST_NODES,
    MOST_PODS,
    NodeChoice,
    NodeType,
    PodChoice,
    Question,
)
from app.whatif.snapshot import Snapshot
from app.whatif.usage import Usages, measure

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
STAYING: Final = ("DaemonSet", "Node")
"""Owners of pods that go with their node; a mirror pod is owned by it."""

_replace = msgspec.structs.replace


@dataclass(slots=True)
class World:
    """A cluster that might be, and who is to be placed on it."""

    cluster: Scenario
    before: Usages
    """Of the snapshot, by label."""
    asked: list[PodInfo] = field(default_factory=list)
    pending: list[PodInfo] = field(default_factory=list)
    """Those that wait in the snapshot and are to be placed."""
    template_of: dict[str, str] = field(default_factory=dict)
    """What the pods were made from, by key."""

    @classmethod
    def of(cls, question: Question, snapshot: Snapshot) -> "World":
        """Make the cluster and change it; QuestionError or SnapshotError when that cannot be."""
        cluster = snapshot.scenario()
        world = cls(cluster, measure(cluster.cache.table, question.group_by))
        world._remove_nodes(question.remove_nodes)
        world._cordon(question.cordon_nodes)
        world._add_nodes(question)
        world._remove_pods(question.remove_pods)
        world._add_pods(question)
        if question.include_pending:
            world._take_pending()
        cluster.cache.refresh_order()
        return world

    # Nodes.

    def _remove_nodes(self, choice: NodeChoice) -> None:
        cache = self.cluster.cache
        for name in self._chosen_nodes(choice, at="removeNodes"):
            row = cache.table.row_of[name]
            leaving = list(cache.table.pods[row].values())
            for info in leaving:
                cache.remove_pod(info.pod)
                self.cluster.pods.pop(info.key, None)
                owner = info.pod.metadata.controller
                if owner is None or owner.kind not in STAYING:
                    self._ask_for(_unplaced(info.pod), template=_origin(info.pod))
            cache.remove_node(name)

    def _cordon(self, choice: NodeChoice) -> None:
        for name in self._chosen_nodes(choice, at="cordonNodes"):
            found = self._node(name)
            spec = _replace(found.spec, unschedulable=True)
            self.cluster.cache.update_node(_replace(found, spec=spec))

    def _add_nodes(self, question: Question) -> None:
        total = sum(added.count for added in question.add_nodes)
        if total > MOST_NODES:
            raise QuestionError(f"addNodes: {total}: more than {MOST_NODES} nodes")
        for i, added in enumerate(question.add_nodes):
            for each in self.new_nodes(added, added.count, at=f"addNodes[{i}]"):
                self.cluster.cache.add_node(each)

    def new_nodes(self, type_: NodeType, count: int, *, at: str) -> list[Node]:
        """Return *count* nodes of a type, under names that are free; nothing is added yet.

        A node *like* another gets a copy of its CSINode, too, which has its volume limits.
        """
        like, listers = type_.like, self.cluster.listers
        if like:
            if like not in self.cluster.cache.table.row_of:
                raise QuestionError(f"{at}.like: {like!r}: there is no such node")
            model = without_condition(self._node(like))
        else:
            model = node(type_.manifest or {}, at=f"{at}.manifest")
        made = list(islice(nodes_called(model, taken=self.cluster.cache.table.row_of), count))
        drivers = listers.csi_nodes.get("", like) if like else None
        if drivers is not None:
            for each in made:
                meta = _replace(drivers.metadata, name=each.name)
                listers.csi_nodes.on_add(_replace(drivers, metadata=meta))
        return made

    def _node(self, name: str) -> Node:
        table = self.cluster.cache.table
        found = table.nodes[table.row_of[name]]
        assert found is not None, name
        return found

    def _chosen_nodes(self, choice: NodeChoice, *, at: str) -> list[str]:
        rows = self.cluster.cache.table.row_of
        for i, name in enumerate(choice.names):
            if name not in rows:
                raise QuestionError(f"{at}.names[{i}]: {name!r}: there is no such node")
        selected: Iterable[str] = ()
        if choice.selector:
            selector = _selector(choice.selector, at=at)
            selected = (name for name in rows if selector.matches(self._node(name).labels))
        return list(dict.fromkeys([*choice.names, *selected]))

    # Pods.

    def _remove_pods(self, choice: PodChoice) -> None:
        for key in self._chosen_pods(choice):
            self.forget(key)

    def forget(self, key: str) -> None:
        """Take a pod out of the cluster, bound or not; it is not placed either."""
        gone = self.cluster.pods.pop(key)
        if self.template_of.pop(key, None) is not None:
            self.asked = [info for info in self.asked if info.key != key]
        if self.cluster.cache.pod(gone.metadata.uid) is not None:
            self.cluster.cache.remove_pod(gone)
        else:
            self.cluster.end_nomination(PodInfo(gone))

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
                for key, each in pods.items()
                if choice.namespace in ("", each.metadata.namespace)
                and selector.matches(each.metadata.labels)
            ]
        return list(dict.fromkeys(keys))

    def _add_pods(self, question: Question) -> None:
        priorities = question.priority_classes
        for i, manifest in enumerate(question.pods):
            made = pod(manifest, at=f"pods[{i}]", priorities=priorities)
            if made.pods[0].key in self.cluster.pods:  # as if it were created anew
                self.forget(made.pods[0].key)
            self._take_in(made)
        left = MOST_PODS - len(question.pods)
        for i, asked in enumerate(question.templates):
            made = replicas(
                asked.manifest,
                asked.replicas,
                at=f"templates[{i}].manifest",
                priorities=priorities,
                taken=self.cluster.pods,
                most=left,
            )
            left -= len(made.pods)
            self._take_in(made)

    def _take_in(self, made: Made) -> None:
        for obj in made.objects:
            self.cluster.take_in(self._with_default_class(obj))
        for each in made.pods:
            self._ask_for(each, template=made.template)

    def _with_default_class(self, obj: KubeStruct) -> KubeStruct:
        """Let a claim without a class have the default one, as admission does."""
        if not isinstance(obj, PersistentVolumeClaim) or obj.spec.storage_class_name:
            return obj
        if BETA_CLASS in obj.metadata.annotations:
            return obj
        names = [
            each.metadata.name
            for each in self.cluster.listers.storage_classes
            if each.metadata.annotations.get(DEFAULT_CLASS) == "true"
        ]
        spec = _replace(obj.spec, storage_class_name=names[0] if names else "")
        return _replace(obj, spec=spec)

    def _ask_for(self, each: Pod, *, template: str) -> None:
        self.cluster.pods[each.key] = each
        self.template_of[each.key] = template
        self.asked.append(PodInfo(each))

    def _take_pending(self) -> None:
        asked = {info.key for info in self.asked}
        for key, each in self.cluster.pods.items():
            is_leaving = each.metadata.deletion_timestamp is not None
            if key in asked or each.spec.node_name or each.is_terminated or is_leaving:
                continue
            self.template_of[key] = _origin(each)
            self.pending.append(PodInfo(each))

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


def _unplaced(pod: Pod) -> Pod:
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
