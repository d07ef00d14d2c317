"""CSV files become jobs that come, run and end; what is wrong with a row is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.lab.chance import PythonChance
from berth.tools.lab.csv_workload import CsvWorkload
from berth.tools.lab.errors import LabError
from berth.tools.lab.load import LabFile
from berth.tools.lab.types import CsvSource
from berth.tools.lab.workload import WHOLE, Arrival, Part
from tests.tools.lab.test_run import lab_file, node, results

COLUMNS = {"arrival": "at", "duration": "runs", "requests": {"cpu": {"column": "cpu"}}}


def source(folder: Path, rows: str, **fields: Any) -> dict[str, Any]:
    (folder / "jobs.csv").write_text(rows)
    nodes = [{"count": 1, "manifest": node("4")}]
    return {"csv": {"jobs": "jobs.csv", "columns": COLUMNS, "nodes": nodes, **fields}}


def workload(folder: Path, rows: str, *, part: Part = WHOLE, **fields: Any) -> CsvWorkload:
    fields = source(folder, rows, **fields)["csv"]
    model = CsvSource.model_validate_json(json.dumps(fields))
    return CsvWorkload(model, folder, part)


def arrivals(of: CsvWorkload) -> list[Arrival]:
    return list(of.arrivals(PythonChance(1)))


def test_columns_say_what_of_a_job(tmp_path: Path) -> None:
    columns = {
        "name": "id",
        "arrival": "submit",
        "end": "finish",
        "priority": "prio",
        "requests": {
            "cpu": {"column": "milli", "unit": "m"},
            "memory": {"column": "gb", "unit": "Gi"},
            "example.com/gpu-milli": {"column": "share", "times": "gpus"},
        },
        "labels": {"user": "who"},
        "nodeLabels": {"model": "models"},
    }
    rows = """id,submit,finish,prio,milli,gb,share,gpus,who,models
