"""A snapshot of a running scheduler."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod
from berth.runtime.clock import rfc3339
from berth.scheduler.config.configz import to_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.core.scheduler_state import state_of
from berth.scheduler.framework.pod_info import PodInfo


class LiveSnapshots:
    """Takes snapshots of a scheduler's state; to be used on its event loop only."""

    def __init__(self, core: SchedulerCore, pods: Mapping[str, Pod] | None = None) -> None:
        """*pods* are all there are, if *core* may be behind until somebody looks at these."""
        self.core = core
        self._pods = core.outside.pods if pods is None else pods
        self._cache = core.cache
        self._config: tuple[KubeSchedulerConfiguration, dict[str, Any]] | None = None
        """The configuration of the last snapshot, and how a snapshot has it."""

    def take(self) -> Snapshot:
        """Return the state of this moment, in one go; objects are shared, for they do not change.

        Takes 40 ms for 50,000 pods, all of which must be looked at.

        A pod that was given a node is told to be there, also while it is being bound; a waiting one
        is nominated to what the scheduler thinks. Volumes and claims are as the API last told them,
        without what is being written about them at this moment.
        """
        unbound = [pod for pod in self._pods.values() if not pod.spec.node_name]
        self._cache.refresh_order()
        table = self._cache.table
        nodes = [table.nodes[row] for row in table.order.tolist()]
        objects: dict[str, list[KubeStruct]] = {
            "Node": [node for node in nodes if node is not None],
            "Pod": [
                info.pod if info.pod.spec.node_name else info.pod.assigned_to(info.node_name)
                for info in self._in_order()
            ],
        }
        objects["Pod"] += (
            self._nominated(pod) for pod in unbound if self._cache.pod(pod.metadata.uid) is None
        )
        for kind, lister in self.core.outside.listers.by_kind().items():
            if listed := list(lister):
                objects[kind.name] = listed
        listers = type(self.core.outside.listers)
        state = state_of(self.core)
        return Snapshot(
            rfc3339(state.now),
            self._configuration(),
            objects,
            listers=listers,
            scheduler=state,
            annotations=self.core.live.annotations,
        )

    def _configuration(self) -> dict[str, Any]:
        current = self.core.live.current
        if self._config is None or self._config[0] is not current:
            # Extenders are not asked what if.
            self._config = current, to_object(current) | {"extenders": []}
        return self._config[1]

    def _in_order(self) -> Iterator[PodInfo]:
        """Yield the pods that count, those of one node in the order in which they came there."""
        table = self._cache.table
        yield from chain.from_iterable(table.pods[row].values() for row in table.order.tolist())
        if self._cache.counts()["nodes"] > len(table):  # there are nodes that are not known
            yield from (pod for pod in self._cache.pods() if pod.node_name not in table.row_of)

    def _nominated(self, pod: Pod) -> Pod:
        node = self.core.queue.nominator.nominated_node(pod.metadata.uid) or ""
        if pod.status.nominated_node_name == node:
            return pod
        status = msgspec.structs.replace(pod.status, nominated_node_name=node)
        return msgspec.structs.replace(pod, status=status)
