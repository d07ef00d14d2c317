"""NodeDeclaredFeatures: a pod that needs a feature runs where the kubelet declares it."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.release import Behaviour
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import Verdict

NOT_DECLARED: Final = Status.unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
VOLUME_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

INFERS_BIND_MOUNT_OPTIONS: Final = Behaviour(
    "1.37",
    "N3.14",
    "A pod with bindMountOptions needs a node that declares VolumeBindMountOptions.",
)


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Rejects nodes that do not declare every feature the pod needs (spec §5.18; 1.37: N3.14)."""

    NAME = "NodeDeclaredFeatures"
    WITHOUT_PRE_FILTER = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    DECIDES_BY_SIGNATURE = True

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._is_known = handle is None or INFERS_BIND_MOUNT_OPTIONS in handle.features

    def _required(self, pod: PodInfo) -> frozenset[str]:
        return pod.template.memo("required features", lambda: self._known(pod.pod))

    def _known(self, pod: Pod) -> frozenset[str]:
        required = required_features(pod)
        return required if self._is_known else required - {VOLUME_BIND_MOUNT_OPTIONS}

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return None if self._required(pod) else EMPTY_FRAGMENT

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None if self._required(pod) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        required = self._required(pod)
        # Few pods need features and few sets of them are about: no column is kept for that.
        declared = [node.status.declared_features if node else () for node in nodes.nodes]
        lacks = {features: not required.issubset(features) for features in set(declared)}
        where = np.fromiter((lacks[features] for features in declared), bool, nodes.size)
        return Verdict.reject(NOT_DECLARED, where=where)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        on_node = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, on_node), after_node_change),
            ClusterEventWithHint(
                ClusterEvent(EventResource.POD, ActionType.UPDATE), after_pod_update
            ),
        ]


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features a node must declare for *pod*."""
    return frozenset(_inferred(pod))


def _inferred(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        yield RESTART_ALL_CONTAINERS
    if spec.host_network and spec.host_users is False:
        yield USER_NAMESPACES_HOST_NETWORK
    if any(mount.bind_mount_options for mount in spec.volume_mounts):
        yield VOLUME_BIND_MOUNT_OPTIONS


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    """Queue if the node is new or declares other features than before."""
    same = old is not None and old.status.declared_features == new.status.declared_features
    return QueueingHint.SKIP if same else QueueingHint.QUEUE


def after_pod_update(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    """Queue if it is this pod and it needs other features than before."""
    if new.metadata.uid != pod.metadata.uid:
        return QueueingHint.SKIP
    return (
        QueueingHint.SKIP
        if required_features(old) == required_features(new)
        else QueueingHint.QUEUE
    )