a,2026-01-01 00:00:00,2026-01-01 00:01:00,5,1500,0.5,500,1,ann,T4|G2
b,2026-01-01T00:00:30Z,,-1,100,0,1000,2,,
"""
    one, two = arrivals(workload(tmp_path, rows, columns=columns))

    assert (one.pod.metadata.name, one.at, one.lifetime) == ("a", 0.0, 60.0)
    assert (two.pod.metadata.name, two.at, two.lifetime) == ("b", 30.0, None)
    assert (one.pod.spec.priority, two.pod.spec.priority) == (5, -1)
    assert (one.pod.metadata.labels, two.pod.metadata.labels) == ({"user": "ann"}, {})
    assert amounts(one.pod) == (1500, 1 << 29, {"example.com/gpu-milli": 500})
    assert amounts(two.pod) == (100, 0, {"example.com/gpu-milli": 2000})
    assert one.pod.spec.affinity is not None
    assert two.pod.spec.affinity is None


def amounts(pod: Pod) -> tuple[int, int, dict[str, int]]:
    requested = PodInfo(pod).template.requested
    return requested.milli_cpu, requested.memory, dict(requested.scalars)


def test_times_have_units(tmp_path: Path) -> None:
    units: dict[str, Any] = {"timeUnit": "1ms", "durationUnit": "1h"}
    one, two = arrivals(workload(tmp_path, "at,runs,cpu\n5000,2,1\n6500,0.5,1\n", **units))

    assert (one.at, one.lifetime) == (0.0, 7200.0)
    assert (two.at, two.lifetime) == (1.5, 1800.0)


def test_nodes_may_be_rows_too(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("host,cores,kind\nx,8,small\ny,16,\n")
    rows = {
        "file": "nodes.csv",
        "name": "host",
        "allocatable": {"cpu": {"column": "cores"}},
        "labels": {"kind": "kind"},
    }
    nodes = workload(tmp_path, "at,runs,cpu\n0,1,1\n", nodeRows=rows).nodes

    assert [each.name for each in nodes] == ["n", "x", "y"]
    assert nodes[1].status.allocatable == {"cpu": "8", "pods": "110"}
    assert nodes[1].labels == {"kubernetes.io/hostname": "x", "kind": "small"}


@pytest.mark.parametrize(
    ("rows", "columns", "want"),
    [
        pytest.param(
            "at,runs,cpu\n0,1,1\n0,soon,1\n",
            {},
            "line 3: runs: 'soon': must be a number that is not negative",
            id="a word for a duration",
        ),
        pytest.param(
            "at,runs,cpu\n0,-1,1\n",
            {},
            "line 2: runs: '-1': must be a number that is not negative",
            id="a negative duration",
        ),
        pytest.param(
            "at,runs,cpu\nnan,1,1\n",
            {},
            "line 2: at: 'nan': must be a number, or a date and time",
            id="no time",
        ),
        pytest.param(
            "at,runs,cpu\n5,1,1\n4,1,1\n",
            {},
            "line 3: at: '4': is before the row above; sort the rows by it",
            id="rows out of order",
        ),
        pytest.param(
            "at,runs,cpu\n5,1,1e\n",
            {},
            "line 2: cpu: '1e': must be a number that is not negative",
            id="a request that is no number",
        ),
        pytest.param(
            "at,until,cpu\n5,4,1\n",
            {"duration": "", "end": "until"},
            "line 2: until: '4': is before at",
            id="an end before the begin",
        ),
        pytest.param(
            "at,runs,cpu,size\n5,4,1,0\n",
            {"gangSize": "size"},
            "line 2: size: '0': must be a whole number from 1 to 10000",
            id="a gang of nobody",
        ),
        pytest.param(
            "at,runs,cpu,prio\n5,4,1,high\n",
            {"priority": "prio"},
            "line 2: prio: 'high': must be a whole number from -1000000000 to 1000000000",
            id="a priority in words",
        ),
        pytest.param(
            "at,runs,cpu,id\n5,4,1,x\n5,4,1,x\n",
            {"name": "id"},
            "line 3: id: 'x': there is a row with this name before it",
            id="a name twice",
        ),
        pytest.param(
            "at,runs\n5,4\n", {}, "line 1: cpu: there is no such column: at, runs", id="no column"
        ),
    ],
)
def test_a_row_that_is_wrong_is_named(
    rows: str, columns: dict[str, str], want: str, tmp_path: Path
) -> None:
    with pytest.raises(LabError) as caught:
        workload(tmp_path, rows, columns={**COLUMNS, **columns})

    assert str(caught.value) == f"{tmp_path / 'jobs.csv'}, {want}"


def test_a_job_waits_runs_and_ends(tmp_path: Path) -> None:
    """Of three jobs that need the only node, the last waits for both of the others."""
    rows = "at,runs,cpu\n0,100,4\n10,100,4\n20,50,4\n"
    (result,) = results(lab_file(tmp_path, workload=source(tmp_path, rows)))

    assert result.pods == 3
    assert result.totals["makespan"] == pytest.approx(250, abs=20)  # backoff ends a little later
    assert result.totals["job completion max"] == pytest.approx(230, abs=20)
    assert result.totals["waiting max"] == pytest.approx(180, abs=20)
    assert result.totals["unfinished jobs"] == 0


def test_a_gang_runs_from_when_all_of_it_has_nodes(tmp_path: Path) -> None:
    """The first worker gets a node at once, and the second one when the job before it is done."""
    rows = "at,runs,cpu,size\n0,100,2,1\n10,50,2,2\n"
    columns = {**COLUMNS, "gangSize": "size"}
    (result,) = results(lab_file(tmp_path, workload=source(tmp_path, rows, columns=columns)))

    assert result.pods == 3
    assert result.totals["makespan"] == pytest.approx(150, abs=20)
    assert result.totals["waiting max"] == pytest.approx(90, abs=20)


@pytest.mark.parametrize(
    ("gates", "unfinished"),
    [
        pytest.param({}, 2, id="pods start one by one, and hold what they have"),
        pytest.param({"GenericWorkload": True}, 1, id="all or none start"),
    ],
)
def test_a_gang_that_never_fits(gates: dict[str, bool], unfinished: int, tmp_path: Path) -> None:
    """A gang of five comes to four CPUs, and then a job that one would be enough for."""
    rows = "at,runs,cpu,size\n0,30,1,5\n1,50,1,1\n"
    columns = {**COLUMNS, "gangSize": "size"}
    policies = [{"name": "p", "config": {"featureGates": gates}}]
    file = lab_file(tmp_path, workload=source(tmp_path, rows, columns=columns), policies=policies)
    (result,) = results(file)

    assert result.totals["unfinished jobs"] == unfinished


def test_an_evicted_pod_comes_again_and_its_job_begins_anew(tmp_path: Path) -> None:
    rows = "at,runs,cpu,prio\n0,100,4,0\n60,30,4,10\n"
    columns = {**COLUMNS, "priority": "prio"}
    (result,) = results(lab_file(tmp_path, workload=source(tmp_path, rows, columns=columns)))

    assert result.preempted == 1
    assert result.totals["unfinished jobs"] == 0
    assert result.totals["makespan"] == pytest.approx(190, abs=20)
    assert result.totals["waiting of priority 10 max"] == pytest.approx(0, abs=1)


def test_energy_and_cost_are_of_what_is_used(tmp_path: Path) -> None:
    """Of two nodes of 4 CPU, one has a job of 2 CPU for an hour; the other one is off."""
    fields = {
        "power": [
            {"watts": [[0, 100.0], [50, 200.0], [100, 250.0]], "empty": 0},
            {"resource": "cpu", "each": "2", "watts": [[0, 10.0], [100, 30.0]], "empty": 0},
        ],
        "price": {"label": "kind", "perHour": {"good": 3.0}},
    }
    manifest = node("4")
    manifest["metadata"]["labels"] = {"kind": "good"}
    rows = source(tmp_path, "at,runs,cpu\n0,3600,2\n", nodes=[{"count": 2, "manifest": manifest}])
    (result,) = results(lab_file(tmp_path, workload=rows, **fields))

    assert result.totals["energy"] == pytest.approx((200 + 2 * 20) / 1000)
    assert result.totals["cost"] == pytest.approx(3.0)
    assert result.totals["nodes used"] == 1


ROWS = "at,runs,cpu\n" + "".join(f"{i * 10},{1000 if i == 1 else 5},1\n" for i in range(9))


def test_a_part_begins_with_what_still_runs_then(tmp_path: Path) -> None:
    def part(number: int) -> list[tuple[str, float, float | None]]:
        of = workload(tmp_path, ROWS, part=Part(number, 3))
        return [(each.pod.metadata.name, each.at, each.lifetime) for each in arrivals(of)]

    assert part(0) == [("job-1", 0, 5), ("job-2", 10, 1000), ("job-3", 20, 5)]
    assert part(1) == [("job-2", 0, 980), ("job-4", 0, 5), ("job-5", 10, 5), ("job-6", 20, 5)]
    assert [name for name, *_ in part(2)] == ["job-2", "job-7", "job-8", "job-9"]


def test_more_parts_than_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="9 jobs: 10 or more are needed"):
        workload(tmp_path, ROWS, part=Part(0, 10))


def test_jobs_are_read_as_they_come(tmp_path: Path) -> None:
    """A row that is broken after the file was checked is met only when its time has come."""
    of = workload(tmp_path, ROWS)
    jobs = of.arrivals(PythonChance(1))
    first = next(iter(jobs))
    (tmp_path / "jobs.csv").unlink()

    assert first.pod.metadata.name == "job-1"


@pytest.mark.parametrize("name", ["durations", "gangs", "gpu-trace-in-time"])
def test_the_examples_can_be_read(name: str) -> None:
    file = LabFile(Path(f"examples/lab/{name}.yaml"))
    first = next(iter(file.workload().arrivals(PythonChance(1))))

    assert first.at == 0
    assert file.policies()
