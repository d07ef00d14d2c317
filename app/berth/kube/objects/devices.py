"""Dynamic resources, ``resource.k8s.io/v1``: devices, pools, claims, as far as scheduling reads."""

from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.nesting import is_deep
from berth.kube.objects.node import Taint
from berth.kube.objects.pod import NodeSelector, Toleration
from berth.kube.objects.quantity import Quantities, Quantity, check_quantities
from berth.kube.objects.raw import decoder

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
"""The allocation modes."""

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted while pods may use its devices."""
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation, ``true`` on the claim that stands for a pod's extended resources."""


class DeviceId(NamedTuple):
    """What identifies a device in the whole cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


# What drivers publish.


class DeviceAttribute(KubeStruct, frozen=True, gc=False):
    """A value of one of four types, or, with DRAListTypeAttributes, a list; the others are None."""

    string: str | None = None
    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None
    strings: tuple[str, ...] | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    versions: tuple[str, ...] | None = None

    @property
    def typed(self) -> tuple[str, str | int | bool] | None:
        """Type and value, to be compared; None for a list, and for a type that we do not know."""
        for type_, value in (
            ("string", self.string),
            ("int", self.int_),
            ("bool", self.bool_),
            ("version", self.version),
        ):
            if value is not None:
                return type_, value
        return None

    @property
    def typed_list(self) -> tuple[str, tuple[str | int | bool, ...]] | None:
        """Type of the values and the values; None if it is no list that we know."""
        for type_, values in (
            ("string", self.strings),
            ("int", self.ints),
            ("bool", self.bools),
            ("version", self.versions),
        ):
            if values is not None:
                return type_, values
        return None


class CapacityRequestPolicyRange(KubeStruct, frozen=True, gc=False):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(KubeStruct, frozen=True, gc=False):
    """Which shares of a capacity may be asked for."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubeStruct, frozen=True, gc=False):
    value: Quantity
    request_policy: CapacityRequestPolicy | None = None

    def __post_init__(self) -> None:
        quantities: Quantities = {"value": self.value}
        policy = self.request_policy
        if policy is not None:
            named = {"default": policy.default}
            named |= {f"validValues[{i}]": value for i, value in enumerate(policy.valid_values)}
            if policy.valid_range is not None:
                bounds = policy.valid_range
                named |= {"min": bounds.min, "max": bounds.max, "step": bounds.step}
            quantities |= {name: value for name, value in named.items() if value is not None}
        check_quantities("capacity", quantities)


class Counter(KubeStruct, frozen=True, gc=False):
    value: Quantity

    def __post_init__(self) -> None:
        check_quantities("counter", {"value": self.value})


class CounterSet(KubeStruct, frozen=True, gc=False):
    name: str
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class DeviceCounterConsumption(KubeStruct, frozen=True, gc=False):
    counter_set: str
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()
    """Of the devices that take from the set together, all have one of these in common."""


class NodeAllocatableResourceMapping(KubeStruct, frozen=True, gc=False):
    """How much of a resource of the node a device is, or a unit of its capacity: as in 1.36."""

    capacity_key: str | None = None
    """The capacity that is counted; None: devices are."""
    allocation_multiplier: Quantity | None = None
    """What one counts for; None is 1."""

    def __post_init__(self) -> None:
        if self.allocation_multiplier is not None:
            check_quantities(
                "nodeAllocatableResourceMappings",
                {"allocationMultiplier": self.allocation_multiplier},
            )


class NodeAllocatableMapping(KubeStruct, frozen=True, gc=False):
    """How much of a resource of the node a device is: by unit of a capacity, or as a whole."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    """What a unit of the capacity counts for; None is 1."""
    device_multiplier: Quantity | None = None

    def __post_init__(self) -> None:
        _check_optional(
            "mapping",
            capacityMultiplier=self.capacity_multiplier,
            deviceMultiplier=self.device_multiplier,
        )


class NodeAllocatableOverhead(KubeStruct, frozen=True, gc=False):
    """How much of a resource of the node whoever uses a device takes beside it."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None
    """For each container that uses the claim."""

    def __post_init__(self) -> None:
        _check_optional("overhead", perPod=self.per_pod, perContainer=self.per_container)


class NodeAllocatableResource(KubeStruct, frozen=True, gc=False):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


def _check_optional(field: str, **quantities: Quantity | None) -> None:
    """Do as :func:`check_quantities` with those that are not None."""
    named = {name: quantity for name, quantity in quantities.items() if quantity is not None}
    if named:
        check_quantities(field, named)


class Device(KubeStruct, frozen=True, gc=False):
    name: str
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = msgspec.field(
        default_factory=dict
    )
    """By resource of the node, such as ``cpu``; as in 1.36."""
    node_allocatable_resources: dict[str, NodeAllocatableResource] = msgspec.field(
        default_factory=dict
    )
    """By resource of the node, from 1.37 on."""


class ResourcePool(KubeStruct, frozen=True, gc=False):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(KubeStruct, frozen=True, gc=False):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
    """What a kubelet need not ask the driver to do for the devices."""


class ResourceSlice(KubeStruct, frozen=True, gc=False):
    """Some devices of a pool, or the counters that its devices share."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


# What administrators taint.

API_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
"""Those of ``resource.k8s.io`` that are read. The first is served by default since 1.34, and alike
the second; of the third see :mod:`berth.kube.objects.device_versions`."""
RESOURCE_CLAIMS: Final = "/apis/resource.k8s.io/v1/resourceclaims"

DEVICE_TAINT_RULES: Final = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
"""Where the API server of 1.36 has DeviceTaintRules."""
DEVICE_TAINT_RULE_VERSIONS: Final = ("v1", "v1beta2", "v1alpha3")
"""Those in which they can be read: that of 1.37, which has all, those of 1.36, and that of 1.35."""


class DeviceTaintSelector(KubeStruct, frozen=True, gc=False):
    """Some devices; what is None is every one."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeStruct, frozen=True, gc=False):
    taint: Taint
    device_selector: DeviceTaintSelector | None = None


class DeviceTaintRule(KubeStruct, frozen=True, gc=False):
    """A taint that devices have beside those that their driver publishes."""

    spec: DeviceTaintRuleSpec
    metadata: ObjectMeta = ObjectMeta()
    api_version: str = ""


# What users ask for.


class CELDeviceSelector(KubeStruct, frozen=True, gc=False):
    expression: str = ""


class DeviceSelector(KubeStruct, frozen=True, gc=False):
    cel: CELDeviceSelector | None = None
    """None is a kind of selector that we do not know."""


class DeviceClassSpec(KubeStruct, frozen=True, gc=False):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[dict[str, Any], ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Toleration, frozen=True, gc=False):
    toleration_seconds: int | None = None


class CapacityRequirements(KubeStruct, frozen=True, gc=False):
    requests: Quantities = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_quantities("requests", self.requests)


class DeviceDerivedAttribute(KubeStruct, frozen=True, gc=False):
    """An attribute that a request gives to devices: what a CEL expression says of them."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(KubeStruct, frozen=True, gc=False):
    """Devices of one class; also the base of a choice among several."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ExactDeviceRequest, frozen=True, gc=False):
    """One of the alternatives of ``firstAvailable``; admin access cannot be asked for."""

    name: str = ""


class DeviceRequest(KubeStruct, frozen=True, gc=False):
    """Either ``exactly`` or ``firstAvailable``; neither is a form that we do not know."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(KubeStruct, frozen=True, gc=False):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(KubeStruct, frozen=True, gc=False):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class ResourceClaimSpec(KubeStruct, frozen=True, gc=False):
    devices: DeviceClaim = DeviceClaim()


# What was allocated.


class DeviceRequestAllocationResult(KubeStruct, frozen=True, gc=False):
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Quantities = msgspec.field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()
    compatibility_groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By counter set, those that the device had when it was allocated."""

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


