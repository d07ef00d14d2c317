"""Consumable capacity: shares of devices that several claims may have (spec §5.17)."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.kube.objects.devices import CapacityRequestPolicy, DeviceCapacity
from berth.kube.objects.quantity import MAX_INT64, NANO, Quantities, Quantity, parse
from berth_plugins.dynamic_resources.features import DEFAULT, Features

Consumed = Mapping[str, int]
"""Capacity name to an amount in nano units."""

MILLI: Final = NANO // 1000
"""Nano units in a thousandth."""


def share_of(
    offered: Mapping[str, DeviceCapacity],
    *,
    requested: Quantities,
    taken: Consumed,
    features: Features = DEFAULT,
) -> Quantities | None:
    """Return how much of each capacity a request gets; None where it cannot be had.

    *offered* is a device's, *taken* what others have of it already. What is not *requested* counts
    with the policy's default, else as a whole.
    """
    if requested.keys() - offered.keys():
        return None
    share: Quantities = {}
    for name, capacity in offered.items():
        unit = _unit_of(capacity.request_policy, features)
        if not _is_sound(capacity.request_policy, unit):
            return None
        amount = _rounded_up(requested.get(name), capacity, unit)
        if features.searches_exactly and not _is_countable(amount, unit):
            return None
        if _violates(amount, capacity.request_policy, unit):
            return None
        if taken.get(name, 0) + parse(amount) > parse(capacity.value):
            return None
        share[name] = amount
    return share


def _unit_of(policy: CapacityRequestPolicy | None, features: Features) -> int:
    """Return what a range is counted in, in nano units: whole ones, or thousandths of them.

    Thousandths with DRAFractionalCapacityRange, if the range says anything finer (1.37 spec N4.7).
    """
    if not features.fractional_capacity or policy is None or policy.valid_range is None:
        return NANO
    return MILLI if any(parse(written) % NANO for written in _written(policy)) else NANO


def _written(policy: CapacityRequestPolicy) -> Iterator[Quantity]:
    """Yield what the range of *policy* says."""
    bounds = policy.valid_range
    if bounds is not None:
        yield from (each for each in (bounds.min, bounds.max, bounds.step) if each is not None)


def _is_sound(policy: CapacityRequestPolicy | None, unit: int) -> bool:
    """Whether one can count with the range of *policy*; kube-scheduler 1.36 crashes if not."""
    if policy is None or policy.valid_range is None:
        return True
    step = policy.valid_range.step
    return (step is None or parse(step) > 0) and all(
        _is_countable(written, unit) for written in _written(policy)
    )


def _is_countable(quantity: Quantity, unit: int) -> bool:
    """Whether that is an int64 of units; the largest one may have been more."""
    return parse(quantity) < MAX_INT64 * unit


def _rounded_up(requested: Quantity | None, capacity: DeviceCapacity, unit: int) -> Quantity:
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
        least, step = _count(bounds.min, unit), _count(bounds.step, unit)
        return _quantity(least + -(-(_count(requested, unit) - least) // step) * step, unit)
    fitting = (valid for valid in policy.valid_values if parse(requested) <= parse(valid))
    return next(fitting, requested)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, unit: int) -> bool:
    if policy is None:
        return False
    if policy.default is not None and parse(amount) == parse(policy.default):
        return False
    bounds = policy.valid_range
    if bounds is not None:
        if bounds.max is not None and parse(amount) > parse(bounds.max):
            return True
        if bounds.step is None:
            return False
        least = 0 if bounds.min is None else _count(bounds.min, unit)
        return (_count(amount, unit) - least) % _count(bounds.step, unit) != 0
    return bool(policy.valid_values) and all(
        parse(amount) != parse(valid) for valid in policy.valid_values
    )


def _count(quantity: Quantity, unit: int) -> int:
    """Return how many units that is, a part of one counting as a whole."""
    return -(-parse(quantity) // unit)


def _quantity(count: int, unit: int) -> Quantity:
    whole, rest = divmod(count * unit, NANO)
    return _with_suffix(count * unit, 1000, _DECIMAL) if rest else _binary(whole)


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
