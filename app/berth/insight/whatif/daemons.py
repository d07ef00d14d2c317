"""Pods of DaemonSets: which of them a node gets when it comes.

A DaemonSet is known by its manifest, or else by the pods that it runs: a scheduler watches pods,
not DaemonSets, and needs no right to read them. What pods do not tell is the node affinity of their
template, in whose place the DaemonSet controller writes the name of the node. So a node that is
like another gets the DaemonSets of that one; of any other node, nodeSelector and tolerations
decide.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from berth.kube.objects.daemons import daemon_tolerations
from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.node import Node
from berth.kube.objects.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PodStatus,
)
from berth.kube.objects.selectors import NAME_FIELD, required_node_affinity
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from berth.scheduler.framework.pod_info import PodInfo

DAEMON_SET: Final = "DaemonSet"
DAEMON_SET_VERSION: Final = "apps/v1"
DAEMON_SETS_PATH: Final = "/apis/apps/v1/daemonsets"

_replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet, as far as its pods go."""

    key: str
    """Its namespace/name."""
    pod: Pod
    """What its pods are like; nobody's name, no node."""
    models: frozenset[str] | None = None
    """If it is known by its pods alone: the nodes that have one."""

    def runs_on(self, node: Node, *, like: str = "", comparisons: bool = False) -> bool:
        """Whether *node* gets a pod, as NodeShouldRunDaemonPod decides it.

        *like*: the node which *node* is a copy of. *comparisons* as in
        :func:`berth.kube.objects.taints.tolerates`.
        """
        if like and self.models is not None:
            return like in self.models
        spec = self.pod.spec
        affinity = required_node_affinity(spec)
        if affinity is not None and not affinity.matches(node.labels, node.name):
            return False
        effects = (NO_SCHEDULE, NO_EXECUTE)
        taints, tolerations = node.spec.taints, spec.tolerations
        return untolerated(taints, tolerations, effects=effects, comparisons=comparisons) is None

    def pod_on(self, node: str, *, taken: Collection[str] = ()) -> Pod:
        """Return the pod for *node*, yet to be scheduled there; keys *taken* are not used."""
        return self._named(node, _only_on(self.pod.spec, node), taken)

    def running_on(self, node: str, *, taken: Collection[str] = ()) -> Pod:
        """Return the pod that runs on *node*."""
        return self._named(node, _replace(self.pod.spec, node_name=node), taken)

    def _named(self, node: str, spec: PodSpec, taken: Collection[str]) -> Pod:
        namespace, _, own = self.key.partition("/")
        name = f"{own}-{node}"
        while f"{namespace}/{name}" in taken:
            name += "-0"
        meta = _replace(self.pod.metadata, name=name, uid=f"what-if:{namespace}/{name}")
        return _replace(self.pod, metadata=meta, spec=spec)


def declared(key: str, template: Pod) -> DaemonSet:
    """Return the DaemonSet *key* whose pods are like *template*, as its controller makes them."""
    name = key.partition("/")[2]
    owner = OwnerReference("apps/v1", DAEMON_SET, name, f"what-if:{key}", controller=True)
    spec = template.spec
    added = daemon_tolerations(host_network=spec.host_network)
    spec = _replace(spec, tolerations=(*spec.tolerations, *added))
    meta = _replace(template.metadata, owner_references=(owner,))
    return DaemonSet(key, _replace(template, metadata=meta, spec=spec))


def by_their_pods(pods: Iterable[PodInfo]) -> dict[str, DaemonSet]:
    """Return the DaemonSets, by key, that the pods among *pods* belong to."""
    newest: dict[str, Pod] = {}
    nodes: dict[str, set[str]] = {}
    for info in pods:
        key = owner_of(info.pod)
        if not key:
            continue
        nodes.setdefault(key, set()).add(info.node_name)
        known = newest.get(key)
        if known is None or _created(known) < _created(info.pod):
            newest[key] = info.pod
    return {
        key: DaemonSet(key, _as_template(pod), frozenset(nodes[key])) for key, pod in newest.items()
    }


def owner_of(pod: Pod) -> str:
    """Return the namespace/name of the DaemonSet that *pod* belongs to, empty if it is none's."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != DAEMON_SET:
        return ""
    return f"{pod.metadata.namespace}/{owner.name}"


def _created(pod: Pod) -> str:
    return pod.metadata.creation_timestamp or ""


def _as_template(pod: Pod) -> Pod:
    """Return *pod* without what its controller, the scheduler and the kubelet have added."""
    spec, affinity = pod.spec, pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        node_affinity = _replace(affinity.node_affinity, required=None)
        affinity = _replace(affinity, node_affinity=node_affinity)
    meta = _replace(pod.metadata, deletion_timestamp=None)
    return Pod(meta, _replace(spec, node_name="", affinity=affinity), PodStatus(phase="Running"))


def _only_on(spec: PodSpec, node: str) -> PodSpec:
    """Let a pod go to *node* only, as ReplaceDaemonSetPodNodeNameNodeAffinity does."""
    here = NodeSelectorTerm(match_fields=(NodeSelectorRequirement(NAME_FIELD, "In", (node,)),))
    required = NodeSelector((here,))
    affinity = spec.affinity or Affinity()
    node_affinity = _replace(affinity.node_affinity or NodeAffinity(), required=required)
    return _replace(spec, affinity=_replace(affinity, node_affinity=node_affinity))
