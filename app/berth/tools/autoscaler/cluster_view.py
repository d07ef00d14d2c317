"""The cluster as one scan sees it: the snapshot, and what the autoscaler asks of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import msgspec

from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.policy import PodDisruptionBudget

MIRROR: Final = "kubernetes.io/config.mirror"


class EmptyDir(KubeStruct, frozen=True, gc=False):
    medium: str = ""


class LocalVolume(KubeStruct, frozen=True, gc=False):
    """A volume, as far as it is on the node itself."""

    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: dict[str, str] | None = None


class DrainSpec(KubeStruct, frozen=True, gc=False):
    volumes: tuple[LocalVolume, ...] = ()
    termination_grace_period_seconds: int | None = None


class DrainPod(KubeStruct, frozen=True, gc=False):
    """What a drain asks of a pod that scheduling does not."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DrainSpec = DrainSpec()


decode_drain_pod = msgspec.json.Decoder(DrainPod).decode

UNKNOWN: Final = DrainPod()


@dataclass(frozen=True)
class ClusterView:
    """The cluster at one moment."""

    snapshot: Snapshot
    drain_pods: Mapping[str, DrainPod] = field(default_factory=dict)
    """By key. One that is missing has no local storage and the default grace period."""

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        nodes = self.snapshot.objects.get("Node", ())
        return {obj.name: obj for obj in nodes if isinstance(obj, Node)}

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """Pods that have not finished, by key."""
        pods = self.snapshot.objects.get("Pod", ())
        return {obj.key: obj for obj in pods if isinstance(obj, Pod) and not obj.is_terminated}

    @cached_property
    def pods_on(self) -> Mapping[str, list[Pod]]:
        """By node."""
        by_node: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.spec.node_name:
                by_node.setdefault(pod.spec.node_name, []).append(pod)
        return by_node

    @cached_property
    def state(self) -> object:
        """What changes when pods may fit that did not, or fit no more.

        Bound and waiting pods, nodes as they are specified, and what budgets allow.
        """
        budgets = self.snapshot.objects.get("PodDisruptionBudget", ())
        return (
            frozenset((pod.metadata.uid, pod.spec.node_name) for pod in self.pods.values()),
            frozenset(map(node_state, self.nodes.values())),
            frozenset(
                (budget.metadata.uid, budget.status.disruptions_allowed)
                for budget in budgets
                if isinstance(budget, PodDisruptionBudget)
            ),
        )

    def drain_pod(self, key: str) -> DrainPod:
        return self.drain_pods.get(key, UNKNOWN)


def node_state(node: Node) -> object:
    """Return what decides about who may run on *node*."""
    return (
        node.metadata.uid,
        node.spec.unschedulable,
        node.spec.taints,
        tuple(sorted(node.labels.items())),
        tuple(sorted((name, str(amount)) for name, amount in node.status.allocatable.items())),
    )


def is_ready(node: Node) -> bool:
    """Whether the condition Ready of *node* is true; a node without conditions counts as ready."""
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    return not ready or ready[0] == "True"


def is_mirror(pod: Pod) -> bool:
    """Whether the kubelet made *pod* of a file of its own."""
    return MIRROR in pod.metadata.annotations
