"""Amounts of resources by name, as ``ResourceList`` of the API: added up, compared, written."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from berth.kube.objects.quantity import NANO, Quantity, canonical, is_binary, parse


class Amount(NamedTuple):
    """A quantity that can be added up, and how it was written."""

    nanos: int
    binary: bool = False

    def __str__(self) -> str:
        return canonical(self.nanos, binary=self.binary)


Amounts: TypeAlias = dict[str, Amount]

ZERO = Amount(0)
ONE = Amount(NANO)


def amount(quantity: Quantity) -> Amount:
    """Read a quantity that was validated."""
    return Amount(parse(quantity), is_binary(quantity))


def count(number: int) -> Amount:
    return Amount(number * NANO)


def amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    """Read a ResourceList that was validated."""
    return {name: amount(quantity) for name, quantity in (quantities or {}).items()}


def added(left: Mapping[str, Amount], right: Mapping[str, Amount]) -> Amounts:
    """Return the sum, which has the names of both."""
    total = dict(left)
    for name, more in right.items():
        before = total.get(name)
        if before is None:
            total[name] = more
        else:
            binary = before.binary if before.nanos else more.binary
            total[name] = Amount(before.nanos + more.nanos, binary)
    return total


def subtracted(left: Mapping[str, Amount], right: Mapping[str, Amount]) -> Amounts:
    """Return *left* without *right*, nothing below zero."""
    return {
        name: Amount(max(amount.nanos - right.get(name, ZERO).nanos, 0), amount.binary)
        for name, amount in left.items()
    }


def masked(given: Mapping[str, Amount], names: Iterable[str]) -> Amounts:
    """Return of *given* what is in *names*."""
    return {name: given[name] for name in names if name in given}


def text(given: Mapping[str, Amount]) -> str:
    """Write amounts for a message: ``cpu=1,memory=2Gi``."""
    return ",".join(f"{name}={given[name]}" for name in sorted(given))


def quantities(given: Mapping[str, Amount]) -> dict[str, str]:
    """Return the ResourceList."""
    return {name: str(amount) for name, amount in given.items()}
