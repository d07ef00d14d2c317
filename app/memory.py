"""How this process treats its memory: two settings that were measured to matter."""

import gc

import numpy as np

HEAP_KEPT = 24 * 1024 * 1024
"""Bytes. glibc never trims less than twice the largest mapping that was ever freed (mallopt(3)),
up to 32 MiB."""


def keep_heap() -> None:
    """Keep glibc from giving the top of the heap back between attempts.

    Every attempt makes and drops a few hundred kilobytes of columns. By default glibc returns such
    memory to the system at once and faults it in again at the next attempt, which was measured to
    make scoring up to three times slower at 5,000 nodes. Harmless with another allocator.
    """
    block = np.empty(HEAP_KEPT, np.uint8)
    del block


def keep_objects() -> None:
    """Spare the garbage collector what is there now; to be called when the caches are filled.

    A full collection walks all nodes and pods, a tenth of a second at 5,000 nodes, and frees
    nothing: what leaves the caches is freed by its reference count.
    """
    gc.collect()
    gc.freeze()
