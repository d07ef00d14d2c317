"""Numbers, names and amounts as explanations write them."""

from collections.abc import Sequence
from typing import Final

NAMED: Final = 3
"""How many things a clause names before it counts the others."""


def listed(names: Sequence[str]) -> str:
    """Write "a, b and c", or "a, b, c and 4 more"."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(count: int, thing: str) -> str:
    """Write "1 node" or "2 nodes"."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


_BINARY_UNITS = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def amount_in_words(resource: str, amount: int, *, round_up: bool = False) -> str:
    """Write *amount*, in the units of the table, as people do: ``500m``, ``1.5Gi``, ``2``.

    Bytes are rounded to a tenth of their unit, down unless *round_up*: with what is there rounded
    down and what is needed rounded up, a shortage never looks like enough.
    """
    if resource == "cpu":
        return f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for unit, power in _BINARY_UNITS:
            if abs(amount) >= 1 << power:
                tenths = -(-amount * 10 >> power) if round_up else amount * 10 >> power
                return f"{tenths / 10:g}{unit}"
    return str(amount)
