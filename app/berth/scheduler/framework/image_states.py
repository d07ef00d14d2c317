"""Container images on nodes (spec §4.6)."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.node import ContainerImage
from berth.scheduler.framework.verdict import Ints


class ImageState:
    """One image name: its size and the rows that have it."""

    __slots__ = ("_index", "_rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        """Bytes, as the first node that reported the name said."""
        # Ascending. A set takes 25 times as much, and most of what there is to say of a node.
        self._rows = array("i")
        self._index: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int) -> None:
        """Have *row* among the rows."""
        rows = self._rows
        at = len(rows) if not rows or row > rows[-1] else bisect_left(rows, row)
        if at == len(rows) or rows[at] != row:
            rows.insert(at, row)
            self._index = None

    def discard(self, row: int) -> None:
        """Have *row* not among the rows."""
        rows = self._rows
        at = bisect_left(rows, row)
        if at < len(rows) and rows[at] == row:
            del rows[at]
            self._index = None

    def index(self) -> NDArray[np.intp]:
        """Return the rows as an array, kept until they change."""
        if self._index is None:
            self._index = np.array(self._rows, np.intp)
        return self._index


class ImageStates:
    """Image names to their states, over a whole table or, seen through rows, a part of one."""

    __slots__ = ("_rows", "_states")

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._rows: NDArray[np.intp] | None = None

    def set_row(
        self, row: int, old: Iterable[ContainerImage], new: Iterable[ContainerImage]
    ) -> None:
        """Replace what the node in *row* has; a name nobody has any more is forgotten."""
        if old is new:
            return
        after = {name: image.size_bytes for image in new for name in image.names}
        for image in old:
            for name in image.names:
                state = self._states.get(name)
                if state is not None and name not in after:
                    state.discard(row)
                    if not len(state):
                        del self._states[name]
        for name, size in after.items():
            state = self._states.get(name)
            if state is None:
                state = self._states[name] = ImageState(size)
            state.add(row)

    def add_scaled_sizes(self, name: str, total_nodes: int, onto: Ints) -> None:
        """Add the scaled size of image *name* to the rows of *onto* that have it.

        ``int(size * (nodes having it / total_nodes))``, in floats as kube-scheduler (spec §5.10).
        """
        state = self._states.get(name)
        if state is None:
            return
        scaled = int(float(state.size) * (len(state) / total_nodes))
        if self._rows is None:
            onto[state.index()] += scaled
        else:
            onto[np.flatnonzero(np.isin(self._rows, state.index()))] += scaled

    def take(self, rows: NDArray[np.intp]) -> "ImageStates":
        """Return the same states seen through *rows*; node counts stay those of the whole.

        Rows that come to the part later have no images.
        """
        part = ImageStates()
        part._states = self._states
        part._rows = rows if self._rows is None else self._rows[rows]
        return part
