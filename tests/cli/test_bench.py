"""``berth bench``: the arguments, and both forms of output."""

import msgspec
import pytest

from berth import cli
from berth.tools.bench.instructions import why_not
from berth.tools.bench.results import Record

TOY = ("engine", "--nodes=12", "--pods=5", "--repetitions=1", "--runs=2")


def measured(output: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Measure; return the lines, which have instructions, or it is told once why not."""
    assert cli.execute("bench", [*TOY, f"--output={output}"]) == 0
    shown = capsys.readouterr()
    reason = why_not()
    assert shown.err == (f"Instructions are not counted: {reason}\n" if reason else "")
    assert ("instructions" in shown.out) == (not reason)
    return shown.out.splitlines()


def test_each_figure_is_a_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = measured("json", capsys)
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    assert len({record.name for record in records}) == len(records) > 10
    assert {(record.bench, len(record.values)) for record in records} == {("engine", 2)}
    assert {record.command for record in records} == {f"berth bench {' '.join(TOY)} --output=json"}


def test_the_table_begins_with_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    first, header, *rows = measured("table", capsys)
    assert first.endswith("; runs: 2")
    assert header.split() == ["median", "min", "max", "unit"]
    assert len(rows) > 10
    assert all(" µs " in row for row in rows)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["engine", "--pods=-5"], "--pods: -5 must be at least 1"),
        (["scale", "--nodes=5,0"], "--nodes: 0 must be at least 1"),
        (["steady", "--rate=0"], "--rate: 0 must be a number above 0"),
        (["steady", "--seconds=nan"], "--seconds: nan must be a number above 0"),
    ],
)
def test_an_argument_that_cannot_be_measured_is_wrong_usage(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", *argv])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "name a test case of scheduler_perf; --list lists them"),
        (["Unknown"], "Unknown: there are SchedulingBasic, "),
        (["SchedulingBasic/no"], "no: SchedulingBasic has 5Nodes, "),
    ],
)
def test_an_unknown_workload_is_told_before_the_head_of_the_table(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "scheduler_perf", *argv]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out


def test_decisions_are_measured_at_each_size(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["scale", "--nodes=9,12", "--pods=0,3", "--repetitions=1", "--runs=1", "--output=json"]
    assert cli.execute("bench", argv) == 0
    lines = capsys.readouterr().out.splitlines()
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    sizes = [(record.at["nodes"], record.at["pods"]) for record in records]
    assert sorted(set(sizes)) == [(9, 0), (9, 3), (12, 0), (12, 3)]
    assert len(sizes) == 4 * (2 * 5 + 1)
