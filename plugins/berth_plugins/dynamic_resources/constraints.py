"""Constraints across the devices of a claim: an attribute is the same, or differs."""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from berth.kube.objects.devices import Device, DeviceAttribute, DeviceConstraint
from berth_plugins.dynamic_resources.features import DEFAULT, Features

Typed = tuple[str, str | int | bool]
"""An attribute's type and value."""

Attributes = Callable[[str], DeviceAttribute | None]
"""Looks an attribute of a device up by its full name."""

TypedValues = tuple[str, frozenset[str | int | bool]]
"""An attribute's type and its values; a single value is a list of one."""


class Constraint(Protocol):
    """Follows the search: devices are removed in the opposite order of adding them."""

    def add(self, request: "RequestName", attributes: "Attributes") -> bool:
        """Take in a device with *attributes* chosen for *request*.

        False, and nothing changes, if it must not be.
        """
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


def constraint_of(written: DeviceConstraint, features: Features = DEFAULT) -> Constraint | None:
    """Make a constraint ready for a search; None if it is of a kind that we do not know.

    With DRAListTypeAttributes lists of values are compared. kube-scheduler 1.36 does not get to
    that: with the gate on it goes on to compare single values only.
    """
    has_lists = features.list_type_attributes
    if written.match_attribute is not None:
        same = _SameOfLists if has_lists else _Same
        return same(written.match_attribute, written.requests)
    if written.distinct_attribute is not None:
        name, requests = written.distinct_attribute, written.requests
        if has_lists:
            return _DistinctLists(name, requests)
        return _Distinct(name, requests, every_device=features.searches_exactly)
    return None


def attribute_of(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """Look an attribute up by its full name, or by the bare one if the domain is the driver's."""
    attribute = device.attributes.get(name)
    if attribute is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == driver:
            attribute = device.attributes.get(identifier)
    return attribute


def value_of(device: Device, driver: str, name: str) -> Typed | None:
    """Return the value of an attribute; None if the device has none, or a list."""
    attribute = attribute_of(device, driver, name)
    return None if attribute is None else attribute.typed


def _values_of(attribute: DeviceAttribute | None) -> TypedValues | None:
    if attribute is None:
        return None
    if (many := attribute.typed_list) is not None:
        return many[0], frozenset(many[1])
    return None if (one := attribute.typed) is None else (one[0], frozenset((one[1],)))


def must_differ(constraint: Constraint, request: RequestName) -> str | None:
    """Return of which attribute each device of *request* needs a value of its own, if of any."""
    if isinstance(constraint, _Distinct) and constraint.concerns_every_device(request):
        return constraint.name
    return None


def needed_value(constraint: Constraint, request: RequestName) -> tuple[str, Typed] | None:
    """Return an attribute, and its value without which nothing more can be added for *request*.

    None if that cannot be said. A device without the value changes nothing in the constraint.
    """
    return constraint.needed_value(request) if isinstance(constraint, _Same) else None


class _Same:
    __slots__ = ("_count", "_name", "_requests", "_value")

    def __init__(self, name: str, requests: Sequence[str]) -> None:
        self._name = name
        self._requests = requests
        self._value: Typed | None = None
        self._count = 0

    def needed_value(self, request: RequestName) -> tuple[str, Typed] | None:
        if not self._count or self._value is None or not request.is_in(self._requests):
            return None
        return self._name, self._value

    def add(self, request: RequestName, attributes: Attributes) -> bool:
        if not request.is_in(self._requests):
            return True
        attribute = attributes(self._name)
        value = None if attribute is None else attribute.typed
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

    QUIRK of 1.36 (kubernetes/kubernetes#140438), unless *every_device* counts: of a request that
    gets several devices only the one that was added last is compared with others.
    """

    __slots__ = ("_every_device", "_requests", "_values", "name")

    def __init__(self, name: str, requests: Sequence[str], *, every_device: bool) -> None:
        self.name = name
        self._requests = requests
        self._every_device = every_device
        self._values: dict[Hashable, Typed] = {}
        """By number of the device, or by the request."""

    def concerns_every_device(self, request: RequestName) -> bool:
        return self._every_device and request.is_in(self._requests)

    def add(self, request: RequestName, attributes: Attributes) -> bool:
        if not request.is_in(self._requests):
            return True
        attribute = attributes(self.name)
        value = None if attribute is None else attribute.typed
        if value is None or value in self._values.values():
            return False
        self._values[len(self._values) if self._every_device else request[0]] = value
        return True

    def remove(self, request: RequestName) -> None:
        if not request.is_in(self._requests):
            return
        if self._every_device:
            self._values.popitem()
        else:
            self._values.pop(request[0], None)


class _SameOfLists:
    """Lists of one type that have some value in common."""

    __slots__ = ("_common", "_name", "_requests")

    def __init__(self, name: str, requests: Sequence[str]) -> None:
        self._name = name
        self._requests = requests
        self._common: list[TypedValues] = []
        """After each device, what all so far have in common."""

    def add(self, request: RequestName, attributes: Attributes) -> bool:
        if not request.is_in(self._requests):
            return True
        typed_values = _values_of(attributes(self._name))
        if typed_values is None:
            return False
        type_, values = typed_values
        if self._common:
            before, common = self._common[-1]
            values &= common
            if type_ != before:
                return False
        if not values:
            return False
        self._common.append((type_, values))
        return True

    def remove(self, request: RequestName) -> None:
        if request.is_in(self._requests):
            self._common.pop()


class _DistinctLists:
    """Lists of which no two have a value in common; values of two types never are equal."""

    __slots__ = ("_added", "_name", "_requests")

    def __init__(self, name: str, requests: Sequence[str]) -> None:
        self._name = name
        self._requests = requests
        self._added: list[TypedValues] = []
        """Of each device that was added."""

    def add(self, request: RequestName, attributes: Attributes) -> bool:
        if not request.is_in(self._requests):
            return True
        typed_values = _values_of(attributes(self._name))
        if typed_values is None:
            return False
        type_, values = typed_values
        if any(type_ == other and values & others for other, others in self._added):
            return False
        self._added.append(typed_values)
        return True

    def remove(self, request: RequestName) -> None:
        if request.is_in(self._requests):
            self._added.pop()
