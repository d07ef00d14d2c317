"""Errors of a run file or of what it refers to."""

from berth.runtime.errors import UserError


class LabError(UserError):
    """Names the file or field, and the value."""
