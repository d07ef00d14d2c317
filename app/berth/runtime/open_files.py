"""The limit of open files and sockets of this process."""

import resource
from contextlib import suppress
from typing import Final

MOST_ON_MACOS: Final = 10_240
"""OPEN_MAX: more is refused there, whatever the hard limit says."""


def raise_limit() -> int:
    """Raise the limit to what the system allows at all, as Go programs do; return what it is then.

    The lower one that processes begin with is for programs that use select(2).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MOST_ON_MACOS), hard))
    return limit()


def limit() -> int:
    """Return how many files may be open; what is no limit is a large number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft
