"""The context of a write, beside the object."""

import msgspec

from berth.cluster.access.users import User


class WriteContext(msgspec.Struct, frozen=True):
    """Who writes, and how."""

    user: User
    field_manager: str
    """``?fieldManager=``, else what the User-Agent says before its first slash."""
    dry_run: bool = False
    """Everything is checked and nothing kept."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """What the answer is to say in ``Warning`` headers; steps append to it."""
