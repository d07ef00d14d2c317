"""The pods of some rows of a table, which are copied only if somebody looks."""

from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any, overload

from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pods_of_rows import PodsByUid, PodsOfRows


class PodsOfPart(MutableSequence[PodsByUid]):
    """Per row of a part, its pods by uid.

    Most questions that are asked of a part are about columns. So the pods that come and go are
    only written down, and done when a row is looked at.
    """

    __slots__ = ("_changes", "_of_rows", "_of_whole", "_rows")

    def __init__(self, of_whole: Sequence[PodsByUid], rows: Sequence[int]) -> None:
        """*of_whole* must stay as it is until a row is looked at."""
        self._of_whole = of_whole
        self._rows = rows
        self._of_rows: list[PodsByUid] | None = None
        self._changes: list[tuple[Sequence[int], Sequence[PodInfo], int]] = []

    def change(
        self, rows: Sequence[int], pods: Sequence[PodInfo], *, sign: int
    ) -> Sequence[PodInfo]:
        """Add each of *pods* to its row, or take it off if *sign* is negative; return them."""
        self._changes.append((rows, pods, sign))
        return pods

    def to_change(self, row: int) -> PodsByUid:
        """Return the pods of *row* for the caller to change."""
        return self._up_to_date()[row]

    def copy(self) -> PodsOfRows:
        """Return a copy that stays as it is when this one changes."""
        twin = PodsOfRows()
        twin.extend(pods.copy() for pods in self)
        return twin

    def _up_to_date(self) -> list[PodsByUid]:
        if self._of_rows is None:
            self._of_rows = [dict(self._of_whole[row]) for row in self._rows]
        for rows, pods, sign in self._changes:
            for row, pod in zip(rows, pods, strict=True):
                if sign > 0:
                    self._of_rows[row][pod.uid] = pod
                else:
                    del self._of_rows[row][pod.uid]
        self._changes.clear()
        return self._of_rows

    def __len__(self) -> int:
        return len(self._rows if self._of_rows is None else self._of_rows)

    @overload
    def __getitem__(self, row: int) -> PodsByUid: ...
    @overload
    def __getitem__(self, row: slice) -> list[PodsByUid]: ...
    def __getitem__(self, row: Any) -> Any:
        return self._up_to_date()[row]

    def __setitem__(self, row: Any, pods: Any) -> None:
        self._up_to_date()[row] = pods

    def __delitem__(self, row: int | slice) -> None:
        del self._up_to_date()[row]

    def insert(self, row: int, pods: PodsByUid) -> None:
        self._up_to_date().insert(row, pods)

    def __iter__(self) -> Iterator[PodsByUid]:
        return iter(self._up_to_date())
