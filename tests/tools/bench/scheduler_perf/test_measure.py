"""Workloads are found by name; all of their measured pods are bound."""

import pytest

from berth import cli
from berth.runtime.clock import RealClock
from berth.tools.bench.scheduler_perf.cases import CASES
from berth.tools.bench.scheduler_perf.measure import Settings, find, measure

FOUND = [
    pytest.param("PreemptionBasic/5Nodes", "PreemptionBasic/5Nodes", id="by its whole name"),
    pytest.param(
        "SchedulingBasic", "SchedulingBasic/5000Nodes_10000Pods", id="first with a threshold"
    ),
    pytest.param("PreemptionBasic", "PreemptionBasic/1000Nodes", id="last, as there is none"),
    pytest.param(
        "Unschedulable/5Nodes/1Init/10Pods", "Unschedulable/5Nodes/1Init/10Pods", id="with slashes"
    ),
]


@pytest.mark.parametrize(("given", "name"), FOUND)
def test_a_workload_is_found(given: str, name: str) -> None:
    assert find(given)[0] == name


def test_the_list_has_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "scheduler_perf", "--list"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(case.workloads) for case in CASES.values())
    assert [line for line in lines if "SchedulingBasic/5000Nodes_10000Pods" in line] == [
        "* SchedulingBasic/5000Nodes_10000Pods"
        "  init_nodes=5000 init_pods=1000 measure_pods=10000 threshold=680"
    ]


REFUSED = [
    pytest.param([], "name a test case of scheduler_perf; --list lists them", id="none named"),
    pytest.param(
        ["PreemptionBasic/5"], "5: PreemptionBasic has 5Nodes, 1000Nodes", id="no such workload"
    ),
    pytest.param(["Preempt"], f"Preempt: there are {', '.join(CASES)}", id="no such test case"),
]


@pytest.mark.parametrize(("names", "said"), REFUSED)
def test_what_is_not_there_is_refused(
    names: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "scheduler_perf", *names]) == 2
    assert capsys.readouterr().err.endswith(f"{said}\n")


@pytest.mark.wall
@pytest.mark.slow
async def test_measured_pods_are_bound_while_others_come() -> None:
    figures = [
        each async for each in measure("PreemptionAsync/5Nodes", Settings(), clock=RealClock())
    ]
    assert [figure.unit for figure in figures] == ["ms", "1/s", "MiB"]
    assert figures[0].outcome == "5/5 bound"
    assert all(figure.median > 0 for figure in figures)
