"""Errors of an event loop that nobody waits for."""

import asyncio
import logging
from typing import Any, Final

log = logging.getLogger(__name__)

CLOSED: Final = "the handler is closed"
"""What uvloop says of a write to a connection that was closed meanwhile, as a RuntimeError."""


def is_of_network(error: object) -> bool:
    """Whether connections end so: OSError has timeouts and TLS among its kinds."""
    return isinstance(error, OSError | EOFError) or (
        isinstance(error, RuntimeError) and CLOSED in str(error)
    )


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the network in a line; another, with its traceback, as asyncio does.

    To be set as the exception handler of a loop. Connections of clients that come and go fail
    beside every await: the traceback is that of the loop, and says nothing.
    """
    error = context.get("exception")
    if is_of_network(error):
        problem = str(error) or type(error).__name__
        log.warning("connection failed", extra={"what": context["message"], "error": problem})
    else:
        loop.default_exception_handler(context)
