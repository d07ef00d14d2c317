"""``berth up --scenario``."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from berth import cli
from tests.tools.up.scenario.running import HEAD

LAST_STEP = "steps:\n- name: s\n  expect:\n  - objects: {kind: Node, count: %d}\n    within: 1h\n"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(
            ["--scenario=f", "--nodes=5"],
            "--nodes cannot be combined with --scenario, which describes all of it",
            id="nodes are in the file",
        ),
        pytest.param(
            ["--scenario=f", "--config=c"],
            "--config cannot be combined with --scenario",
            id="the scheduler's configuration is in the file",
        ),
        pytest.param(
            ["--scenario=f", "--data-dir=d"],
            "--data-dir cannot be combined with --scenario, which begins anew",
            id="nothing is kept",
        ),
        pytest.param(["--exit"], "--speed and --exit require --scenario", id="exit alone"),
        pytest.param(["--speed=2"], "--speed and --exit require --scenario", id="speed alone"),
        pytest.param(["--speed=-1"], "-1 must be a number from 0 on", id="time does not go back"),
    ],
)
def test_flags_that_do_not_fit(
    flags: Sequence[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.execute("up", flags)
    assert why in capsys.readouterr().err


@pytest.mark.wall
@pytest.mark.parametrize(("nodes", "status"), [(3, 0), pytest.param(4, 1, marks=pytest.mark.slow)])
def test_the_status_says_whether_it_passed(
    nodes: int,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.yaml").write_text(HEAD + LAST_STEP % nodes)
    assert cli.execute("up", ["--scenario=three.yaml", "--exit", "--debug-port=0"]) == status
    told = capsys.readouterr().out
    assert "try: kubectl --kubeconfig" in told
    assert ("passed: 1 of 1" if status == 0 else "failed: 0 of 1") in told


POD = """steps:
- name: s
  do:
  - create:
    - apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec: {containers: [{name: c, image: x}]}
  expect:
  - pods: {scheduled: true, count: 1}
    within: 1m
- name: The scheduler comes back
  do: [{scheduler: stop}]
- name: It is there
  wait: 1m
  do: [{scheduler: start}]
"""


@pytest.mark.wall
def test_what_a_scenario_has_recorded_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(HEAD + POD)
    flags = ["--scenario=pod.yaml", "--exit", "--debug-port=0", "--record=day.json.gz"]
    assert cli.execute("up", flags) == 0
    files = sorted(str(path) for path in tmp_path.glob("day.json.gz*"))
    capsys.readouterr()

    assert len(files) == 2, "one of each scheduler"
    assert cli.execute("replay", files) == 0
    assert "decisions  1" in capsys.readouterr().out
