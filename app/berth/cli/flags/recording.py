"""The recording of a scheduler, as flags ask for it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from berth.runtime.terminal import positive

if TYPE_CHECKING:
    from berth.insight.recording.writer import RecordingWriter


def add_recording_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--record``, ``--record-max-size`` and ``--record-keep``."""
    parser.add_argument(
        "--record", type=Path, metavar="FILE",
        help="Record every step of the scheduler in this file, for `berth replay`. Earlier files"
        " are kept as FILE.1, FILE.2 and so on.",
    )  # fmt: skip
    parser.add_argument(
        "--record-max-size", type=positive, default=1024, metavar="MIB",
        help="Size of the compressed file in MiB at which another one continues it; default:"
        " %(default)s.",
    )  # fmt: skip
    parser.add_argument(
        "--record-keep", type=positive, default=5, metavar="N",
        help="Number of earlier files to keep, of this process and of those before it. The"
        " recording ends when a file of this process would have to go; default: %(default)s.",
    )  # fmt: skip


def recording(given: argparse.Namespace) -> "RecordingWriter | None":
    """Return what writes the file of ``--record``; None without the flag."""
    if given.record is None:
        return None
    from berth.insight.recording.writer import RecordingWriter

    most_bytes = given.record_max_size << 20
    return RecordingWriter(given.record, most_bytes=most_bytes, keep=given.record_keep)
