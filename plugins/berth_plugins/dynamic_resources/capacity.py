"""Consumable capacity: shares of devices that several claims may have (spec §5.17)."""

from collections.abc import Mapping
from typing import Final

from berth.kube.objects.devices import CapacityRequestPolicy, DeviceCapacity
from berth.kube.objects.quantity import NANO, Quantities, Quantity, parse, value

Consumed = Mapping[str, int]
"""Capacity name to an amount in nano units."""


def share_of(
    offered: Mapping[str, DeviceCapacity], *, requested: Quantities, taken: Consumed
) -> Quantities | None:
    """Return how much of each capacity a request gets; None where it cannot be had.

    *offered* is a device's, *taken* what others have of it already. What is not *requested* counts
    with the policy's default, else as a whole.
    """
    if requested.keys() - offered.keys():
        return None
    share: Quantities = {}
    for name, capacity in offered.items():
        amount = _rounded_up(requested.get(name), capacity)
        if _violates(amount, capacity.request_policy):
            return None
        if taken.get(name, 0) + parse(amount) > parse(capacity.value):
            return None
        share[name] = amount
    return share


def _rounded_up(requested: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    bounds = policy.valid_range
    if bounds is not None and bounds.min is not None:
        if parse(requested) < parse(bounds.min):
            return bounds.min
        if bounds.step is None:
            return requested
        least, step = _whole(bounds.min), _whole(bounds.step)
        return _binary(least + -(-(_whole(requested) - least) // step) * step)
    fitting = (valid for valid in policy.valid_values if parse(requested) <= parse(valid))
    return next(fitting, requested)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None:
        return False
    if policy.default is not None and parse(amount) == parse(policy.default):
        return False
    bounds = policy.valid_range
    if bounds is not None:
        if bounds.max is not None and parse(amount) > parse(bounds.max):
            return True
        least = 0 if bounds.min is None else _whole(bounds.min)
        return bounds.step is not None and (_whole(amount) - least) % _whole(bounds.step) != 0
    return bool(policy.valid_values) and all(
        parse(amount) != parse(valid) for valid in policy.valid_values
    )


def _whole(quantity: Quantity) -> int:
    return value(parse(quantity))


# Writing quantities.

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")


def canonical(quantity: Quantity) -> str:
    """Write a quantity as the API does: with the largest suffix that leaves an integer."""
    nanos = parse(quantity)
    whole, rest = divmod(nanos, NANO)
    if isinstance(quantity, str) and quantity.endswith("i") and not rest:
        return _binary(whole)
    return _with_suffix(nanos, 1000, _DECIMAL) if nanos else "0"


def _binary(whole: int) -> str:
    if whole < 1024:
        return _with_suffix(whole * NANO, 1000, _DECIMAL) if whole else "0"
    return _with_suffix(whole, 1024, _BINARY)


def _with_suffix(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    power = 0
    while amount % base == 0 and power + 1 < len(suffixes):
        amount //= base
        power += 1
    return f"{amount}{suffixes[power]}"
