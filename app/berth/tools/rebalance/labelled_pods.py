"""Finds the pods that a selector matches without a look at all pods."""

from collections.abc import Iterable
from itertools import chain

from berth.kube.objects.selectors import Operator, Selector
from berth.scheduler.framework.pod_info import PodInfo


class LabelledPods:
    """Keys of pods by namespace and label; they may be gone meanwhile, for nobody removes one."""

    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._in_namespace: dict[str, set[str]] = {}
        self._with_label: dict[tuple[str, str, str], set[str]] = {}
        for pod in pods:
            self.add(pod)

    def add(self, pod: PodInfo) -> None:
        self._in_namespace.setdefault(pod.namespace, set()).add(pod.key)
        for key, value in pod.labels.items():
            self._with_label.setdefault((pod.namespace, key, value), set()).add(pod.key)

    def candidates(self, namespace: str, selector: Selector) -> Iterable[str]:
        """Return the keys of all pods that *selector* matches, and of as few others as can be."""
        if selector.is_nothing:
            return ()
        fewest = [self._in_namespace.get(namespace, set())]
        for wanted in selector.requirements:
            if wanted.operator is Operator.IN:
                found = [
                    self._with_label.get((namespace, wanted.key, value), set())
                    for value in wanted.values
                ]
                fewest = min(fewest, found, key=lambda sets: sum(map(len, sets)))
        return chain.from_iterable(fewest)
