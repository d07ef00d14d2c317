"""Classes of pods that are known to fit nowhere, because one of them was just tried (§2.10, §3.5).

An answer holds while nothing that it depends on has changed. It is kept only while a pod of the
class waits for events, for these are how a change makes itself known; the first that moves any of
them ends it.
"""

from collections.abc import Container, Iterator

from berth.framework.pod_class import PodClass, class_of
from berth.framework.pod_info import QueuedPodInfo


class KnownClasses:
    """What the last attempt of each class came to; what that is, is for the scheduler to know."""

    def __init__(self, alike: Container[str]) -> None:
        """*alike* are the profiles that have classes at all."""
        self._alike = alike
        self._by_priority: dict[int, dict[PodClass, object]] = {}

    def class_of(self, queued: QueuedPodInfo) -> PodClass | None:
        """Return the class of a pod; None: it is like no other."""
        return class_of(queued.pod_info) if queued.pod.spec.scheduler_name in self._alike else None

    def learn(self, queued: QueuedPodInfo, answer: object) -> None:
        """Remember *answer* for the class of a pod that has just begun to wait for events."""
        pod_class = self.class_of(queued)
        if pod_class is not None:
            self._by_priority.setdefault(pod_class.priority, {})[pod_class] = answer

    def answer(self, queued: QueuedPodInfo) -> object | None:
        """Return what is known of the class of a pod."""
        if not self._by_priority:
            return None
        pod_class = self.class_of(queued)
        if pod_class is None:
            return None
        return self._by_priority.get(pod_class.priority, {}).get(pod_class)

    def forget(self, queued: QueuedPodInfo | None) -> None:
        """Have the next pod of this one's class tried."""
        if queued is not None and self._by_priority:
            pod_class = self.class_of(queued)
            if pod_class is not None:
                self.forget_class(pod_class)

    def forget_class(self, pod_class: PodClass) -> None:
        """Have the next pod of the class tried; unknown ones are fine."""
        if pod_class in self:
            same_priority = self._by_priority[pod_class.priority]
            del same_priority[pod_class]
            if not same_priority:
                del self._by_priority[pod_class.priority]

    def forget_above(self, priority: int) -> None:
        """Have all tried that may evict a pod of *priority*, which has just got a node."""
        for higher in [known for known in self._by_priority if known > priority]:
            del self._by_priority[higher]

    def __contains__(self, pod_class: PodClass) -> bool:
        return pod_class in self._by_priority.get(pod_class.priority, ())

    def __iter__(self) -> Iterator[PodClass]:
        for same_priority in self._by_priority.values():
            yield from same_priority

    def __bool__(self) -> bool:
        return bool(self._by_priority)
