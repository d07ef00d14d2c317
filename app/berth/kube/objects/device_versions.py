"""Claims and slices of ``resource.k8s.io/v1beta1``, whose JSON differs from that of ``v1``.

There a request has what ``v1`` has in ``exactly``, and a device has all but its name in ``basic``.
All else is alike, and so are all of ``v1beta2`` and DeviceClasses. Objects are decoded JSON here,
which is not changed; what does not look as it should is left as it is, for those who decode it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

OF_REQUEST: Final = ("name", "firstAvailable")
"""The fields that a request has itself in both versions."""


def claim_from_v1beta1(claim: Any) -> Any:
    """Return a ResourceClaim of ``v1beta1`` in words of ``v1``."""
    return _with_each_request(claim, _request_from_v1beta1)


def claim_to_v1beta1(claim: Any) -> Any:
    """Return a ResourceClaim of ``v1`` in words of ``v1beta1``."""
    return _with_each_request(claim, _request_to_v1beta1)


def slice_from_v1beta1(resource_slice: Any) -> Any:
    """Return a ResourceSlice of ``v1beta1`` in words of ``v1``."""
    spec = resource_slice.get("spec") if isinstance(resource_slice, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("devices"), list):
        return resource_slice
    devices = [_device_from_v1beta1(device) for device in spec["devices"]]
    return {**resource_slice, "spec": {**spec, "devices": devices}}


def _with_each_request(claim: Any, change: Callable[[Any], Any]) -> Any:
    """Do *change* to each request of *claim*."""
    spec = claim.get("spec") if isinstance(claim, dict) else None
    if not isinstance(spec, dict):
        return claim
    devices = spec.get("devices")
    if not isinstance(devices, dict) or not isinstance(devices.get("requests"), list):
        return claim
    changed = {**devices, "requests": [change(request) for request in devices["requests"]]}
    return {**claim, "spec": {**spec, "devices": changed}}


def _request_from_v1beta1(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    own = {key: request[key] for key in OF_REQUEST if key in request}
    exactly = {key: value for key, value in request.items() if key not in OF_REQUEST}
    # A request for one of several has no class; whoever writes Go's zero value does not mean one.
    return {**own, "exactly": exactly} if exactly.get("deviceClassName") else own


def _request_to_v1beta1(request: Any) -> Any:
    if not isinstance(request, dict) or not isinstance(request.get("exactly"), dict):
        return request
    own = {key: value for key, value in request.items() if key != "exactly"}
    return {**own, **request["exactly"]}


def _device_from_v1beta1(device: Any) -> Any:
    if not isinstance(device, dict) or not isinstance(device.get("basic"), dict):
        return device
    own = {key: value for key, value in device.items() if key != "basic"}
    return {**own, **device["basic"]}


V1BETA1: Final = "v1beta1"
CLAIM_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = {V1BETA1: claim_from_v1beta1}
SLICE_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = {V1BETA1: slice_from_v1beta1}
"""By version, what makes objects of ``v1`` of its objects."""
