"""A verdict on rows that are looked at one by one."""

from typing import Final

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.verdict import Mask, Rejection, Verdict

UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class RowRejections:
    """A verdict in the making: which rows are left, and why the others are not."""

    __slots__ = ("_rejected", "left", "nodes")

    def __init__(self, nodes: NodeTable, rows: Mask) -> None:
        self.nodes = nodes
        self.left = rows.copy()
        self._rejected: dict[tuple[str, Code], Mask] = {}

    def reject(self, reason: str, where: Mask, code: Code = UNRESOLVABLE) -> None:
        """Reject rows *where*, if any; by default evicting pods cannot change the reason."""
        if not where.any():
            return
        known = self._rejected.get((reason, code))
        self._rejected[reason, code] = where if known is None else known | where
        self.left = self.left & ~where

    def reject_row(self, row: int, reason: str, code: Code = UNRESOLVABLE) -> None:
        where = self._rejected.get((reason, code))
        if where is None:
            where = self._rejected[reason, code] = self.nodes.no_rows()
        where[row] = True
        self.left[row] = False

    def verdict(self) -> Verdict:
        return Verdict(
            tuple(
                Rejection(reason, code, where) for (reason, code), where in self._rejected.items()
            )
        )
