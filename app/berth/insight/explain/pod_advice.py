"""Advice for a pod that PreFilter plugins reject whatever the nodes are like."""

import re
from collections.abc import Iterator
from typing import Final

from berth.scheduler.framework.pod_info import PodInfo

_ADVICE: Final = (
    (
        re.compile(r'^persistentvolumeclaim "([^"]+)" not found'),
        "create PersistentVolumeClaim {namespace}/{0}, or correct its name in spec.volumes",
    ),
    (
        re.compile(r'^persistentvolumeclaim "([^"]+)" is being deleted'),
        "wait until PersistentVolumeClaim {namespace}/{0} is gone, then create it again",
    ),
    (
        re.compile(r'bound to non-existent persistentvolume "([^"]+)"'),
        "create PersistentVolume {0} again, or delete the claim and create another",
    ),
    (
        re.compile("^pod has unbound immediate PersistentVolumeClaims"),
        "have the claim bound: create a PersistentVolume that matches it, look at its events if"
        " a provisioner should do so, or use a StorageClass with volumeBindingMode"
        " WaitForFirstConsumer",
    ),
    (
        re.compile(r'^could not find ResourceClaim "([^"]+)"'),
        "create ResourceClaim {0}, or correct its name in spec.resourceClaims",
    ),
    (
        re.compile(r'^resourceclaim "([^"]+)" is being deleted'),
        "wait until ResourceClaim {namespace}/{0} is gone, then create it again",
    ),
    (
        re.compile(r"device class (\S+) does not exist"),
        "create DeviceClass {0}, or name another one in the claim",
    ),
    (
        re.compile("^pod affinity terms conflict"),
        "change spec.affinity.nodeAffinity: no node has all the names that a term asks for",
    ),
)
"""By what plugins say, with the texts of kube-scheduler."""


def advice(reasons: tuple[str, ...], pod: PodInfo) -> Iterator[str]:
    """Yield what to do about *reasons* for which *pod* is rejected, as far as that is known."""
    for reason in reasons:
        for pattern, text in _ADVICE:
            if found := pattern.search(reason):
                yield text.format(*found.groups(), namespace=pod.namespace)
