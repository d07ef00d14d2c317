"""How attempts end."""

from enum import StrEnum


class Result(StrEnum):
    """How an attempt ended; the values are those of the ``result`` label in metrics."""

    SCHEDULED = "scheduled"
    """It has a node. The binding that follows may fail all the same."""
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"
