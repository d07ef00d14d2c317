"""A snapshot of a running scheduler."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod
from berth.runtime.clock import rfc3339
from berth.runtime.tasks import Steps, at_once, step_by_step
from berth.scheduler.config.configz import to_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.core.scheduler_state import taking_state
from berth.scheduler.framework.pod_info import PodInfo

STEPS_PER_TURN: Final = 1_000


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
        """Return the state of this moment; objects are shared, for they do not change.

        A pod that was given a node is told to be there, also while it is being bound; a waiting one
        is nominated to what the scheduler thinks. Volumes and claims are as the API last told them,
        without what is being written about them at this moment.
        """
        return at_once(self._taking())

    async def take_in_turns(self) -> Snapshot:
        """Do the same in turns with others on the event loop.

        What changes is kept in the first turn, which takes 15 ms for 10,000 waiting pods and as
        many others.
        """
        return await step_by_step(self._taking(), per_turn=STEPS_PER_TURN)

    def _taking(self) -> Steps[Snapshot]:
        """Return the state of the moment of the first step; each further one is for a pod."""
        watched = [*self._pods.values()]  # first: the scheduler is told of what was put off
        self._cache.refresh_order()
        table, outside = self._cache.table, self.core.outside
        nodes = [table.nodes[row] for row in table.order.tolist()]
        placed = self._in_order()
        nominated = self.core.queue.nominator.nominated_nodes()
        listed = {kind.name: list(lister) for kind, lister in outside.listers.by_kind().items()}
        configuration, annotations = self._configuration(), self.core.live.annotations
        taking_state_of = taking_state(self.core)
        next(taking_state_of)
        yield
        pods: list[Pod] = []
        for info in placed:
            pod = info.pod
            pods.append(pod if pod.spec.node_name else pod.assigned_to(info.node_name))
            yield
        counted = {info.uid for info in placed}
        for pod in watched:
            if not pod.spec.node_name and pod.metadata.uid not in counted:
                pods.append(_nominated(pod, nominated.get(pod.metadata.uid, "")))
            yield
        objects: dict[str, Sequence[KubeStruct]] = {
            "Node": [node for node in nodes if node is not None],
            "Pod": pods,
            **{name: others for name, others in listed.items() if others},
        }
        state = yield from taking_state_of
        return Snapshot(
            rfc3339(state.now),
            configuration,
            objects,
            listers=type(outside.listers),
            scheduler=state,
            annotations=annotations,
        )

    def _configuration(self) -> dict[str, Any]:
        current = self.core.live.current
        if self._config is None or self._config[0] is not current:
            # Extenders are not asked what if.
            self._config = current, to_object(current) | {"extenders": []}
        return self._config[1]

    def _in_order(self) -> list[PodInfo]:
        """Return the pods that count, those of one node in the order in which they came there."""
        table = self._cache.table
        placed = [pod for row in table.order.tolist() for pod in table.pods[row].values()]
        if self._cache.counts()["nodes"] > len(table):  # there are nodes that are not known
            placed += (pod for pod in self._cache.pods() if pod.node_name not in table.row_of)
        return placed


def _nominated(pod: Pod, node: str) -> Pod:
    if pod.status.nominated_node_name == node:
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)
