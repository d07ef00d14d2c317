"""The error of a device selector."""

from typing import Final

COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
"""How CEL says that an expression was stopped."""

HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)
"""What kube-scheduler adds when something is not there."""


class SelectorError(Exception):
    """An expression cannot be compiled, or failed on a device; the text is for people."""


class CompileError(SelectorError):
    """An expression that no device can be asked; ``detail`` is the API server's wording."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"CEL compile error: {detail}")
        self.detail = detail
