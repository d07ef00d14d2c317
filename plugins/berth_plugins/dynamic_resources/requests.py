"""Requests of claims, made ready for the search."""

from collections.abc import Callable, Hashable, Iterator
from typing import Final

import msgspec

from berth.kube.cel.selector_error import HINT, CompileError, SelectorError
from berth.kube.objects.devices import (
    ALL,
    EXACT_COUNT,
    DeviceAttribute,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
)
from berth_plugins.dynamic_resources.constraints import RequestName
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.pools import PoolDevice
from berth_plugins.shared.device_classes import DeviceClassResolver

MAX_DEVICES: Final = 32
"""How many devices an allocation may have."""


IN_MEMORY: Final = "<extended-resources>"
"""The name of the claim for a pod's extended resources until it is created."""


_encode = msgspec.msgpack.Encoder().encode


class AllocationError(Exception):
    """The search cannot go on, on any node; the text is for people."""


class NoSuchClassError(Exception):
    """A request is for a device class that does not exist."""


class UnknownRequestError(Exception):
    """A request is of a form that we do not know."""


class _Selector(msgspec.Struct, frozen=True, eq=False):
    """A selector, and whose it is, for error messages."""

    written: DeviceSelector
    owner: str
    index: int


class Request(msgspec.Struct, frozen=True, eq=False):
    """One request, or one alternative of a ``firstAvailable``."""

    name: RequestName
    written: ExactDeviceRequest
    device_class: DeviceClass
    selectors: tuple[_Selector, ...]
    claim: str
    """Of which claim it is, as ``namespace/name``."""
    features: Features = DEFAULT

    @property
    def short_name(self) -> str:
        """The name of the alternative, if it is one, else of the request."""
        return self.name[1] or self.name[0]

    @property
    def is_alternative(self) -> bool:
        """Whether it is one of a ``firstAvailable``."""
        return bool(self.name[1])

    @property
    def takes_all(self) -> bool:
        return self.written.allocation_mode == ALL

    @property
    def asked(self) -> Hashable:
        """The same for requests that ask the same of a device, whatever else they say."""
        capacity = self.written.capacity
        return (
            self.has_admin_access,
            tuple(
                selector.written.cel and selector.written.cel.expression
                for selector in self.selectors
            ),
            None if capacity is None else tuple(capacity.requests.items()),
        )

    @property
    def has_admin_access(self) -> bool:
        """Whether devices may be had that are in use; alternatives never may."""
        return bool(self.written.admin_access) and not self.is_alternative

    def selects(self, candidate: PoolDevice, check_time: Callable[[], None]) -> bool:
        """Ask the selectors of the class, then those of the request; AllocationError if one fails.

        The first one that says no ends it. *check_time* is called before each and may raise: a new
        expression takes long to compile.
        """
        from berth.kube.cel.selectors import compile_expression  # takes long to load

        for selector in self.selectors:
            assert selector.written.cel is not None
            check_time()
            source = selector.written.cel.expression
            expression = compile_expression(source, self.features.selectors)
            try:
                if isinstance(expression, SelectorError):
                    raise expression
                if not candidate.matches(expression):
                    return False
            except SelectorError as exc:
                whose = f"{selector.owner}: selector #{selector.index}"
                raise AllocationError(self._failed(whose, candidate, exc)) from exc
        return True

    def derives(self, name: str) -> bool:
        """Whether the request says itself what the attribute *name* of a device is."""
        written = self.written.derived_attributes
        return self.features.derived_attributes and any(each.name == name for each in written)

    def derived(self, name: str, candidate: PoolDevice) -> DeviceAttribute:
        """Return the attribute that the request derives; AllocationError if that fails.

        The words of the error are a guess (1.37 spec N4.9).
        """
        from berth.kube.cel.selectors import compile_derived  # takes long to load

        source = next(e.expression for e in self.written.derived_attributes if e.name == name)
        try:
            expression = compile_derived(source, self.features.selectors)
            if isinstance(expression, SelectorError):
                raise expression
            return candidate.derive(expression)
        except SelectorError as exc:
            whose = f"claim {self.claim}: derived attribute {name}"
            raise AllocationError(self._failed(whose, candidate, exc)) from exc

    def _failed(self, whose: str, candidate: PoolDevice, error: SelectorError) -> str:
        """Word what a selector failed with on a device (1.37 spec N4.4)."""
        if isinstance(error, CompileError) or not self.features.names_device:
            return f"{whose}: {error}"
        hint = HINT if "no such key:" in str(error) else ""
        return f"{whose} on device {candidate.id}: {error}{hint}"


