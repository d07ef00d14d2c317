"""A small search from its begin to its end, in processes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cli import main
from berth.tools.lab.load import LabFile
from berth.tools.tune.objective import Objective
from berth.tools.tune.tune import Tuned, TuneOptions, Tuner
from berth.tools.up.scenario.load import ScenarioFile

JOBS = "at,runs,cpu\n" + "".join(f"{i * 20},{100 + 37 * i % 90},{1 + i % 2}\n" for i in range(80))
LAB = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "Lab",
    "workload": {
        "csv": {
            "jobs": "jobs.csv",
            "columns": {
                "arrival": "at",
                "duration": "runs",
                "requests": {"cpu": {"column": "cpu"}},
            },
            "nodes": [
                {
                    "count": 8,
                    "manifest": {
                        "metadata": {"name": "n"},
                        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}},
                    },
                }
            ],
        }
    },
    "policies": [{"name": "now"}],
}
MOST = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
SPACE: dict[str, list[Any]] = {
    "NodeResourcesFit.scoringStrategy": [MOST],
    "NodeResourcesBalancedAllocation.weight": [0],
    "ImageLocality.weight": [0, 2],
}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(LAB))
    return tmp_path / "lab.yaml"


def tuned(lab: Path, *, jobs: int = 2, shuffles: bool = False) -> Tuned:
    options = TuneOptions(candidates=6, parts=8, jobs=jobs, shuffles=shuffles)
    objective = Objective({"nodes used": 1.0})
    return Tuner(LabFile(lab), objective, options, more=SPACE, only_more=True).run()


def test_packing_is_found_where_fewer_nodes_are_asked_for(lab: Path) -> None:
    found = tuned(lab)

    assert found.is_better
    assert found.changes["NodeResourcesFit.scoringStrategy"] == MOST
    assert "ImageLocality.weight" not in found.changes, "there are no images"
    assert found.tuned < found.baseline
    assert found.difference.low <= found.tuned - found.baseline <= found.difference.high < 0
    assert found.measures["imbalance of cpu"].difference.mean > 0
    assert "MostAllocated" in found.configuration


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(lab: Path) -> None:
    assert tuned(lab, jobs=1) == tuned(lab, jobs=3)


@pytest.mark.slow
def test_nothing_is_found_where_there_is_nothing_to_find(lab: Path) -> None:
    assert not tuned(lab, shuffles=True).is_better


@pytest.mark.slow
def test_the_command_writes_what_is_better_and_how_to_shadow_it(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tuned.yaml"
    tries = [f"--try={name}={json.dumps(values)}" for name, values in SPACE.items()]
    common = ["tune", str(lab), "--parts=8", "--candidates=6", "--try-only", *tries]
    status = main([*common, "--minimize=nodes used", f"--write-config-to={out}"])
    shown = capsys.readouterr().out

    assert status == 0
    assert "beyond noise" in shown
    assert f"berth run --shadow --config {out}" in shown
    assert yaml.safe_load(out.read_text())["kind"] == "KubeSchedulerConfiguration"

    other = tmp_path / "other.yaml"
    status = main([*common, "--minimize=unplaced pods", "-o=json", f"--write-config-to={other}"])
    line = json.loads(capsys.readouterr().out)

    assert status == 1
    assert line["changes"] == {}
    assert not other.exists()


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param([], "--minimize or --maximize", id="no objective"),
        pytest.param(["--minimize=a=b"], "a=b: 'b' is no number", id="a weight in words"),
        pytest.param(["--minimize=a", "--try=b=1"], "a JSON array of values", id="no array"),
        pytest.param(["--minimize=a", "--parts=3"], "3 parts: 4 or more", id="too few parts"),
    ],
)
def test_wrong_usage(
    arguments: list[str], want: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["tune", str(lab), *arguments])
    except SystemExit as exc:
        status = int(exc.code or 0)

    assert status == 2
    assert want in capsys.readouterr().err


def test_the_examples_can_be_read() -> None:
    folder = Path("examples/tune")
    (policy,) = LabFile(folder / "gpu-trace.yaml").policies()

    assert "GpuFragmentation" in policy.registry
    assert ScenarioFile(folder / "sample-day.yaml").scenario.cluster.nodes[0].count == 16
