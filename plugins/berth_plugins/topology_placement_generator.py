"""TopologyPlacementGenerator: all pods of a group go to one domain of a topology (spec G10.4)."""

from collections.abc import Iterable, Sequence

import numpy as np

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from berth.scheduler.framework.interface import EnqueueExtensions, PlacementGeneratePlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import Placement
from berth.scheduler.framework.pod_groups import GROUPS_AS_ENTITIES
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status

DOMAIN: str = "cannot determine domain for already scheduled pods: "


class TopologyPlacementGenerator(PlacementGeneratePlugin, EnqueueExtensions):
    """One placement for each value of the label that the group's constraint names.

    Pods of the group that have nodes decide which one it is.
    """

    NAME = "TopologyPlacementGenerator"

    def placement_generate(
        self, group: PodGroup, scheduled: Iterable[PodInfo], parent: Placement, nodes: NodeTable
    ) -> Sequence[Placement] | Status:
        constraints = group.spec.scheduling_constraints
        if constraints is None or not constraints.topology:
            return [parent]
        key = constraints.topology[0].key
        required = _domain_of(scheduled, key, nodes)
        if isinstance(required, Status):
            return required
        rows: dict[str, list[int]] = {}
        for row in np.flatnonzero(parent.rows_of(nodes)).tolist():
            node = nodes.nodes[row]
            value = node.labels.get(key) if node is not None else None
            if value is not None and required in (None, value):
                rows.setdefault(value, []).append(row)
        return [Placement(value, _mask(nodes, rows[value])) for value in sorted(rows)]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return what may give a group another placement, where groups wait for events.

        Guess (1.37 spec N17 no. 9): else one that no node had the label for would wait for the next
        flush.
        """
        if self.handle is None or GROUPS_AS_ENTITIES not in self.handle.features:
            return ()
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, node)),
            ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE)),
        ]


def _domain_of(scheduled: Iterable[PodInfo], key: str, nodes: NodeTable) -> str | Status | None:
    """Return the value that all *scheduled* pods' nodes have; None without such pods."""
    domain: str | None = None
    for pod in scheduled:
        row = nodes.row_of.get(pod.node_name)
        node = nodes.nodes[row] if row is not None else None
        if node is None:
            why = f'nodeinfo not found for node name "{pod.node_name}"'
            return Status.error(f"{DOMAIN}getting node for pod {pod.key}: {why}")
        value = node.labels.get(key)
        if value is None:
            return Status.error(f"{DOMAIN}no topology domain found for pod {pod.key}")
        if domain not in (None, value):
            return Status.error(
                f"{DOMAIN}more than 1 domain found for pod group: {domain}, {value}"
            )
        domain = value
    return domain


def _mask(nodes: NodeTable, rows: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    mask = nodes.no_rows()
    mask[list(rows)] = True
    return mask
