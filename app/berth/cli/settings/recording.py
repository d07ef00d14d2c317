"""The recording of a scheduler, as flags ask for it."""

import argparse

from berth.insight.recording.writer import RecordingWriter


def recording(given: argparse.Namespace) -> RecordingWriter | None:
    """Return what writes the file of ``--record``; None without the flag."""
    if given.record is None:
        return None
    most_bytes = given.record_max_size << 20
    return RecordingWriter(given.record, most_bytes=most_bytes, keep=given.record_keep)
