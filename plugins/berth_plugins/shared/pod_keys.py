"""Keys by which an event about a pod finds the waiting pods that look for such pods."""

from collections.abc import Collection, Hashable, Iterator

from berth.kube.objects.pod import Pod
from berth.kube.objects.selectors import Selector
from berth.scheduler.framework.key_index import Choices, label_choices

_ANY_NAMESPACE = None


def choices_for(namespaces: Collection[str] | None, selector: Selector) -> Choices:
    """Return how to file what looks for pods in *namespaces*, None: in all, by *selector*."""
    by_label = label_choices(selector)
    if namespaces is None:
        return [tuple((_ANY_NAMESPACE, *label) for label in labels) for labels in by_label]
    if not by_label:
        return [tuple(namespaces)]
    return [
        tuple((namespace, *label) for namespace in namespaces for label in labels)
        for labels in by_label
    ]


def keys_of(pod: Pod) -> Iterator[Hashable]:
    """Yield all keys that find what looks for *pod*."""
    namespace = pod.metadata.namespace
    yield namespace
    for label in pod.metadata.labels.items():
        yield (namespace, *label)
        yield (_ANY_NAMESPACE, *label)


def has_place(pod: Pod) -> bool:
    """Whether *pod* is on a node or nominated to one."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
