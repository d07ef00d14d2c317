"""Null fields: to the API they are the same as missing ones."""

from collections.abc import Set as AbstractSet
from typing import Any, Final

NULL_TIMES: Final = frozenset(
    {
        "eventTime",
        "firstTimestamp",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastTimestamp",
        "lastTransitionTime",
    }
)
"""What the API server itself writes as null when it is not set: sending it back changes nothing."""


def drop_nulls(value: Any, *, keep: AbstractSet[str] = frozenset()) -> None:
    """Remove null fields, in place, except those named in *keep*.

    Elements of lists stay: their place means something (``schemas.checks.fill_nulls``).
    """
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if "fieldsV1" in item:  # of managed fields, which have no nulls and are large
                continue
            for key in [key for key, child in item.items() if child is None and key not in keep]:
                del item[key]
            todo += item.values()
        elif isinstance(item, list):
            todo += item
