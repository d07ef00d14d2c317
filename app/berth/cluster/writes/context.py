"""What every write knows beside the object."""

from dataclasses import dataclass, field

from berth.cluster.access.users import User


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Who writes, and how."""

    user: User
    field_manager: str
    """``?fieldManager=``, else what the User-Agent says before its first slash."""
    dry_run: bool = False
    """Everything is checked and nothing kept."""
    warnings: list[str] = field(default_factory=list)
    """What the answer is to say in ``Warning`` headers; steps append to it."""
