"""The spelling of label keys, label values and resource names."""

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)
_MAX_NAME: Final = 63
MAX_SUBDOMAIN: Final = 253


def is_qualified_name(text: str) -> bool:
    """Whether *text* is ``name`` or ``prefix/name``, as label keys and resource names must be."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def is_subdomain(text: str) -> bool:
    """Whether *text* is as the names of most objects must be. Such a name is safe in a path."""
    return len(text) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether *text* may be the value of a label; the empty string may."""
    return not text or (len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None)
