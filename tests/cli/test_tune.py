"""``berth tune`` on a recording: what it searches from."""

from pathlib import Path

import pytest
from tests.builders import node, pod
from tests.tools.lab.test_recording_workload import gone, put, tried, write

from berth.cli import main


def test_a_recording_is_tuned_from_its_own_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [put(node("a", cpu=4000), -5), put(node("b", cpu=4000), -5)]
    pods = [pod(f"p{number}", cpu=100) for number in range(8)]
    for number, each in enumerate(pods):
        at = 10.0 * number
        steps += [put(each, at), tried(at), put(each.assigned_to("a"), at + 1)]
    steps += [gone(each.assigned_to("a"), 500.0 + number) for number, each in enumerate(pods)]
    file = write(tmp_path, *steps)
    flags = ["--parts=4", "--try-only", "-j1", "-o=json"]
    tries = ['--try=NodeResourcesFit.scoringStrategy.type=["MostAllocated"]']

    status = main(["tune", str(file), *flags, *tries, "--minimize=unplaced pods"])

    assert status == 1
    assert '"objective":"less unplaced pods"' in capsys.readouterr().out


def test_several_lab_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "a.yaml", "b.yaml", "--minimize=cost"]) == 2
    assert "b.yaml: only one Lab file can be tuned" in capsys.readouterr().err
