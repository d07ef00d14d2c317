"""Devices, claims and classes in one line, as ``tests.builders`` does it for other objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from berth.kube.objects.devices import (
    ALL,
    EXACT_COUNT,
    AllocatedDeviceStatus,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceCondition,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from berth.kube.objects.meta import ObjectMeta, OwnerReference
from berth.kube.objects.node import Taint
from berth.kube.objects.pod import (
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.selectors import NAME_FIELD
from berth.scheduler.framework.listers import Listers
from tests.builders import requirement, term

DRIVER: Final = "gpu.example.com"

Attribute = str | int | bool | DeviceAttribute


def device(
    name: str,
    *,
    attributes: Mapping[str, Attribute] = {},
    capacity: Mapping[str, Quantity | DeviceCapacity] = {},
    consumes: Mapping[str, Quantity] = {},
    counter_set: str = "set",
    groups: Sequence[str] = (),
    taints: Sequence[Taint] = (),
    shared: bool = False,
    node: str | None = None,
    selects: NodeSelectorTerm | None = None,
    all_nodes: bool = False,
    conditions: Sequence[str] = (),
    failures: Sequence[str] = (),
) -> Device:
    """A device; *consumes* counters of *counter_set*, *selects* nodes by a term.

    Others that consume of the set have one of *groups* in common with it.
    """
    taken = DeviceCounterConsumption(
        counter_set=counter_set,
        counters={key: Counter(value=value) for key, value in consumes.items()},
        compatibility_groups=tuple(groups),
    )
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in attributes.items()},
        capacity={
            key: value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=value)
            for key, value in capacity.items()
        },
        consumes_counters=(taken,) if consumes else (),
        taints=tuple(taints),
        allow_multiple_allocations=shared,
        node_name=node,
        node_selector=None if selects is None else node_selector(selects),
        all_nodes=all_nodes,
        binding_conditions=tuple(conditions),
        binding_failure_conditions=tuple(failures),
    )


def attribute(value: Attribute) -> DeviceAttribute:
    if isinstance(value, DeviceAttribute):
        return value
    if isinstance(value, bool):
        return DeviceAttribute(bool_=value)
    return DeviceAttribute(int_=value) if isinstance(value, int) else DeviceAttribute(string=value)


def version(text: str) -> DeviceAttribute:
    return DeviceAttribute(version=text)


def consumable(
    value: Quantity,
    *,
    default: Quantity | None = None,
    values: Sequence[Quantity] = (),
    min: Quantity | None = None,
    max: Quantity | None = None,
    step: Quantity | None = None,
) -> DeviceCapacity:
    """A capacity with a request policy."""
    bounds = CapacityRequestPolicyRange(min=min, max=max, step=step) if min is not None else None
    policy = CapacityRequestPolicy(default=default, valid_values=tuple(values), valid_range=bounds)
    return DeviceCapacity(value=value, request_policy=policy)


def resource_slice(
    name: str,
    *devices: Device,
    driver: str = DRIVER,
    pool: str = "",
    node: str | None = None,
    selects: NodeSelectorTerm | None = None,
    all_nodes: bool = False,
    per_device: bool = False,
    generation: int = 1,
    count: int = 1,
    counters: Mapping[str, Mapping[str, Quantity]] = {},
    skips: Sequence[str] = (),
) -> ResourceSlice:
    """A slice of *pool*, which is named after its *node* unless said otherwise.

    It *skips* operations of kubelets.
    """
    return ResourceSlice(
        metadata=ObjectMeta(name=name, uid=f"slice-{name}", resource_version="1"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(
                name=pool or node or name, generation=generation, resource_slice_count=count
            ),
            node_name=node,
            node_selector=None if selects is None else node_selector(selects),
            all_nodes=all_nodes,
            per_device_node_selection=per_device,
            devices=devices,
            shared_counters=tuple(
                CounterSet(
                    name=set_name,
                    counters={key: Counter(value=value) for key, value in amounts.items()},
                )
                for set_name, amounts in counters.items()
            ),
            skip_node_operations=tuple(skips),
        ),
    )


def node_selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def device_class(
    name: str = "gpu",
    *expressions: str,
    extended_resource: str | None = None,
    created: str | None = None,
    config: Sequence[dict[str, Any]] = (),
) -> DeviceClass:
    """A class of all devices, or of those that the *expressions* select."""
    return DeviceClass(
        metadata=ObjectMeta(name=name, uid=f"class-{name}", creation_timestamp=created),
        spec=DeviceClassSpec(
            selectors=selectors(expressions),
            extended_resource_name=extended_resource,
            config=tuple(config),
        ),
    )


def selectors(expressions: Sequence[str]) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in expressions)


def exactly(
    count: int | None = 1,
    *,
    of: str = "gpu",
    where: Sequence[str] = (),
    admin: bool | None = None,
    tolerations: Sequence[DeviceToleration] = (),
    capacity: Mapping[str, Quantity] = {},
    derived: Mapping[str, str] = {},
) -> ExactDeviceRequest:
    """*count* devices of a class, or all of them (None), with *derived* attributes."""
    return ExactDeviceRequest(
        device_class_name=of,
        selectors=selectors(where),
        allocation_mode=ALL if count is None else EXACT_COUNT,
        count=count or 1,
        admin_access=admin,
        tolerations=tuple(tolerations),
        capacity=CapacityRequirements(requests=dict(capacity)) if capacity else None,
        derived_attributes=tuple(
            DeviceDerivedAttribute(name=name, expression=text) for name, text in derived.items()
        ),
    )


def request(name: str, wanted: ExactDeviceRequest) -> DeviceRequest:
    return DeviceRequest(name=name, exactly=wanted)


def first_available(name: str, **alternatives: ExactDeviceRequest) -> DeviceRequest:
    """Any of the *alternatives*, rather the earlier ones."""
    return DeviceRequest(
        name=name,
        first_available=tuple(
            DeviceSubRequest(name=sub, **msgspec.structs.asdict(wanted))
            for sub, wanted in alternatives.items()
        ),
    )


def same(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(match_attribute=attribute, requests=requests)


def distinct(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(distinct_attribute=attribute, requests=requests)


def claim(
    name: str = "c",
    *requests: DeviceRequest | ExactDeviceRequest,
    ns: str = "default",
    constraints: Sequence[DeviceConstraint] = (),
    config: Sequence[dict[str, Any]] = (),
    owner: str = "",
    annotations: Mapping[str, str] = {},
    allocated: AllocationResult | None = None,
    users: Sequence[str] = (),
    devices: Sequence[AllocatedDeviceStatus] = (),
    deleted: str | None = None,
    version: str = "1",
) -> ResourceClaim:
    """A claim; a bare request is named r0, r1 ... *owner* and *users* are UIDs of pods."""
    controller = OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=ns,
            uid=f"claim-{ns}-{name}",
            resource_version=version,
            owner_references=(controller,) if owner else (),
            annotations=dict(annotations),
            deletion_timestamp=deleted,
        ),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=tuple(
                    one if isinstance(one, DeviceRequest) else request(f"r{i}", one)
                    for i, one in enumerate(requests or (exactly(),))
                ),
                constraints=tuple(constraints),
                config=tuple(config),
            )
        ),
        status=ResourceClaimStatus(
            allocation=allocated,
            reserved_for=tuple(
                ResourceClaimConsumerReference(resource="pods", name=user, uid=user)
                for user in users
            ),
            devices=tuple(devices),
        ),
    )


def allocation(
    *devices: str | DeviceRequestAllocationResult,
    pool: str = "n1",
    node: str | None = None,
    since: str | None = None,
) -> AllocationResult:
    """Devices of *pool*, usable everywhere or on *node* only."""
    here = None if node is None else node_selector(term(fields=[_named(node)]))
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(got(one, pool=pool) if isinstance(one, str) else one for one in devices)
        ),
        node_selector=here,
        allocation_timestamp=since,
    )


def _named(node: str) -> Any:
    return requirement(NAME_FIELD, "In", node)


def got(
    device: str,
    *,
    pool: str = "n1",
    admin: bool | None = None,
    share: str | None = None,
    consumed: Mapping[str, Quantity] = {},
    conditions: Sequence[str] = (),
    failures: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] = {},
    skips: Sequence[str] = (),
) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(
        request="r0",
        driver=DRIVER,
        pool=pool,
        device=device,
        admin_access=admin,
        share_id=share,
        consumed_capacity=dict(consumed),
        compatibility_groups={name: tuple(of_set) for name, of_set in groups.items()},
        skip_node_operations=tuple(skips),
        binding_conditions=tuple(conditions),
        binding_failure_conditions=tuple(failures),
    )


def said(device: str, *conditions: str, pool: str = "n1") -> AllocatedDeviceStatus:
    """A driver says that *conditions* are true of a device."""
    return AllocatedDeviceStatus(
        driver=DRIVER,
        pool=pool,
        device=device,
        conditions=tuple(DeviceCondition(type=name, status="True") for name in conditions),
    )


def with_claims(pod: Pod, *names: str) -> Pod:
    """The pod with claims of these names."""
    references = tuple(PodResourceClaim(name=name, resource_claim_name=name) for name in names)
    spec = msgspec.structs.replace(pod.spec, resource_claims=references)
    return msgspec.structs.replace(pod, spec=spec)


def with_template_claim(pod: Pod, name: str, *, made: str | None = None, known: bool = True) -> Pod:
    """The pod with a claim made from a template, *made* by now under a name, or not needed."""
    reference = PodResourceClaim(name=name, resource_claim_template_name="template")
    spec = msgspec.structs.replace(pod.spec, resource_claims=(reference,))
    told = (PodResourceClaimStatus(name=name, resource_claim_name=made),) if known else ()
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=told)
    return msgspec.structs.replace(pod, spec=spec, status=status)


def listers(*objects: ResourceClaim | ResourceSlice | DeviceClass) -> Listers:
    """Return what the watches report of *objects*."""
    known = Listers()
    for obj in objects:
        if isinstance(obj, ResourceClaim):
            known.resource_claims.on_add(obj)
        elif isinstance(obj, ResourceSlice):
            known.resource_slices.on_add(obj)
        else:
            known.device_classes.on_add(obj)
    return known
