"""Certificates and keys written in a kubeconfig reach the TLS library without touching a disk.

kubernetes_asyncio writes them to files in the temporary folder and removes these at exit, so that
a process that is killed leaves its client key behind.
"""

import os
from collections import OrderedDict
from functools import cache
from typing import Any, Final

from berth.runtime.files import open_in_memory, path_of

MOST_KEPT: Final = 64
"""Files; those of plugins that make a new certificate now and then, the oldest go."""


@cache
def keep_in_memory() -> None:
    """Have kubernetes_asyncio put into memory what it would write to temporary files.

    For this process, for good. Where the system has no files in memory, nothing changes.
    """
    from kubernetes_asyncio.config.kube_config import FileOrData

    on_disk = FileOrData._create_temp_file_with_content

    def in_memory(self: Any, content: str | bytes) -> str:
        return _path(content.encode() if isinstance(content, str) else content) or str(
            on_disk(self, content)
        )

    FileOrData._create_temp_file_with_content = in_memory  # type: ignore[method-assign]  # is meant


_open: OrderedDict[bytes, int] = OrderedDict()
"""What was asked for, and where it is: the library asks every minute, and opens it right then."""


def _path(content: bytes) -> str | None:
    descriptor = _open.pop(content, None)
    if descriptor is None:
        descriptor = open_in_memory(content)
    if descriptor is None:
        return None
    _open[content] = descriptor
    if len(_open) > MOST_KEPT:
        os.close(_open.popitem(last=False)[1])
    return path_of(descriptor)
