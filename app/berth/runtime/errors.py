"""Errors that a person made, whichever part of berth finds them."""

from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for JSON that is not as it should be: also for bytes that are no text, and
for brackets within brackets within brackets."""


MISSHAPEN: Final = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, LookupError)
"""What is raised over JSON that is not the object it should be."""


class UserError(Exception):
    """Input that cannot be used; the message says which and why. Ends a command with status 2."""
