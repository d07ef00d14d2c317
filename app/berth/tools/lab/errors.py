"""What is wrong with a run file or what it refers to."""

from berth.runtime.errors import UserError


class LabError(UserError):
    """Names the file or field, and the value."""
