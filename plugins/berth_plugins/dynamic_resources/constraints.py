"""Constraints across the devices of a claim: an attribute is the same, or differs."""

from collections.abc import Sequence
from typing import Protocol

from berth.objects.devices import Device, DeviceConstraint, DeviceId

Typed = tuple[str, str | int | bool]
"""An attribute's type and value."""


class Constraint(Protocol):
    """Follows the search: devices are removed in the opposite order of adding them."""

    def add(self, request: "RequestName", id_: DeviceId, device: Device) -> bool:
        """Take in a device chosen for *request*; False, and nothing changes, if it must not be."""
        ...

    def remove(self, request: "RequestName") -> None:
        """Take out the device that was added last, for *request*."""
        ...


class RequestName(tuple[str, str]):
    """A request, or one of its alternatives: (request, "" or subrequest)."""

    __slots__ = ()

    def __str__(self) -> str:
        request, sub = self
        return f"{request}/{sub}" if sub else request

    def is_in(self, names: Sequence[str]) -> bool:
        """Whether *names* means this request; none means all."""
        return not names or self[0] in names or (bool(self[1]) and str(self) in names)


def constraint_of(written: DeviceConstraint) -> Constraint | None:
    """Make a constraint ready for a search; None if it is of a kind that we do not know."""
    if written.match_attribute is not None:
        return _Same(written.match_attribute, written.requests)
    if written.distinct_attribute is not None:
        return _Distinct(written.distinct_attribute, written.requests)
    return None


def attribute_of(device: Device, driver: str, name: str) -> Typed | None:
    """Look an attribute up by its full name, or by the bare one if the domain is the driver's."""
    found = device.attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == driver:
            found = device.attributes.get(identifier)
    return None if found is None else found.typed


class _Same:
    __slots__ = ("_count", "_name", "_requests", "_value")

    def __init__(self, name: str, requests: Sequence[str]) -> None:
        self._name = name
        self._requests = requests
        self._value: Typed | None = None
        self._count = 0

    def add(self, request: RequestName, id_: DeviceId, device: Device) -> bool:
        if not request.is_in(self._requests):
            return True
        value = attribute_of(device, id_.driver, self._name)
        if value is None or (self._count and value != self._value):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, request: RequestName) -> None:
        if request.is_in(self._requests):
            self._count -= 1


class _Distinct:
    """Values that differ.

    QUIRK, as in 1.36 (kubernetes/kubernetes#140438): of a request that gets several devices only
    the one that was added last is compared with others.
    """

    __slots__ = ("_name", "_requests", "_values")

    def __init__(self, name: str, requests: Sequence[str]) -> None:
        self._name = name
        self._requests = requests
        self._values: dict[str, Typed] = {}

    def add(self, request: RequestName, id_: DeviceId, device: Device) -> bool:
        if not request.is_in(self._requests):
            return True
        value = attribute_of(device, id_.driver, self._name)
        if value is None or value in self._values.values():
            return False
        self._values[request[0]] = value
        return True

    def remove(self, request: RequestName) -> None:
        if request.is_in(self._requests):
            self._values.pop(request[0], None)
