"""``berth replay``: what is the same, what differs and why, and the exit status."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.insight.recording.world import sealed

from berth.cli import main
from berth.insight.recording import lines
from berth.insight.recording.writer import RecordingWriter

WEIGHTED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: NodeResourcesBalancedAllocation, weight: 50}]
"""


def test_the_same_decisions_end_with_status_0(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(file)]) == 0

    number = capsys.readouterr().out.split()[1]
    assert main(["replay", str(file), str(file), "--speed", "1e9"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == [f"decisions  {2 * int(number)}", f"the same   {2 * int(number)}"]


def test_a_changed_weight_is_named_with_status_1(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weighted.yaml").write_text(WEIGHTED)
    command = ["replay", str(file), "--config", str(tmp_path / "weighted.yaml")]

    assert main([*command, "--limit", "1"]) == 1
    table = capsys.readouterr().out
    assert main([*command, "-o", "json"]) == 1
    *listed, summary = map(json.loads, capsys.readouterr().out.splitlines())

    assert "NodeResourcesBalancedAllocation makes the largest difference" in table
    assert f"and {len(listed) - 1} more (--limit, or -o json for all)" in table
    assert summary["decisions"] == summary["same"] + len(listed)
    assert sum(summary["differ"].values()) == len(listed)
    (first, *_) = [each for each in listed if each["kind"] == "differed"]
    assert first["plugin"] in first["words"]
    assert first["differences"][first["plugin"]] > 0
    assert first["recorded"]["node"] != first["now"]["node"]


def test_files_of_one_recording_are_replayed_in_their_order(
    recorded: list[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = RecordingWriter(tmp_path / "day.json.gz", most_bytes=2_000, keep=99)
    for number, line in enumerate(recorded, start=1):
        writer.write(line)
        if number % 50 == 0:
            writer.flush()
    writer.close()
    files = sorted(map(str, tmp_path.iterdir()))  # the last one first
    assert len(files) > 2

    assert main(["replay", *files]) == 0
    decisions = sum(line.startswith(b'{"op":"attempt"') for line in recorded)
    assert capsys.readouterr().out.splitlines()[0].split() == ["decisions", str(decisions)]

    assert main(["replay", files[0]]) == 2
    assert f"{files[0]}: continues another file" in capsys.readouterr().err


def test_until_stops(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--until", "7"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["decisions", "7"]


def test_a_cut_file_is_replayed_as_far_as_it_goes(
    file: Path, recorded: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    data = file.read_bytes()
    file.write_bytes(data + data[:200])  # another part, of which the end is missing

    assert main(["replay", str(file)]) == 0

    out = capsys.readouterr().out
    assert f"warning    {file}: cut off: line {len(recorded) + 2} is incomplete" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            lines.Added(1e9, "pods", msgspec.Raw(b'{"metadata":{"name":1}}')),
            "line 2: object of kind 'pods': Expected `str`, got `int` - at `$.metadata.name`",
            id="an object",
        ),
        pytest.param(
            lines.Answer(1e9, "claim: get", "c", result=msgspec.Raw(b'{"spec":[]}')),
            "line 2: result of 'claim: get': Expected `object`, got `array` - at `$.spec`",
            id="an answer",
        ),
        pytest.param(
            lines.Bound(1e9, "1", code=99), "line 2: code: 99: must be a code", id="a status"
        ),
    ],
)
def test_what_cannot_be_meant_is_named_with_line_and_field(
    line: lines.Line,
    message: str,
    recorded: list[bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "day.json"
    path.write_bytes(sealed(recorded[0], lines.encode(line)))
    assert main(["replay", str(path)]) == 2
    assert f"{path}: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["none.gz"], "none.gz: No such file or directory"),
        (["none.gz", "--config", "none.yaml"], "none.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_read_ends_with_status_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *argv]) == 2
    assert message in capsys.readouterr().err
