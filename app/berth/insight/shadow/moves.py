"""Recent moves in the cluster, and the cluster as it was before.

The other scheduler decided on an earlier state than the one in which its binding, or its failure,
is seen: pods have left since, others came with a node, nodes were changed.
"""

from collections import deque
from collections.abc import Generator
from contextlib import ExitStack
from typing import Final, NamedTuple

from berth.insight.shadow.changes import Change
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.pod_info import PodInfo

LONGEST: Final = 2.0
"""Seconds from a decision to its binding."""
MOST: Final = 200
"""Moves that are kept."""
STEPS: Final = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128})
"""How many moves back a pod is decided once more, beside all."""


class Move(NamedTuple):
    """A change that the other scheduler may not have known of."""

    change: Change
    at: float
    """When it was received, on the monotonic clock."""


class Moves:
    """The last moves; bindings by the other scheduler are none."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._moves: deque[Move] = deque(maxlen=MOST)

    def took_in(self, change: Change, at: float) -> None:
        """Take note of a *change* that the cache knows since now, if it is a move."""
        if _is_move(change):
            self._moves.append(Move(change, at))

    def undone(self, since: float) -> Generator[int, None, None]:
        """Undo the moves *since* a moment, the last one first; yield after some how many they are.

        The cache is as it was while this is not resumed; all is done again when it ends or is
        closed. Nothing may be awaited meanwhile.
        """
        with ExitStack() as redo:
            moves = [move for move in reversed(self._moves) if move.at >= since]
            for number, move in enumerate(moves, start=1):
                self._undo(move.change, redo)
                if number in STEPS or number == len(moves):
                    yield number

    def _undo(self, change: Change, redo: ExitStack) -> None:
        cache, old, new = self._cache, change.old, change.new
        if isinstance(old or new, Pod):
            self._undo_pod(old, new, redo)
        elif old is None:
            if new.name in cache.table.row_of:
                current = cache.table.nodes[cache.table.row_of[new.name]]
                assert current is not None
                cache.remove_node(new.name)
                redo.callback(cache.add_node, current)
        elif new is None:
            if old.name not in cache.table.row_of:
                cache.add_node(old)
                redo.callback(cache.remove_node, old.name)
        elif old.name in cache.table.row_of:
            current = cache.table.nodes[cache.table.row_of[old.name]]
            assert current is not None
            cache.update_node(old)
            redo.callback(cache.update_node, current)

    def _undo_pod(self, old: Pod | None, new: Pod | None, redo: ExitStack) -> None:
        known = self._cache.pod((old or new).metadata.uid)  # type: ignore[union-attr]  # one is there
        if old is not None:  # it left
            if known is None:
                info = PodInfo(old)
                self._cache.assume_pod(info)
                redo.callback(self._cache.forget_pod, info)
        elif known is not None:
            self._cache.remove_pod(known.pod)
            redo.callback(self._cache.add_pod, known)


def _is_move(change: Change) -> bool:
    match change.old, change.new:
        case Pod() as old, None:
            return bool(old.spec.node_name)
        case Pod() as old, Pod() as new:
            return bool(old.spec.node_name) and new.is_terminated and not old.is_terminated
        case None, Pod() as new:
            return bool(new.spec.node_name)
        case Node() as old, Node() as new:
            return _decides(old) != _decides(new)
        case (Node(), None) | (None, Node()):
            return True
        case _:
            return False


def _decides(node: Node) -> tuple[object, ...]:
    """Return what of *node* a decision may follow from: not the heartbeats."""
    status = node.status
    return node.labels, node.spec, status.allocatable, status.images, status.declared_features
