"""``berth lab``: tables, JSON lines and plots of all runs."""

import json
from pathlib import Path

import pytest

from berth.cli import main
from berth.cli.flags.progress import progress

LAB = """
apiVersion: berth.dev/v1alpha1
kind: Lab
metadata: {name: two ways}
workload:
  generator:
    nodes:
    - count: 3
      manifest: {metadata: {name: n}, status: {capacity: {cpu: "2", memory: 4Gi, pods: "10"}}}
    pods:
    - manifest:
        kind: Pod
        metadata: {name: p}
        spec:
          containers: [{name: c, image: x, resources: {requests: {cpu: 700m}}}]
      lifetime: 30s
    count: 20
    every: 5s
policies: [{name: pack, preset: binpack}, {name: spread, preset: spread}]
seeds: {count: 2}
report: {measures: [imbalance of cpu, waiting pods]}
"""


@pytest.mark.slow
def test_runs_become_tables_lines_and_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text(LAB)
    plots, results = tmp_path / "plots", tmp_path / "results.jsonl"
    status = main(
        ["lab", str(tmp_path / "run.yaml"), "-j2", f"--plots={plots}", f"--results={results}"]
    )
    shown = capsys.readouterr().out

    assert status == 0
    assert "imbalance of cpu" in shown
    assert "allocation of cpu" not in shown
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted((line["policy"], line["seed"]) for line in lines) == [
        ("pack", 1),
        ("pack", 2),
        ("spread", 1),
        ("spread", 2),
    ]
    assert sorted(path.name for path in plots.iterdir()) == [
        "imbalance-of-cpu.svg",
        "waiting-pods.svg",
    ]
    assert ">two ways<" in (plots / "waiting-pods.svg").read_text()


def test_the_bar_says_how_long_it_will_take() -> None:
    assert progress(1, 4, 30.0) == "[#######-----------------------] 1 of 4 runs, 1:30 left"
    assert progress(4, 4, 90.0).endswith("4 of 4 runs, 0:00 left")


def test_a_file_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "no-such-file.yaml"]) == 2
    assert "no-such-file.yaml: No such file or directory" in capsys.readouterr().err
