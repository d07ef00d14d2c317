"""The waiting pods that one plugin rejected, and which of them an event may help."""

import logging
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.key_index import ANYWHERE, Choices, KeyIndex
from berth.scheduler.framework.pod_info import PodInfo

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)

Rejector = tuple[str, str]
"""Profile name and plugin name."""


class RejectedPods(Generic[T]):
    """Pods, or things that stand for several, filed as the indexes of the plugin's hints say."""

    def __init__(self, rejector: Rejector, indexes: Iterable[HintIndex]) -> None:
        self._rejector = rejector
        self._all: dict[T, None] = {}
        self._filed: dict[HintIndex, KeyIndex[T]] = {index: KeyIndex() for index in indexes}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, item: T, pod: PodInfo | None) -> None:
        """File *item* by the keys of *pod*; None: all events find it."""
        self._all[item] = None
        for index, filed in self._filed.items():
            filed.add(item, ANYWHERE if pod is None else self._keys_of_pod(index, pod))

    def remove(self, item: T) -> None:
        """Take *item* out; KeyError if it is not here."""
        del self._all[item]
        for filed in self._filed.values():
            filed.remove(item)

    def found_by(self, indexes: Iterable[HintIndex] | None, old: Any, new: Any) -> Iterable[T]:
        """Return what an event may help, on *old* and *new*, perhaps some of it repeatedly.

        *indexes* are those of the registrations for it; None: everything is to be asked about, as
        where there are others now than there were when pods began to wait.
        """
        if indexes is None:
            return self._all
        rejected: list[T] = []
        for index in indexes:
            try:
                keys, filed = index.keys_of_event(old, new), self._filed.get(index)
                if keys is None or filed is None:
                    return self._all
                rejected += filed.candidates(keys)
            except Exception:  # a bug in a plugin must not lose a pod: its hint is asked
                log.exception("no keys of an event", extra={"plugin": self._rejector[1]})
                return self._all
        return rejected

    def _keys_of_pod(self, index: HintIndex, pod: PodInfo) -> Choices:
        try:
            choices = [tuple(keys) for keys in index.keys_of_pod(pod)]
            hash(tuple(choices))
        except Exception:  # the same
            extra = {"plugin": self._rejector[1], "pod": pod.key}
            log.exception("no keys of a waiting pod", extra=extra)
            return ANYWHERE
        return choices
