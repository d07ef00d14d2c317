"""Results of allocations, in the words of a claim's status."""

import random
import uuid
from typing import Any, Final

from berth.kube.objects.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from berth.kube.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from berth.kube.objects.selectors import NAME_FIELD
from berth_plugins.dynamic_resources.capacity import canonical
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import ClaimRequests, Request
from berth_plugins.dynamic_resources.search_result import ClaimPicks, Pick

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"

Config = dict[str, Any]


def allocation_of(
    claim: ClaimRequests,
    picks: ClaimPicks,
    *,
    node_name: str,
    rng: random.Random,
    timestamp: str | None,
    features: Features = DEFAULT,
) -> AllocationResult:
    """Return the allocation of *claim* to write; *rng* names the shares of devices."""
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(pick, rng, features) for pick in picks.picks),
            config=tuple(_config(claim, picks, is_short=features.short_config)),
        ),
        node_selector=_node_selector(picks, node_name),
        allocation_timestamp=timestamp,
    )


def _result(pick: Pick, rng: random.Random, features: Features) -> DeviceRequestAllocationResult:
    id_, device = pick.found.id, pick.found.device
    return DeviceRequestAllocationResult(
        request=str(pick.request.name),
        driver=id_.driver,
        pool=id_.pool,
        device=id_.device,
        admin_access=True if pick.request.has_admin_access else None,
        tolerations=pick.request.written.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None
        if pick.share is None
        else str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        consumed_capacity={
            name: canonical(amount) for name, amount in sorted((pick.share or {}).items())
        },
        skip_node_operations=(
            pick.found.slice.spec.skip_node_operations if features.optional_node_operations else ()
        ),
        compatibility_groups=({**pick.found.groups} if features.compatibility_groups else {}),
    )


def _config(claim: ClaimRequests, picks: ClaimPicks, *, is_short: bool) -> list[Config]:
    """Collect the classes' parameters for drivers, each class once, then the claim's own.

    ``requests`` says what those of a class are for, and those of the claim as it has it: without
    they are for all. What is for all has none if the result *is_short*; if it is not, as in 1.36,
    parameters of the claim are repeated for every request that they are for (1.37 spec N4.5).
    """
    requests = [
        alternatives[index]
        for alternatives, index in zip(claim.requests, picks.chosen, strict=True)
    ]
    users: dict[str, list[str]] = {}
    for request in requests:
        users.setdefault(request.device_class.metadata.name, []).append(str(request.name))
    classes = {request.device_class.metadata.name: request.device_class for request in requests}
    config = [
        {**written, "source": FROM_CLASS, "requests": list(users[name])}
        for name, device_class in classes.items()
        for written in device_class.spec.config
    ]
    for written in claim.claim.spec.devices.config:
        names = written.get("requests") or []
        times = sum(request.name.is_in(names) for request in requests) if names else 1
        config += [{**written, "source": FROM_CLAIM}] * (min(times, 1) if is_short else times)
    return [_shortened(one, requests) for one in config] if is_short else config


def _shortened(config: Config, requests: list[Request]) -> Config:
    """Leave out for which of *requests* that is, where it is for all."""
    names = config.get("requests") or ()
    if all(request.name.is_in(names) for request in requests):
        return {key: value for key, value in config.items() if key != "requests"}
    return config


def _node_selector(picks: ClaimPicks, node_name: str) -> NodeSelector | None:
    """Return where the devices can be used; None is everywhere."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for pick in picks.picks:
        device, spec = pick.found.device, pick.found.slice.spec
        place = device if spec.per_device_node_selection else spec
        if place.node_name or device.binds_to_node:
            here = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        for term in place.node_selector.node_selector_terms if place.node_selector else ():
            _add_new(fields, term.match_fields)
            _add_new(labels, term.match_expressions)
    if not fields and not labels:
        return None
    merged = NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(merged,))


def _add_new(
    known: list[NodeSelectorRequirement], more: tuple[NodeSelectorRequirement, ...]
) -> None:
    for requirement in more:
        if not any(_is_same(requirement, other) for other in known):
            known.append(requirement)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and set(one.values) == set(other.values)
    )
