"""Rows of a table with an answer that still holds."""

from collections.abc import Iterable

import numpy as np

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Mask
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.pools import PoolId, ResourcePools
from berth_plugins.dynamic_resources.search_result import ClaimPicks


class CachedRows:
    """What was found for one question on the rows of one table, as far as it still holds.

    It holds until the node changes, sees other pools, or devices of a pool that it sees come to
    somebody or become free. Whatever pods do beside that does not matter; to be simple, a row whose
    pods change is asked about again.
    """

    def __init__(self, nodes: NodeTable, pools: ResourcePools, in_use: AllocatedDevices) -> None:
        self._pools = pools
        self._in_use = in_use
        self._forget_all(nodes)

    def _forget_all(self, nodes: NodeTable) -> None:
        self.known, self.fits = nodes.no_rows(), nodes.no_rows()
        self.picks: dict[str, tuple[ClaimPicks, ...]] = {}
        """By node name, of the rows that fit."""
        self._names: dict[int, str] = {}
        self._remember_versions(nodes)

    def _remember_versions(self, nodes: NodeTable) -> None:
        self._generation = nodes.last_generation
        self._pools_version = self._pools.changes.version
        self._in_use_version = self._in_use.changes.version

    @property
    def refused(self) -> Mask:
        return self.known & ~self.fits

    def note(self, row: int, name: str, picks: tuple[ClaimPicks, ...] | None) -> None:
        """Remember what was found on the node *name* in *row*."""
        self.known[row] = True
        if picks is not None:
            self.fits[row] = True
            self.picks[name], self._names[row] = picks, name

    def refresh(self, nodes: NodeTable) -> None:
        """Forget what may not hold any more; *nodes* is the same table each time."""
        if added := nodes.size - len(self.known):
            self.known = np.concatenate((self.known, np.zeros(added, bool)))
            self.fits = np.concatenate((self.fits, np.zeros(added, bool)))
        names = self._changed_nodes()
        if names is None:
            self._forget_all(nodes)
            return
        self._forget(nodes.rows_changed_since(self._generation))
        self._forget(row for name in names if (row := nodes.row_of.get(name)) is not None)
        self._remember_versions(nodes)

    def _changed_nodes(self) -> set[str] | None:
        """Return which nodes see other pools or devices than before; None: maybe all."""
        changed = self._pools.changes.since(self._pools_version)
        pools = self._in_use.changes.since(self._in_use_version)
        if changed is None or pools is None:
            return None
        names = set[str]()
        for some in (*changed, *(self._pools.nodes_of(PoolId(*id_)) for id_ in pools)):
            if some is None:
                return None
            names |= some
        return names

    def _forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            self.known[row] = self.fits[row] = False
            name = self._names.pop(row, None)
            if name is not None:
                del self.picks[name]
