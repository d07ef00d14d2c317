"""Pods that run, and wait for room on their node to be resized in place (1.37 spec N12.2).

With the feature gate they are in the scheduling queue, as pods without a node are, so that pods of
lower priority may be preempted for them::

    kubelet: PodResizePending, Deferred --> queue --> no room: preemption on the pod's node
                                             ^   \\--> room: refused by Permit, never bound
                                             |                    |
                                             +-- events there <---+--> kubelet resizes: it leaves

Those plugins have a part in it that say so in ``for_deferred_resizes``.
"""

from typing import Final

from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import is_resize_deferred
from berth.scheduler.config.feature_gates import IN_PLACE_RESIZE_PREEMPTION

RESIZES_PREEMPT: Final = IN_PLACE_RESIZE_PREEMPTION
"""The feature gate, for plugins."""


def waits_to_be_resized(pod: Pod) -> bool:
    """Tell whether *pod* has a node that it may preempt other pods on, to be resized there."""
    return bool(pod.spec.node_name) and is_resize_deferred(pod) and not _is_preemption_disabled(pod)


def _is_preemption_disabled(pod: Pod) -> bool:
    return any(
        condition.type == "PodResizePreemptionDisabled" and condition.status == "True"
        for condition in pod.status.conditions
    )
