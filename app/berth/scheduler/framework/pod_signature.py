"""Pods of the same signature: what was found out about one of them holds for all."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import msgspec

from berth.scheduler.framework.interface import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate, facts_without_requests

_DECIDERS = (PreFilterPlugin, FilterPlugin, PostFilterPlugin, ReservePlugin, PermitPlugin)


class PodSignature(NamedTuple):
    """All that decides about a pod, for plugins that decide by signature.

    Namespace and labels are in the template.
    """

    template: PodTemplate
    profile: str
    priority: int
    preemption_policy: str | None
    owner: str
    """UID of its controller, on which default topology spread constraints may depend."""


def signature_of(pod: PodInfo) -> PodSignature | None:
    """Return the signature of *pod*; None if something of its own has a part in where it may go.

    That is a nomination, a resource claim, a volume that a plugin looks at, or a group; or it runs,
    and waits to be resized.
    """
    return None if pod.pod.spec.scheduling_group is not None else signature_in_group(pod)


def signature_in_group(pod: PodInfo) -> PodSignature | None:
    """Return the same for a pod that is compared with others of its group only."""
    status = pod.pod.status
    return None if status.nominated_node_name or pod.template.volumes else _signature(pod)


def signature_for_hints(pod: PodInfo) -> PodSignature | None:
    """Return what hints go by, which look at no nomination; None as in :func:`signature_of`.

    Only for hints of plugins that do not go by volumes: pods of a template have their own claims.
    """
    return None if pod.pod.spec.scheduling_group is not None else _signature(pod)


def _signature(pod: PodInfo) -> PodSignature | None:
    spec, status, template = pod.pod.spec, pod.pod.status, pod.template
    if status.extended_resource_claim_status is not None or spec.resource_claims:
        return None
    if spec.node_name:
        return None
    owner = ""
    for reference in pod.pod.metadata.owner_references:
        if reference.controller:
            owner = reference.uid
    return PodSignature(template, spec.scheduler_name, pod.priority, spec.preemption_policy, owner)


class Requests(msgspec.Struct, frozen=True):
    """What the containers of a pod request; compared in each resource, a partial order."""

    milli_cpu: int
    memory: int
    ephemeral_storage: int

    def __le__(self, other: "Requests") -> bool:
        """Whether *other* has no less of any resource."""
        return (
            self.milli_cpu <= other.milli_cpu
            and self.memory <= other.memory
            and self.ephemeral_storage <= other.ephemeral_storage
        )


class Demand(NamedTuple):
    """A signature, taken apart."""

    requests: Requests
    of: Hashable
    """All else. Of two pods that have it in common, the one that requests more fits nowhere if the
    other does not, whoever is evicted."""


def demand_of(signature: PodSignature) -> Demand | None:
    """Take *signature* apart; None if it requests something but CPU, memory and storage.

    Of those, devices may have to be found for each container.
    """
    known = signature.template.memo(demand_of, lambda: _demand_of(signature.template))
    return None if known is None else Demand(known[0], (known[1], *signature[1:]))


def _demand_of(template: PodTemplate) -> tuple[Requests, bytes] | None:
    amounts = template.incoming_requested
    if amounts.scalars:
        return None
    requests = Requests(amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage)
    return requests, facts_without_requests(template.pod)


def decide_by_signature(plugins: Iterable[Plugin]) -> bool:
    """Whether all of *plugins* that may reject a pod decide by its signature alone."""
    return all(plugin.DECIDES_BY_SIGNATURE for plugin in plugins if isinstance(plugin, _DECIDERS))
