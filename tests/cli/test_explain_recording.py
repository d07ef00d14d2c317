"""``berth explain --recording``: what was decided, and the moment before it."""

import json
from pathlib import Path

import pytest

from berth import cli
from berth.cli import main
from berth.insight.recording import lines


@pytest.fixture
def chosen(recorded: list[bytes]) -> tuple[lines.Attempt, lines.Decision]:
    """An attempt that chose between nodes of different scores."""
    return next(
        (line, decision)
        for line in map(lines.decode, recorded)
        if isinstance(line, lines.Attempt)
        for decision in line.decisions
        if decision.node and decision.score is not None and not decision.equals
    )


def test_the_decision_its_runner_up_and_what_would_have_changed_it(
    file: Path,
    chosen: tuple[lines.Attempt, lines.Decision],
    capsys: pytest.CaptureFixture[str],
) -> None:
    attempt, decision = chosen
    command = ["explain", "--recording", str(file), decision.pod, "--nodes", "1"]

    assert main(command) == 0
    table = capsys.readouterr().out
    assert f"{decision.pod} went to {decision.node} ({decision.score}) before " in table
    assert "as recorded     in every field" in table
    assert f"attempt         {attempt.number} of the recording" in table
    assert "the moment before:" in table

    assert main([*command, "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    deciding = told["deciding"]
    assert deciding["isAsRecorded"]
    assert deciding["decision"]["choice"]["node"] == decision.node
    assert deciding["decision"]["choice"]["runnerUp"]
    assert told["explanation"]["state"]["node"] == ""
    for change in deciding["otherWeights"]:
        assert change["node"] != decision.node
        assert f"instead         {change['words']}" in table


def test_a_time_is_read_in_both_ways(
    file: Path,
    chosen: tuple[lines.Attempt, lines.Decision],
    capsys: pytest.CaptureFixture[str],
) -> None:
    attempt, decision = chosen
    command = ["explain", "--recording", str(file), decision.pod, "--output", "json", "--at"]
    assert main([*command, str(attempt.t)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["explanation"]["state"]["node"] == decision.node
    assert told["deciding"] is None
    assert main([*command, told["at"]]) == 0
    assert json.loads(capsys.readouterr().out) == told


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(["--recording", "f"], "name a pod", id="no pod"),
        pytest.param(["--at", "1", "p"], "--at requires --recording", id="no recording"),
        pytest.param(
            ["--recording", "f", "p", "--service", "a/b"],
            "--recording cannot be combined with --server and --service",
            id="a scheduler, too",
        ),
        pytest.param(["--recording", "f", "deployment/web"], "PodGroups only", id="a workload"),
        pytest.param(
            ["--recording", "f", "compositepodgroup/g"], "PodGroups only", id="a group of groups"
        ),
        pytest.param(
            ["--recording", "f", "p", "--at", "noon"],
            "'noon' must be a time such as 2026-11-27T10:30:00Z",
            id="no time",
        ),
    ],
)
def test_flags_that_do_not_fit(
    flags: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.execute("explain", flags)
    assert why in capsys.readouterr().err
