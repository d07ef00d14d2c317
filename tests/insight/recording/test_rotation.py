"""A recording in several files is the recording that one file would have."""

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.recording import lines
from berth.insight.recording.files import RecordingError, RecordingFile
from berth.insight.recording.replay import Replay
from berth.insight.recording.runs import RecordedRun, runs
from berth.insight.recording.writer import RecordingWriter
from berth_plugins.registry import IN_TREE
from tests.insight.recording.world import RecordedWorld

HEADER = lines.encode(
    lines.Header(api_version=lines.API_VERSION, kind=lines.KIND, version="0", config={}, seed=7)
)
MANY = 10_000


def step(number: int) -> bytes:
    """Return a line that compresses badly."""
    return lines.encode(lines.Preempt(float(number), f"{random.Random(number).getrandbits(128):x}"))


def written(
    path: Path, recorded: list[bytes], *, at_once: int, most_bytes: int, keep: int = MANY
) -> RecordingWriter:
    """Write *recorded*, so many lines *at_once*."""
    writer = RecordingWriter(path, most_bytes=most_bytes, keep=keep)
    for number, line in enumerate(recorded, start=1):
        writer.write(line)
        if number % at_once == 0:
            writer.flush()
    writer.close()
    return writer


def files_in(folder: Path) -> list[Path]:
    files = [*folder.iterdir()]
    random.Random(1).shuffle(files)
    return files


def only(found: list[RecordedRun]) -> RecordedRun:
    (run,) = found
    return run


@given(number=st.integers(1, 120), at_once=st.integers(1, 40), most_bytes=st.integers(1, 2_000))
@settings(max_examples=40, deadline=None)
def test_files_joined_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, number: int, at_once: int, most_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("recording")
    steps = [step(i) for i in range(number)]

    writer = written(folder / "day.gz", [HEADER, *steps], at_once=at_once, most_bytes=most_bytes)

    run = only(runs(files_in(folder)))
    assert [lines.encode(line) for _, line in run.read()] == steps
    assert writer.num_bytes == sum(file.path.stat().st_size for file in run.files)
    assert [file.header() for file in run.files] == [
        msgspec.structs.replace(run.header, segment=i, previous=previous)
        for i, previous in enumerate(["", *(file.digest for file in run.files[:-1])])
    ]
    for file in run.files[:-1]:
        more_than_one_part = len([*file.steps()]) > at_once
        assert not more_than_one_part or file.path.stat().st_size <= most_bytes


async def replayed(run: RecordedRun) -> Replay:
    replay = Replay(run.header, IN_TREE)
    for _, line in run.read():
        await replay.step(line)
    await replay.end()
    return replay


async def check_replay(
    tmp_path: Path, *, seed: int, attempts: int, most_bytes: int, min_files: int
) -> None:
    world = RecordedWorld(seed=seed)
    await world.live(attempts=attempts)
    written(tmp_path / "day.gz", world.lines, at_once=50, most_bytes=most_bytes)

    run = only(runs(files_in(tmp_path)))
    replay = await replayed(run)

    assert len(run.files) >= min_files
    decided = [
        decision
        for line in map(lines.decode, world.lines)
        if isinstance(line, lines.Attempt)
        for decision in line.decisions
    ]
    again = [
        decision
        for _, line in run.read()
        if isinstance(line, lines.Attempt)
        for decision in line.decisions
    ]
    assert again == decided
    assert replay.following.decisions == len(decided) >= attempts
    assert replay.following.differences == []


async def test_decisions_in_several_files_are_made_again(tmp_path: Path) -> None:
    await check_replay(tmp_path, seed=3, attempts=100, most_bytes=4_000, min_files=4)


@pytest.mark.slow
async def test_decisions_in_many_files_are_made_again(tmp_path: Path) -> None:
    await check_replay(tmp_path, seed=4, attempts=800, most_bytes=4_000, min_files=30)


def test_a_recording_ends_where_its_first_file_would_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "day.gz"
    path.with_name("day.gz.1").write_bytes(b"of an earlier process")
    steps = [step(i) for i in range(100)]

    writer = written(path, [HEADER, *steps], at_once=10, most_bytes=700, keep=2)

    run = only(runs(files_in(tmp_path)))
    kept = [lines.encode(line) for _, line in run.read()]
    assert [file.path.name for file in run.files] == ["day.gz.2", "day.gz.1", "day.gz"]
    assert kept == steps[: len(kept)]
    assert 0 < len(kept) < len(steps)
    assert writer.problem.startswith("all 3 files")
    assert (writer.num_lines, writer.dropped) == (1 + len(kept), len(steps) - len(kept))


def test_recordings_of_several_processes_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "day.gz"
    for t in (5.0, 6.0):
        header = lines.encode(msgspec.structs.replace(lines.decode(HEADER), t=t))
        written(path, [header, *(step(i) for i in range(20))], at_once=5, most_bytes=300)

    found = runs(files_in(tmp_path))

    assert [run.header.t for run in found] == [5.0, 6.0]
    assert [[lines.encode(line) for _, line in run.read()] for run in found] == [
        [step(i) for i in range(20)]
    ] * 2


def cut(files: list[Path]) -> list[Path]:
    data = files[1].read_bytes()
    files[1].write_bytes(data[:-20])
    return files


@pytest.mark.parametrize(
    ("given_files", "message"),
    [
        pytest.param(lambda files: files[1:], "day.gz.2: continues another file", id="the first"),
        pytest.param(
            lambda files: [files[0], *files[2:]],
            "day.gz.1: continues another file",
            id="one in the middle",
        ),
        pytest.param(
            lambda files: [*files, files[1]], "day.gz.2: continues another file", id="one twice"
        ),
        pytest.param(cut, "day.gz.2: is cut off, and ", id="the end of one"),
    ],
)
def test_a_gap_is_named(
    tmp_path: Path, given_files: Callable[[list[Path]], list[Path]], message: str
) -> None:
    path = tmp_path / "day.gz"
    written(path, [HEADER, *(step(i) for i in range(30))], at_once=8, most_bytes=300)
    files = [path.with_name(f"day.gz.{number}") for number in (3, 2, 1)] + [path]
    assert [RecordingFile(file).header().segment for file in files] == [0, 1, 2, 3]

    with pytest.raises(RecordingError) as raised:
        deque((list(run.read()) for run in runs(given_files(files))), maxlen=0)
    assert message in str(raised.value)
