"""Keeps glibc from giving the top of the heap back between attempts.

Every attempt makes and drops a few hundred kilobytes of columns. By default glibc returns such
memory to the system at once and faults it in again at the next attempt, which was measured to make
scoring up to three times slower at 5,000 nodes.
"""

import numpy as np

HEAP_KEPT = 24 * 1024 * 1024
"""Bytes. glibc never trims less than twice the largest mapping that was ever freed (mallopt(3)),
up to 32 MiB."""


def keep_heap() -> None:
    """Raise the trim threshold for this process; harmless where the allocator is another one."""
    block = np.empty(HEAP_KEPT, np.uint8)
    del block