class DeviceAllocationResult(KubeStruct, frozen=True, gc=False):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[dict[str, Any], ...] = ()


class AllocationResult(KubeStruct, frozen=True, gc=False):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(KubeStruct, frozen=True, gc=False):
    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class DeviceCondition(KubeStruct, frozen=True, gc=False):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(KubeStruct, frozen=True, gc=False):
    """What a driver says of an allocated device."""

    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()
    data: Any = None
    network_data: Any = None

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


class ResourceClaimStatus(KubeStruct, frozen=True, gc=False):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeStruct, frozen=True, gc=False):
    """A claim. ``raw`` is the whole object as the API gave it, for writing it back."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
    raw: bytes = b""

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the pod or PodGroup of *uid* may use the claim."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for)


# What only drivers read.


Configured = TypeVar("Configured", DeviceClassSpec, DeviceClaim, DeviceAllocationResult)
_replace: Final = msgspec.structs.replace


def class_without_opaque(device_class: DeviceClass) -> DeviceClass:
    """Return *device_class* without the parameters of drivers."""
    spec = device_class.spec
    return _replace(device_class, spec=_without_parameters(spec)) if spec.config else device_class


def claim_without_opaque(claim: ResourceClaim) -> ResourceClaim:
    """Return *claim* without the parameters of drivers, and without what they say of devices."""
    wanted, status = claim.spec.devices, claim.status
    if wanted.config:
        spec = _replace(claim.spec, devices=_without_parameters(wanted))
        claim = _replace(claim, spec=spec)
    allocation = status.allocation
    if allocation is not None and allocation.devices.config:
        allocation = _replace(allocation, devices=_without_parameters(allocation.devices))
        status = _replace(status, allocation=allocation)
    if status.devices:
        devices = tuple(_replace(device, data=None, network_data=None) for device in status.devices)
        status = _replace(status, devices=devices)
    return claim if status is claim.status else _replace(claim, status=status)


def _without_parameters(configured: Configured) -> Configured:
    """Leave of each configuration for whom it is, and from whom."""
    config = tuple(
        {key: one[key] for key in ("requests", "source") if key in one}
        | {"opaque": {"driver": opaque.get("driver", "")}}
        if isinstance(opaque := one.get("opaque"), dict)
        else {}
        for one in configured.config
    )
    return _replace(configured, config=config)


# What is written back.

_decode_claim = decoder(ResourceClaim)


def decode_claim(data: bytes) -> ResourceClaim:
    """Decode a claim and keep its JSON in ``raw``: an update must send all of it.

    Raises msgspec.DecodeError, also for parameters of drivers that are nested too deeply to be
    handled later.
    """
    if is_deep(data):
        raise msgspec.DecodeError("nested too deeply")
    return _decode_claim(data)


def claim_body(claim: ResourceClaim) -> dict[str, Any]:
    """Return the object that *claim* was decoded from, to be changed and written back.

    ``ValueError`` if *claim* was not made by :func:`decode_claim`.
    """
    if not claim.raw:
        raise ValueError(f"ResourceClaim {claim.metadata.key}: not decoded from the API")
    body: dict[str, Any] = msgspec.json.decode(claim.raw)
    return body | _HEAD  # items of lists come without


def new_claim_body(claim: ResourceClaim, *, generate_name: str) -> dict[str, Any]:
    """Return a claim to be created, which gives it a name that begins with *generate_name*."""
    body: dict[str, Any] = msgspec.to_builtins(claim)
    meta = body["metadata"]
    return _HEAD | {
        "metadata": {
            "generateName": generate_name,
            **{key: meta[key] for key in ("namespace", "annotations", "ownerReferences")},
        },
        "spec": body["spec"],
    }


_HEAD: Final = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1"}
