"""The command line: exit statuses and messages. For commands that serve: tests/embedded."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from berth import cli

RECORDED = Path(__file__).parents[1] / "conformance" / "recorded"


def scenario(name: str, **what: Any) -> dict[str, Any]:
    """One node, one pending pod."""
    return {
        "id": name,
        "objects": [
            {
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
            }
        ],
        "pod": {"kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u"}},
        **what,
    }


def explain(tmp_path: Path, *lines: str) -> list[dict[str, Any]]:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert cli.main(["explain", "-f", str(source), "-o", str(target)]) == 0
    return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def test_explain_answers_each_scenario_in_order(tmp_path: Path) -> None:
    answers = explain(
        tmp_path,
        json.dumps(scenario("bare")),
        json.dumps({"scenario": scenario("wrapped"), "expected": {"not": "read"}}),
    )

    assert [answer["id"] for answer in answers] == ["bare", "wrapped"]
    assert [answer["best"] for answer in answers] == [["n1"], ["n1"]]


def test_explain_reads_and_writes_gzip(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl.gz"
    assert cli.main(["explain", "-f", str(RECORDED / "image.jsonl.gz"), "-o", str(target)]) == 0

    with gzip.open(target, "rt", encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line in lines]
    assert ids == [f"image-1-{i:04}" for i in range(40)]


def test_a_sequence_is_not_guessed_at(tmp_path: Path) -> None:
    several = scenario("sequence", pods=[])
    del several["pod"]
    (answer,) = explain(tmp_path, json.dumps(several))

    assert answer == {
        "id": "sequence",
        "unsupported": "a sequence of pods; explain takes one pod",
    }


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("{", "line 1: not JSON", id="no JSON"),
        pytest.param("[1]", "line 1: an object is needed, got list", id="no object"),
        pytest.param(
            json.dumps(scenario("x", pod={"kind": "Pod", "spec": {"containers": 1}})),
            "Expected `array`, got `int` - at `$.spec.containers`",
            id="a pod of the wrong shape",
        ),
        pytest.param(
            json.dumps(scenario("x", config={"kind": "Nonsense"})),
            "couldn't decode as KubeSchedulerConfiguration",
            id="another kind of configuration",
        ),
        pytest.param(
            json.dumps(
                scenario(
                    "x",
                    objects=[
                        {
                            "kind": "Node",
                            "metadata": {"name": "bad"},
                            "status": {"allocatable": {"cpu": "1x"}},
                        }
                    ],
                )
            ),
            "Node 'bad': ",
            id="a node with a nonsense quantity",
        ),
    ],
)
def test_explain_names_what_is_wrong(
    line: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(line, encoding="utf-8")

    status = cli.main(["explain", "-f", str(source), "-o", str(tmp_path / "out")])

    assert status == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "status", "says"),
    [
        pytest.param(["version"], 0, "berth 0.1.0", id="version"),
        pytest.param(["--version"], 0, "berth 0.1.0", id="version as a flag"),
        pytest.param(["--version", "--raw"], 0, "(kube-scheduler 1.37", id="version, all of it"),
        pytest.param(["-h"], 0, "usage: berth COMMAND", id="help in short"),
        pytest.param(["help"], 0, "usage: berth COMMAND", id="help as a command"),
        pytest.param(["help", "--help"], 0, "usage: berth COMMAND", id="help about help"),
        pytest.param(["help", "fly"], 2, "'fly' is not a command", id="help about nothing"),
        pytest.param(["exlpain"], 2, "did you mean `berth explain`?", id="a slip of the fingers"),
        pytest.param([], 0, "usage: berth COMMAND", id="nothing"),
        pytest.param(["--help"], 0, "usage: berth COMMAND", id="help"),
        pytest.param(["fly"], 2, "'fly' is not a command", id="unknown command"),
        pytest.param(
            ["run", "--config=/nonexistent/file"], 2, "/nonexistent/file", id="no such config"
        ),
        pytest.param(
            ["run", "--kubeconfig=/nonexistent/file"], 2, "/nonexistent/file", id="no kubeconfig"
        ),
        pytest.param(
            ["up", "--node-template", "/nonexistent/file"], 2, "/nonexistent/file", id="no template"
        ),
        pytest.param(
            ["up", "--kubeconfig-out", "/nonexistent/kubeconfig"],
            2,
            "/nonexistent/",
            id="nowhere to write the kubeconfig",
        ),
        pytest.param(
            ["explain", "-f", "/nonexistent/in", "-o", "/dev/null"],
            2,
            "/nonexistent/in: No such file",
            id="no scenarios",
        ),
    ],
)
def test_exit_status_and_message(
    argv: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == status

    printed = capsys.readouterr()
    assert says in printed.out + printed.err


@pytest.mark.parametrize("name", cli.COMMANDS)
@pytest.mark.parametrize("spelled", ["help {}", "{} --help", "{} -h"])
def test_help_about_a_command(name: str, spelled: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(spelled.format(name).split())

    assert capsys.readouterr().out.startswith(f"usage: berth {name}")


def test_flags_of_version_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["version", "--row"])

    assert "--row" in capsys.readouterr().err


def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["cluster", "--port", "70000"])

    assert "70000" in capsys.readouterr().err


def test_bench_measures_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["bench", "engine", "--nodes", "10", "--pods", "10", "--repetitions", "2", "--runs=1"]
    assert cli.main(argv) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("; runs: 1")
    assert any(line.startswith("plain, all requests different") for line in lines)


def test_a_bad_scenario_does_not_keep_the_others_from_being_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    bad = scenario("bad", pod={"kind": "Pod", "metadata": {"name": 1}})
    source.write_text(f"{json.dumps(bad)}\n{json.dumps(scenario('good'))}\n", encoding="utf-8")

    assert cli.main(["explain", "-f", str(source), "-o", str(target)]) == 2

    first, second = map(json.loads, target.read_text(encoding="utf-8").splitlines())
    assert first == {"id": "bad", "unsupported": first["unsupported"]}
    assert "Expected `str`, got `int` - at `$.metadata.name`" in first["unsupported"]
    assert second["best"] == ["n1"]
    assert f"{source}, line 1: " in capsys.readouterr().err


def test_simulate_writes_an_assignment_for_each_pod(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    several = scenario("sequence")
    one = several.pop("pod")
    several["pods"] = [
        {**one, "metadata": {"name": name, "namespace": "default", "uid": name}} for name in "ab"
    ]
    source.write_text(json.dumps(several), encoding="utf-8")

    assert cli.main(["simulate", "-f", str(source), "-o", str(target)]) == 0

    assert json.loads(target.read_text(encoding="utf-8")) == {
        "id": "sequence",
        "assignments": {"default/a": "n1", "default/b": "n1"},
    }
