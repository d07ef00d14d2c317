"""NodePorts: two pods cannot have the same host port of a node."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

from berth.kube.objects.host_ports import HostPort, conflicts, host_ports
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Explains, SummingUp, SumsUp
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import PASS, Mask, Verdict
from berth.scheduler.framework.words import counted, listed
from berth_plugins.shared.pod_keys import has_place

PORTS_TAKEN: Final = Status.unschedulable(
    "node(s) didn't have free ports for the requested pod ports"
)


class NodePorts(PreFilterPlugin, FilterPlugin, EnqueueExtensions, Explains, SumsUp):
    """Rejects nodes where a host port of the pod is in use (spec §4.5, §5.7).

    The address 0.0.0.0, which an absent hostIP means, conflicts with every other.
    """

    NAME = "NodePorts"
    WITHOUT_PRE_FILTER = 'reading "PreFilterNodePorts" from cycleState: not found'
    DECIDES_BY_SIGNATURE = True

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return None if pod.template.host_ports else EMPTY_FRAGMENT

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None if pod.template.host_ports else SKIP

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        where: Mask | None = None
        for wanted in pod.template.host_ports:
            taken = nodes.ports.taken(wanted, nodes.size)
            if taken is not None:
                where = taken if where is None else where | taken
        return PASS if where is None else Verdict.reject(PORTS_TAKEN, where=where)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        for wanted in pod.template.host_ports:
            name = f"{wanted.port}/{wanted.protocol}"
            for holder in nodes.pods[row].values():
                if conflicts([wanted], holder.template.host_ports):
                    change = Change(
                        kind=ChangeKind.FREE_PORT,
                        what=name,
                        words=f"free port {name}, which {holder.key} has, or use another",
                    )
                    yield Detail(f"port {name} is taken by {holder.key}", change)

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell who has the ports."""
        clauses = []
        for wanted in pod.template.host_ports:
            holders: list[str] = []
            taken = 0
            for row in sorted(nodes.ports.users(wanted.protocol, wanted.port)):
                users = [
                    holder.key
                    for holder in (nodes.pods[row].values() if where[row] else ())
                    if conflicts([wanted], holder.template.host_ports)
                ]
                holders += users
                taken += bool(users)
                yield
            if taken:
                port = f"port {wanted.port}/{wanted.protocol}"
                clauses.append(f"{port} is taken on {counted(taken, 'node')} by {listed(holders)}")
        return "; ".join(clauses)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return [
            ClusterEventWithHint(pod_gone, after_pod_deletion, (PORT_INDEX,)),
            ClusterEventWithHint(NODE_ADD),
        ]


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Queue if the deleted pod had a place, and ports that this pod wants."""
    freed = has_place(old) and conflicts(host_ports(pod), host_ports(old))
    return QueueingHint.QUEUE if freed else QueueingHint.SKIP


def _keys(ports: Iterable[HostPort]) -> tuple[Hashable, ...]:
    """Return *ports* without their addresses, of which one stands for all."""
    return tuple((port.protocol, port.port) for port in ports)


PORT_INDEX: Final = HintIndex(
    lambda pod: [_keys(pod.template.host_ports)],
    lambda old, _new: _keys(host_ports(old)) if has_place(old) else (),
)
