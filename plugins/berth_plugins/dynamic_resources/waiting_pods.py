"""Waiting pods that an event about a ResourceClaim may help."""

from collections.abc import Hashable, Iterator
from typing import Final

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod_group import GroupKey, group_of
from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.key_index import Choices
from berth.scheduler.framework.pod_info import PodInfo


def _keys_of_pod(pod: PodInfo) -> Choices:
    return [tuple(_keys(pod))]


def _keys(pod: PodInfo) -> Iterator[Hashable]:
    """Yield the names of the claims of *pod*, and who may own those that are made from templates.

    Templates are made into claims later, and the status of the pod says then what they are called.
    """
    group = group_of(pod.pod)
    for reference in pod.pod.spec.resource_claims:
        if reference.resource_claim_name is not None:
            yield pod.namespace, reference.resource_claim_name
        else:
            yield pod.uid
            if group is not None:
                yield group


def _keys_of_event(old: ResourceClaim | None, new: ResourceClaim) -> list[Hashable] | None:
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return None  # devices became free
    namespace, owner = new.metadata.namespace, new.metadata.controller
    keys: list[Hashable] = [(namespace, new.metadata.name)]
    if owner is not None:
        keys += [owner.uid, GroupKey(namespace, owner.name)]
    return keys


CLAIM_INDEX: Final = HintIndex(_keys_of_pod, _keys_of_event)
"""Finds all pods if a claim was deallocated, else those that may mean the claim."""

COUNTED_CLAIM_INDEX: Final = HintIndex(_keys_of_pod, _keys_of_event, is_counted=True)
"""The same with SchedulerPreQueueingHints. berth asks about the same pods without the gate."""

PRE_QUEUEING_HINTS: Final = "SchedulerPreQueueingHints"
