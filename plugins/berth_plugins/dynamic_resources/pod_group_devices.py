"""PodGroupDevices: a group rather goes where fewer devices are left over.

Not a plugin of kube-scheduler, and off by default. There NodeResourcesFit compares placements by
cpu and memory (spec G10.5), although it is the GPUs of a rack that are scarce.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.devices import ALL, DeviceId, ResourceClaim
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import PlacementScorePlugin
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import PodGroupPlacement
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.class_devices import ClassDevices
from berth_plugins.dynamic_resources.group_claims import GroupClaims
from berth_plugins.dynamic_resources.resolution import UnresolvedError, claims_of
from berth_plugins.shared.device_classes import device_classes, may_be_device

Rows = NDArray[np.intp]


class PodGroupDevices(PlacementScorePlugin):
    """Scores a placement by how much of the devices there would be in use.

    Extended resources and device classes count that the pods of the group ask for: of each,
    ``min(requested, there) * 100 / there`` with the pods on their nodes; the score is the average,
    0 when they ask for none.
    """

    NAME = "PodGroupDevices"
    PREFERRED_PLACEMENT = "the one with less of its devices left over"

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("PodGroupDevices: needs a handle to look devices up")
        self._claims = handle.listers.shared(ResourceClaimTracker)
        self._classes = device_classes(handle)
        self._devices = ClassDevices(handle)
        self._groups = GroupClaims(handle)

    def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int:
        resources, classes = Counter[str](), Counter[str]()
        claims: dict[str, tuple[ResourceClaim, int]] = {}
        for pod, node_name in candidate.proposed:
            row = nodes.row_of[node_name]
            for name, amount in pod.template.incoming_requested.scalars.items():
                if not amount or not may_be_device(name):
                    continue
                device_class = self._classes.get_device_class(name)
                if device_class is None or NodeInfo(nodes, row).allocatable(name):
                    resources[name] += amount
                else:
                    classes[device_class.metadata.name] += amount
            claims |= {claim.metadata.uid: (claim, row) for claim in self._claims_of(pod)}
        for claim, row in claims.values():
            classes += self._asked_by(claim, nodes, row)
        rows = np.flatnonzero(candidate.placement.rows_of(nodes))
        shares = [
            *(
                self._share_of_resource(name, amount, nodes, rows)
                for name, amount in resources.items()
            ),
            *(self._share_of_class(name, amount, nodes, rows) for name, amount in classes.items()),
        ]
        return sum(shares) // len(shares) if shares else 0

    def _claims_of(self, pod: PodInfo) -> Iterator[ResourceClaim]:
        """Yield the claims that are to be allocated; pods of a group may share one."""
        try:
            claims = claims_of(pod.pod, self._claims, self._groups)
        except UnresolvedError:  # it was there a moment ago, in the trial
            return
        for claim, _ in claims:
            is_pending = self._claims.pending_allocation(claim.metadata.uid) is not None
            if claim.status.allocation is None and not is_pending:
                yield claim

    def _asked_by(self, claim: ResourceClaim, nodes: NodeTable, row: int) -> Counter[str]:
        """Return how many devices of which class *claim* asks for, by its first alternatives."""
        asked = Counter[str]()
        for request in claim.spec.devices.requests:
            wanted = request.exactly or next(iter(request.first_available), None)
            if wanted is None or wanted.admin_access:
                continue
            name = wanted.device_class_name
            asked[name] += (
                len(self._devices_on(name, nodes, row))
                if wanted.allocation_mode == ALL
                else max(wanted.count, 0)
            )
        return asked

    def _devices_on(self, class_name: str, nodes: NodeTable, row: int) -> tuple[DeviceId, ...]:
        device_class, node = self._classes.get(class_name), nodes.nodes[row]
        if device_class is None or node is None:
            return ()
        return self._devices.on_node(device_class, node)

    def _share_of_resource(self, name: str, wanted: int, nodes: NodeTable, rows: Rows) -> int:
        known = nodes.resource_rows(name)
        if known is None:
            return 0
        allocatable, used = known
        return _percent(wanted + sum(used[rows].tolist()), sum(allocatable[rows].tolist()))

    def _share_of_class(self, name: str, wanted: int, nodes: NodeTable, rows: Rows) -> int:
        """Count a device once that several nodes of the placement see."""
        there = {device for row in rows.tolist() for device in self._devices_on(name, nodes, row)}
        return _percent(wanted + sum(map(self._devices.is_allocated, there)), len(there))


def _percent(requested: int, there: int) -> int:
    return min(requested, there) * 100 // there if there else 0
