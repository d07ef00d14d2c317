"""The pods of each row of a table, which copies of it share until they change."""

from collections.abc import Sequence

from berth.scheduler.framework.pod_info import PodInfo

PodsByUid = dict[str, PodInfo]


class PodsOfRows(list[PodsByUid]):
    """Per row, its pods by uid; to be changed by way of :meth:`to_change` only."""

    __slots__ = ("_is_shared",)

    def __init__(self) -> None:
        super().__init__()
        self._is_shared = bytearray()
        """By row, whether a copy has the same dict; further rows: no."""

    def copy(self) -> "PodsOfRows":
        """Return a copy that stays as it is when this one changes; a row is copied when it does."""
        twin = PodsOfRows()
        twin.extend(self)
        self._is_shared, twin._is_shared = (bytearray(b"\1") * len(self) for _ in range(2))
        return twin

    def to_change(self, row: int) -> PodsByUid:
        """Return the pods of *row* for the caller to change."""
        if row < len(self._is_shared) and self._is_shared[row]:
            self._is_shared[row] = False
            self[row] = self[row].copy()
        return self[row]

    def change(
        self, rows: Sequence[int], pods: Sequence[PodInfo], *, sign: int
    ) -> Sequence[PodInfo]:
        """Add each of *pods* to its row, or take it off if *sign* is negative.

        Return the pods that came or went; KeyError if one is not there.
        """
        if sign < 0:
            return [self.to_change(row).pop(pod.uid) for row, pod in zip(rows, pods, strict=True)]
        for row, pod in zip(rows, pods, strict=True):
            self.to_change(row)[pod.uid] = pod
        return pods
