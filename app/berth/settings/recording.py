"""Where a scheduler is recorded, by the flags."""

import argparse

from berth.recording.writer import RecordingWriter


def recording(given: argparse.Namespace) -> RecordingWriter | None:
    """Begin the file of ``--record``; None without the flag. Raises UserError."""
    if given.record is None:
        return None
    return RecordingWriter(given.record, most_bytes=given.record_max_size << 20)
