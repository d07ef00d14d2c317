"""Files of recordings: written by the second, read line by line, whatever is in them."""

import asyncio
import errno
import gzip
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.insight.recording import lines, writer
from berth.insight.recording.files import LONGEST_LINE, RecordingError, RecordingFile
from berth.insight.recording.writer import KEPT, RecordingWriter
from berth.runtime.clock import FakeClock
from berth.runtime.errors import UserError
from tests.insight.recording.world import sealed

HEADER = lines.encode(
    lines.Header(api_version=lines.API_VERSION, kind=lines.KIND, version="0.1.0", config={})
)
FLUSH = lines.encode(lines.Flush(1.5))

ALONE = sealed(HEADER)


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - a thread makes it true, or the loop
        await asyncio.sleep(0)


def file_of(tmp_path: Path, data: bytes) -> RecordingFile:
    path = tmp_path / "day.json"
    path.write_bytes(data)
    return RecordingFile(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "no recording: the file is empty", id="an empty file"),
        pytest.param(b"\0\xff\xfe garbage\n", "line 1: no line of a recording", id="garbage"),
        pytest.param(sealed(FLUSH), "line 1 has no header", id="no header"),
        pytest.param(
            sealed(HEADER.replace(b"berth/v2", b"berth/v9")),
            "line 1: apiVersion 'berth/v2', kind 'Recording' are needed, got apiVersion 'berth/v9'",
            id="another version",
        ),
        pytest.param(sealed(HEADER, HEADER), "line 2 has a header", id="a header in the middle"),
        pytest.param(
            ALONE + b'{"op":"dance"}\n', "line 2: no line of a recording", id="an unknown step"
        ),
        pytest.param(
            ALONE + b'{"op":"attempt","t":"x"}\n', "line 2: no line of a", id="another type"
        ),
        pytest.param(ALONE + b"[" * 100_000 + b"\n", "line 2: no line of a", id="brackets"),
        pytest.param(
            ALONE + b"x" * (LONGEST_LINE + 1), "line 2: longer than 16 MiB", id="long line"
        ),
        pytest.param(b"\x1f\x8b\x08garbage", "day.json: ", id="damaged where it begins"),
        pytest.param(gzip.compress(ALONE) + b"garbage", "line 2: ", id="garbage after a part"),
    ],
)
def test_what_is_no_recording_is_named_with_its_line(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(RecordingError) as raised:
        list(file_of(tmp_path, data).read())
    assert str(raised.value).startswith(f"{tmp_path / 'day.json'}: ")
    assert message in str(raised.value)


def test_a_bomb_is_refused_with_its_line(tmp_path: Path) -> None:
    bomb = gzip.compress(ALONE + bytes(LONGEST_LINE + 2))
    with pytest.raises(RecordingError, match=r"day\.json: line 2: longer than"):
        list(file_of(tmp_path, bomb).read())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none\.gz: No such file"):
        list(RecordingFile(tmp_path / "none.gz").read())


@pytest.mark.parametrize("compressed", [False, True])
def test_a_cut_end_is_left_out_and_told(tmp_path: Path, *, compressed: bool) -> None:
    whole = sealed(HEADER, FLUSH)
    cut = sealed(HEADER, FLUSH, FLUSH).removeprefix(whole)[:-3]
    data = whole + cut
    if compressed:
        data = gzip.compress(whole) + gzip.compress(cut)[:-9]
    file = file_of(tmp_path, data)

    read = list(file.read())

    assert [type(line) for line in read[:2]] == [lines.Header, lines.Flush]
    assert file.is_cut


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "day.json.gz"
    recording = RecordingWriter(path)
    for line in (HEADER, FLUSH, FLUSH):
        recording.write(line)
        recording.flush()
    recording.close()

    file = RecordingFile(path)
    read = list(file.read())

    assert [type(line) for line in read] == [lines.Header, lines.Flush, lines.Flush]
    assert not file.is_cut
    assert file.has_end
    assert recording.num_lines == 3
    assert recording.num_bytes == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_lines_are_on_disk_after_a_second(tmp_path: Path) -> None:
    clock = FakeClock()
    recording = RecordingWriter(tmp_path / "day.gz")
    recording.write(HEADER)
    task = asyncio.create_task(recording.run(clock))
    await until(lambda: clock.next_wakeup() is not None)
    clock.advance(writer.PERIOD)
    await until(lambda: recording.num_bytes > 0)
    assert len(list(RecordingFile(recording.path).read())) == 1
    recording.write(FLUSH)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(list(RecordingFile(recording.path).read())) == 2


def test_earlier_recordings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "day.gz"
    for i in range(KEPT + 3):
        recording = RecordingWriter(path)
        recording.write(HEADER.replace(b"0.1.0", b"%d" % i))
        recording.close()

    def version(of: Path) -> str:
        header = next(RecordingFile(of).read())
        assert isinstance(header, lines.Header)
        return header.version

    names = ["day.gz", *(f"day.gz.{number}" for number in range(1, KEPT + 1))]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    assert [version(tmp_path / name) for name in names] == ["7", "6", "5", "4", "3", "2"]


class FullDisk:
    """A file that takes no more than *room* bytes."""

    closed = False

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        size, self.room = min(len(data), self.room), 0
        return size

    def close(self) -> None: ...


@pytest.mark.parametrize("room", [0, 10])
def test_a_recording_ends_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, room: int
) -> None:
    recording = RecordingWriter(tmp_path / "day.gz")
    recording.write(HEADER)
    recording.close()
    monkeypatch.setattr(recording, "_file", FullDisk(room))
    recording.write(FLUSH)
    recording.write(FLUSH)
    recording.flush()
    recording.write(FLUSH)

    assert recording.problem == "No space left on device"
    assert recording.num_lines == 1
    assert recording.dropped == 3
    assert "recording ended" in caplog.text


def test_a_recording_ends_where_too_much_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_PENDING", 100)
    recording = RecordingWriter(tmp_path / "day.gz")
    for _ in range(9):
        recording.write(FLUSH)
    recording.close()
    assert "too slow" in recording.problem
    assert recording.dropped


def test_a_file_that_cannot_be_made_is_wrong_usage(tmp_path: Path) -> None:
    recording = RecordingWriter(tmp_path / "none" / "day.gz")
    with pytest.raises(UserError, match=r"--record .*none/day\.gz: No such file"):
        recording.write(HEADER)


def test_earlier_recordings_stay_until_there_is_something_to_record(tmp_path: Path) -> None:
    path = tmp_path / "day.gz"
    path.write_bytes(b"earlier")

    RecordingWriter(path).close()

    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]