class ClaimRequests(msgspec.Struct, frozen=True, eq=False):
    """A claim to be allocated. Each request has its alternatives, most have one."""

    claim: ResourceClaim
    requests: tuple[tuple[Request, ...], ...]
    question: bytes
    """The same for claims that ask for the same, such as those made from one template."""

    @property
    def key(self) -> str:
        """How errors name the claim."""
        return self.claim.metadata.key

    @property
    def has_alternatives(self) -> bool:
        return any(alternatives[0].is_alternative for alternatives in self.requests)

    @property
    def name(self) -> str:
        """``namespace/name``, or what a claim is called that is only in memory."""
        meta = self.claim.metadata
        return meta.name if meta.name == IN_MEMORY else meta.key


def requests_of(
    claim: ResourceClaim, classes: DeviceClassResolver, features: Features = DEFAULT
) -> ClaimRequests:
    """Make the requests of *claim* ready.

    Raises NoSuchClassError or UnknownRequestError; that is for the caller to word, as the cluster
    may change. Raises AllocationError for what only a newer API server could have let in.
    """
    requests = []
    for request in claim.spec.devices.requests:
        if request.exactly is None and request.first_available and not features.prioritized_list:
            raise UnknownRequestError(
                f"resource claim {claim.metadata.key}, request {request.name}: has subrequests, but"
                f" the DRAPrioritizedList feature is disabled"
            )
        alternatives = tuple(
            _request(claim, RequestName((request.name, sub)), written, classes, features)
            for sub, written in _alternatives(request)
        )
        if not alternatives:
            raise UnknownRequestError(f"request {request.name}: unsupported request type")
        requests.append(alternatives)
    return ClaimRequests(claim, tuple(requests), _encode(claim.spec))


def _alternatives(request: DeviceRequest) -> Iterator[tuple[str, ExactDeviceRequest]]:
    if request.exactly is not None:
        yield "", request.exactly
        return
    for alternative in request.first_available:
        yield alternative.name, alternative


def _request(
    claim: ResourceClaim,
    name: RequestName,
    written: ExactDeviceRequest,
    classes: DeviceClassResolver,
    features: Features,
) -> Request:
    device_class = classes.get(written.device_class_name)
    if device_class is None:
        raise NoSuchClassError(
            f"request {name}: device class {written.device_class_name} does not exist"
        )
    whose = f"claim {claim.metadata.key}, request {name[1] or name[0]}"
    if written.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{whose}: unsupported count mode {written.allocation_mode}")
    if written.capacity is not None and not features.consumable_capacity:
        what = "subrequest" if name[1] else "request"
        raise AllocationError(
            f"claim {claim.metadata.key}, {what} {name[1] or name[0]}: has capacity requests, but"
            f" the DRAConsumableCapacity feature is disabled"
        )
    selectors = [
        *_selectors(device_class.spec.selectors, f"class {device_class.metadata.name}"),
        *_selectors(written.selectors, f"claim {claim.metadata.key}"),
    ]
    for selector in selectors:
        if selector.written.cel is None:
            raise AllocationError(
                f"{whose}, selector #{selector.index}: CEL expression empty"
                f" (unsupported selector type?)"
            )
    return Request(name, written, device_class, tuple(selectors), claim.metadata.key, features)


def _selectors(written: tuple[DeviceSelector, ...], owner: str) -> Iterator[_Selector]:
    for index, selector in enumerate(written):
        yield _Selector(selector, owner, index)
