"""Percentages in ``IntOrString`` fields, such as ``25%``."""

import re
from typing import Final

_PERCENT: Final = re.compile("[0-9]{1,9}%", re.ASCII)
"""The API server takes any number of digits; nothing that acts on them can use more."""

WANTED: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
"""What a text that is none has to be."""


def is_percent(text: str) -> bool:
    return _PERCENT.fullmatch(text) is not None


def number_of(text: str) -> int:
    """Return the number of a percentage."""
    return int(text.removesuffix("%"))
