"""Lines that are missing, moved or changed are named; what a killed process left is read."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.insight.recording import lines
from berth.insight.recording.chain import Chain, ChainError
from berth.insight.recording.files import RecordingError
from berth.insight.recording.runs import runs
from berth.insight.recording.writer import RecordingWriter
from berth.runtime.release import version

Lines = list[bytes]
HEADER = lines.encode(
    lines.Header(api_version=lines.API_VERSION, kind=lines.KIND, version=version(), config={})
)


def recording(path: Path, *, steps: int = 6) -> Lines:
    """Write a header and some steps; return the lines of the file."""
    writer = RecordingWriter(path)
    for line in [HEADER, *(lines.encode(lines.Flush(float(t))) for t in range(1, steps + 1))]:
        writer.write(line)
    writer.close()
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def read(path: Path) -> tuple[int, list[str]]:
    """Return how many steps are read, and the warnings."""
    (run,) = runs([path])
    number = sum(1 for _ in run.read())
    return number, [warning.removeprefix(f"{path}: ") for warning in run.warnings()]


def swapped(written: Lines) -> Lines:
    return [*written[:3], written[4], written[3], *written[5:]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(
            lambda w: w[:3] + w[4:],
            "line 4: was written as line 5: 1 line is missing before it, or moved",
            id="a line is missing",
        ),
        pytest.param(
            lambda w: w[:1] + w[4:],
            "line 2: was written as line 5: 3 lines are missing before it, or moved",
            id="some are missing",
        ),
        pytest.param(swapped, "line 4: was written as line 5: ", id="two are swapped"),
        pytest.param(
            lambda w: w[:4] + w[3:],
            "line 5: was written as line 4: it was moved, or repeated",
            id="one is repeated",
        ),
        pytest.param(
            lambda w: [*w[:3], w[3].replace(b'"t":3.0', b'"t":4.0'), *w[4:]],
            "line 4: it, or the line before it, was changed",
            id="one is changed",
        ),
        pytest.param(
            lambda w: [w[0].replace(b'"config":{}', b'"config":{"a":1}'), *w[1:]],
            "line 1: it, or the line before it, was changed",
            id="the header is changed",
        ),
        pytest.param(
            lambda w: [*w[:3], lines.encode(lines.Flush(3.0)) + b"\n", *w[4:]],
            "line 4: has no check sum",
            id="one is not of the recorder",
        ),
        pytest.param(
            lambda w: [*w, w[-2]], "line 9 follows the end of the recording", id="more than all"
        ),
    ],
)
def test_what_was_done_to_lines_is_told_with_the_number(
    tmp_path: Path, spoil: Callable[[Lines], Lines], message: str
) -> None:
    path = tmp_path / "day.json"
    written = recording(path)
    path.write_bytes(b"".join(spoil(written)))

    with pytest.raises(RecordingError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: {message.removeprefix(f'{path}: ')}")


def test_what_a_process_wrote_to_its_end_is_read_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "day.json.gz"
    recording(path)
    assert read(path) == (6, [])


@pytest.mark.parametrize(
    ("left", "steps", "warning"),
    [
        pytest.param(
            lambda w: b"".join(w[:5]),
            4,
            "ends after line 5 without an end: the process was killed, still runs, or could not"
            " write on",
            id="after a line",
        ),
        pytest.param(
            lambda w: b"".join(w[:5])[:-4],
            3,
            "cut off: line 5 is incomplete and was ignored",
            id="in a line",
        ),
    ],
)
def test_what_a_killed_process_left_is_read_and_told(
    tmp_path: Path, left: Callable[[Lines], bytes], steps: int, warning: str
) -> None:
    path = tmp_path / "day.json"
    path.write_bytes(left(recording(path)))
    assert read(path) == (steps, [warning])


def test_older_recordings_are_read_unchecked_and_others_are_told_of(tmp_path: Path) -> None:
    header = lines.Header(
        api_version=lines.UNCHECKED_VERSION, kind=lines.KIND, version="0.0.1", config={}
    )
    path = tmp_path / "day.json"
    path.write_bytes(lines.encode(header) + b"\n" + lines.encode(lines.Flush(1.0)) + b"\n")
    assert read(path) == (
        1,
        [
            f"recorded by berth 0.0.1, and this is {version()}: decisions may differ for that"
            " reason",
            "berth/v1 of an older release: nothing tells whether lines are missing, moved or"
            " changed",
        ],
    )


def test_lines_that_are_missing_where_a_file_ends_are_told(tmp_path: Path) -> None:
    path = tmp_path / "day.json"
    writer = RecordingWriter(path, most_bytes=1)
    for line in (HEADER, lines.encode(lines.Flush(1.0)), lines.encode(lines.Flush(2.0))):
        writer.write(line)
        writer.flush()
    writer.close()
    earlier = path.with_name("day.json.1")
    kept = gzip.decompress(earlier.read_bytes()).splitlines(keepends=True)
    earlier.write_bytes(b"".join(kept[:-1]))
    (run,) = runs(tmp_path.iterdir())

    with pytest.raises(
        RecordingError, match=r"day\.json\.1: lines are missing at its end: .*line 1"
    ):
        list(run.read())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.data())
def test_no_other_sequence_of_lines_passes(numbers: list[int], data: st.DataObject) -> None:
    chain, other = Chain(), Chain()
    written = [chain.sealed(b'{"op":"flush","t":%d}' % number) for number in numbers]
    shuffled = data.draw(st.lists(st.sampled_from(written), max_size=8))
    try:
        for line in shuffled:
            other.check(line)
    except ChainError:
        assert shuffled != written[: len(shuffled)]
    else:
        assert shuffled == written[: len(shuffled)]
