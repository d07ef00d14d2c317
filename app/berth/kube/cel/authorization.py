"""``authorizer`` in expressions: what it is asked, and who answers.

A value of CEL has no behaviour of its own, so a check is a map that says what is to be checked, and
whoever evaluates expressions says with :func:`answering` who decides.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

ACCOUNT: Final = "serviceAccount"
"""In a check: ``namespace:name`` of who is asked about; empty: who makes the request."""
REQUEST_RESOURCE: Final = "requestResource"

Check = Mapping[str, str]
"""``group``, ``resource``, ``subresource``, ``namespace`` and ``name``, or else ``path``."""


class Answer(NamedTuple):
    """Whether a check passes, and why."""

    allowed: bool
    reason: str = ""


Decide = Callable[[Check, str], Answer]
"""Decides about a check and a verb."""

_DECIDE: ContextVar[Decide] = ContextVar("decide")


@contextmanager
def answering(decide: Decide) -> Iterator[None]:
    """Have *decide* answer all checks of expressions that are evaluated in the block."""
    token = _DECIDE.set(decide)
    try:
        yield
    finally:
        _DECIDE.reset(token)


def decision(check: Check, verb: str) -> dict[str, Any]:
    """Return the answer to a check, as CEL has it; what goes wrong is its error."""
    try:
        allowed, reason = _DECIDE.get()(check, verb)
    except (LookupError, ValueError) as exc:
        return {"allowed": False, "reason": "", "error": str(exc) or "nobody can be asked"}
    return {"allowed": allowed, "reason": reason, "error": ""}


def authorizer(request: Check) -> dict[str, Any]:
    """Return the variable ``authorizer``, for a request about the resource *request*."""
    return {ACCOUNT: "", REQUEST_RESOURCE: {ACCOUNT: "", **request}}
