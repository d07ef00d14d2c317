"""Devices of dynamic resource allocation, with who has them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from berth.kube.objects.devices import (
    AllocationResult,
    Device,
    DeviceAttribute,
    DeviceId,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from berth.runtime.tasks import in_turns
from berth.service.server.scheduler.debug.device_models import (
    AttributeValue,
    DeviceAllocation,
    DeviceCounts,
    PublishedDevice,
    PublishedDevices,
)
from berth.service.server.scheduler.debug.pagination import many_unordered

SLICES_A_TURN: Final = 128
"""A slice has at most as many devices (spec §5.17)."""
POD: Final = "pods"
"""The resource of consumers that are pods."""


class Claims(Protocol):
    """The claims as the scheduler counts them, those included that are decided, not written."""

    def __iter__(self) -> Iterator[ResourceClaim]: ...

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None: ...


@dataclass(frozen=True, slots=True)
class Devices:
    """Where to look; both are asked each time."""

    slices: Callable[[], Iterable[ResourceSlice]]
    claims: Callable[[], Claims]


@dataclass(frozen=True, slots=True)
class DeviceFilter:
    """Which devices are asked for; what is empty does not matter."""

    driver: str = ""
    pool: str = ""
    node: str = ""
    device: str = ""
    name: str = ""
    """A part of driver/pool/device."""
    claim: str = ""
    """As in namespace/name."""
    allocated: bool | None = None


class _Published(NamedTuple):
    slice: ResourceSlice
    device: Device

    @property
    def id(self) -> DeviceId:
        spec = self.slice.spec
        return DeviceId(spec.driver, spec.pool.name, self.device.name)

    @property
    def node(self) -> str:
        return self.slice.spec.node_name or self.device.node_name or ""


class _Held(NamedTuple):
    claim: ResourceClaim
    result: DeviceRequestAllocationResult


_Holders = Mapping[DeviceId, Sequence[_Held]]


async def published_devices(
    devices: Devices, wanted: DeviceFilter, *, after: tuple[str, str] | None, limit: int
) -> PublishedDevices:
    """Return the devices that *wanted* describes, by driver, pool and name.

    Others on the event loop get a turn, what changes meanwhile may be shown as it was.
    """
    holders = await _holders(devices.claims())
    slices = [*devices.slices()]
    published, token = await many_unordered(
        slices,
        where=lambda some: _matching(some, wanted, holders),
        key=_place,
        after=after,
        limit=limit,
        piece=SLICES_A_TURN,
    )
    return PublishedDevices(
        items=tuple(_told(device, holders.get(device.id, ())) for device in published),
        continue_=token,
        counts=DeviceCounts(
            slices=len(slices),
            devices=sum(len(slice_.spec.devices) for slice_ in slices),
            allocated=len(holders),
        ),
    )


async def _holders(claims: Claims) -> _Holders:
    """Return who has each device that anybody has."""
    holders: dict[DeviceId, list[_Held]] = {}
    async for some in in_turns([*claims]):
        for claim in some:
            allocation = claims.allocation(claim)
            for result in allocation.devices.results if allocation else ():
                holders.setdefault(result.id, []).append(_Held(claim, result))
    return holders


def _matching(
    slices: Iterable[ResourceSlice], wanted: DeviceFilter, holders: _Holders
) -> Iterator[_Published]:
    for slice_ in slices:
        spec = slice_.spec
        if wanted.driver not in ("", spec.driver) or wanted.pool not in ("", spec.pool.name):
            continue
        for device in spec.devices:
            published = _Published(slice_, device)
            held = holders.get(published.id, ())
            if (
                wanted.device in ("", device.name)
                and wanted.name in str(published.id)
                and wanted.node in ("", published.node)
                and wanted.claim in ("", *(holder.claim.metadata.key for holder in held))
                and wanted.allocated in (None, bool(held))
            ):
                yield published


def _place(published: _Published) -> tuple[str, str]:
    return str(published.id), published.slice.metadata.name


def _told(published: _Published, held: Sequence[_Held]) -> PublishedDevice:
    device = published.device
    return PublishedDevice(
        driver=published.id.driver,
        pool=published.id.pool,
        device=device.name,
        resource_slice=published.slice.metadata.name,
        node=published.node,
        attributes={name: _value(attribute) for name, attribute in device.attributes.items()},
        capacity={name: str(capacity.value) for name, capacity in device.capacity.items()},
        taints=tuple(f"{t.key}={t.value}:{t.effect}" for t in device.taints),
        allow_multiple_allocations=device.allow_multiple_allocations,
        allocations=tuple(map(_allocation, held)),
    )


def _value(attribute: DeviceAttribute) -> AttributeValue:
    typed, listed = attribute.typed, attribute.typed_list
    if typed is not None:
        return typed[1]
    return listed[1] if listed is not None else None


def _allocation(held: _Held) -> DeviceAllocation:
    claim, result = held
    status = claim.status
    namespace = claim.metadata.namespace
    return DeviceAllocation(
        claim=claim.metadata.key,
        request=result.request,
        admin_access=bool(result.admin_access),
        share_id=result.share_id or "",
        consumed_capacity={name: str(value) for name, value in result.consumed_capacity.items()},
        is_written=status.allocation is not None,
        pods=tuple(f"{namespace}/{one.name}" for one in status.reserved_for if one.resource == POD),
    )
