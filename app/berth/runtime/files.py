"""Files that berth writes: complete or not at all, for their owner only, never through a link.

And files for libraries that take secrets from files only: in memory, so that nothing is left on a
disk however the process ends.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

SECRET: Final = 0o600
"""The mode of a file that only its owner may read."""

PUBLIC: Final = 0o644
"""The mode of a file that everybody may read."""


def write_file(path: Path, data: bytes | str, *, mode: int = SECRET) -> None:
    """Make *path* a file with this content (text as UTF-8) and *mode*; replace what was there.

    Whoever looks meanwhile sees the old content or the new one, and nobody without the right ever
    reads any of it: it is written beside, and renamed. The last part of *path* may be a device or
    a pipe, which is written to as it is, but no symbolic link. Raises OSError.
    """
    content = data.encode() if isinstance(data, str) else data
    found = _kind(path)
    if stat.S_ISCHR(found) or stat.S_ISFIFO(found):  # /dev/null, or someone who reads
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as stream:
            stream.write(content)
        return
    if stat.S_ISLNK(found):
        raise OSError(errno.ELOOP, "is a symbolic link, which is not followed", str(path))
    if found and not stat.S_ISREG(found):
        number = errno.EISDIR if stat.S_ISDIR(found) else errno.EINVAL
        raise OSError(number, os.strerror(number), str(path))
    try:
        # A new name that nobody can have put there before, mode 0600 from the start.
        descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as exc:
        exc.filename = str(path)  # not the other name, which says nothing to anybody
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(written).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(written).unlink()
        raise


@contextmanager
def file_in_memory(content: bytes) -> Iterator[str]:
    """Yield the path of a file with *content* that exists in this process alone, for the block.

    Where the system has no such files, it is one in the temporary folder, for its owner only, which
    a process that is killed leaves behind.
    """
    descriptor = open_in_memory(content)
    if descriptor is not None:
        try:
            yield path_of(descriptor)
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # mode 0600
        file.write(content)
        file.flush()
        yield file.name


def open_in_memory(content: bytes) -> int | None:
    """Return the descriptor of a new file in memory with *content*; None if there are none here."""
    if not hasattr(os, "memfd_create"):  # Linux only
        return None
    descriptor = os.memfd_create("berth")  # closed in other programs that are run
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def path_of(descriptor: int) -> str:
    """Return a path by which this process can open *descriptor* again, from its beginning."""
    return f"/proc/self/fd/{descriptor}"


def _kind(path: Path) -> int:
    """Return the mode of what *path* itself is, link or not; 0 for nothing."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0
