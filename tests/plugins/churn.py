"""A cluster in which pods and nodes come, go and change, for plugins that keep their counts."""

from collections.abc import Sequence
from random import Random

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import HOSTNAME
from tests.plugins.evaluating import table


class Churn:
    """Starts with all *nodes* and without any of *pods*, which say on which nodes they are."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        self._all_nodes, self._all_pods = nodes, pods
        self._nodes = {node.name: node for node in nodes}
        self._pods: dict[str, Pod] = {}
        self.table = table(*nodes)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that there are."""
        return [*self._nodes.values()]

    @property
    def pods(self) -> list[Pod]:
        """The pods that run."""
        return [*self._pods.values()]

    def step(self, rng: Random) -> None:
        """Let one thing happen: mostly a pod comes, goes, or gets other labels."""
        happen = rng.choice([self._pod, self._pod, self._pod, self._pod, self._labels, self._node])
        happen(rng)

    def _pod(self, rng: Random) -> None:
        if not self._all_pods:
            return
        pod = rng.choice(self._all_pods)
        row = self.table.row_of.get(pod.spec.node_name)
        there = self._pods.pop(pod.metadata.uid, None)
        if row is None:
            return
        if there is None:
            self._pods[pod.metadata.uid] = pod
            self.table.add_pod(row, PodInfo(pod))
        else:
            self.table.remove_pod(row, PodInfo(there))

    def _labels(self, rng: Random) -> None:
        if not self._pods:
            return
        uid, pod = rng.choice([*self._pods.items()])
        labels = rng.choice(self._all_pods).metadata.labels
        metadata = msgspec.structs.replace(pod.metadata, labels=labels)
        self._pods[uid] = changed = msgspec.structs.replace(pod, metadata=metadata)
        self.table.update_pod(self.table.row_of[pod.spec.node_name], PodInfo(changed))

    def _node(self, rng: Random) -> None:
        node = rng.choice(self._all_nodes)
        row = self.table.row_of.get(node.name)
        if row is None:
            self.table.add_node(node)
            self._nodes[node.name] = node
        elif rng.random() < 0.5:
            other = rng.choice(self._all_nodes)
            host = {HOSTNAME: node.name} if HOSTNAME in node.metadata.labels else {}
            metadata = msgspec.structs.replace(
                node.metadata, labels={**other.metadata.labels, **host}
            )
            changed = msgspec.structs.replace(node, metadata=metadata, spec=other.spec)
            self.table.set_node(row, changed)
            self._nodes[node.name] = changed
        else:
            self.table.remove_node(row)
            del self._nodes[node.name]
            self._pods = {
                uid: pod for uid, pod in self._pods.items() if pod.spec.node_name != node.name
            }
