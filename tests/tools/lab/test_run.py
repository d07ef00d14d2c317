"""Runs of small Labs, whose outcome can be said without running them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.runtime.errors import UserError
from berth.scheduler.config.errors import ConfigError
from berth.tools.lab.curves import RunResult
from berth.tools.lab.load import LabFile
from berth.tools.lab.paired import Difference
from berth.tools.lab.run import run
from berth.tools.lab.summary import columns, only, summarize

HEAD = {"apiVersion": "berth.dev/v1alpha1", "kind": "Lab"}


def container(cpu: str) -> dict[str, Any]:
    return {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}


def node(cpu: str, name: str = "n") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "100"}},
    }


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container(cpu)], **spec},
    }


def generator(**fields: Any) -> dict[str, Any]:
    base = {"nodes": [{"count": 2, "manifest": node("4")}], "count": 40, "every": "10s"}
    return {"generator": {**base, **fields}}


def lab_file(folder: Path, **fields: Any) -> LabFile:
    path = folder / "run.yaml"
    default = {"policies": [{"name": "default", "preset": "default"}]}
    path.write_text(yaml.safe_dump({**HEAD, **default, **fields}))
    return LabFile(path)


def results(file: LabFile, *, seeds: int = 1) -> list[RunResult]:
    workload = file.workload()
    terms = file.terms()
    return [
        run(policy, workload, file.chance(seed), terms, seed=seed)
        for seed in range(1, seeds + 1)
        for policy in file.policies()
    ]


def manifests(folder: Path, *objects: dict[str, Any]) -> dict[str, Any]:
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
    return {"manifests": {"files": ["cluster.yaml"]}}


def test_pods_of_manifests_are_tried_once_in_their_order(tmp_path: Path) -> None:
    objects = [node("4"), *(pod(f"p{i}", "1500m") for i in range(4))]
    (result,) = results(lab_file(tmp_path, workload=manifests(tmp_path, *objects)))

    assert (result.pods, result.unplaced) == (4, 2)
    assert result.unplaced_by_reason == {"Insufficient cpu": 2}
    assert result.curves["allocation of cpu"] == {38: 37.5, 75: 75.0, 112: 75.0, 150: 75.0}


def test_bin_packing_fills_one_node_and_spreading_both(tmp_path: Path) -> None:
    objects = [node("4", "a"), node("4", "b"), pod("p", "1"), pod("q", "1")]
    policies = [{"name": each, "preset": each} for each in ("binpack", "spread")]
    file = lab_file(tmp_path, workload=manifests(tmp_path, *objects), policies=policies)
    packed, spread = results(file)

    assert packed.curves["imbalance of cpu"][25] == 25.0
    assert spread.curves["imbalance of cpu"][25] == 0.0


def test_fragmentation_is_what_typical_pods_cannot_use(tmp_path: Path) -> None:
    """After two pods of 3 CPU, each node of 4 has one left, where no pod of 3 fits."""
    objects = [node("4", "a"), node("4", "b"), pod("p", "3"), pod("q", "3")]
    (result,) = results(lab_file(tmp_path, workload=manifests(tmp_path, *objects)))

    assert result.curves["fragmentation of cpu"] == {38: 12.5, 75: 25.0}


def test_pods_that_leave_make_room_for_those_that_wait(tmp_path: Path) -> None:
    """One pod fits at a time, and they come twice as fast as they end."""
    workload = generator(
        nodes=[{"manifest": node("1")}],
        pods=[{"manifest": pod("p", "1"), "lifetime": "20s"}],
    )
    (result,) = results(lab_file(tmp_path, workload=workload))

    assert (result.pods, result.unplaced) == (40, 0)
    assert result.curves["waiting pods"][max(result.curves["waiting pods"])] > 5
    assert result.waited == sorted(result.waited)
    assert result.waited[-1] > 60


def test_room_for_all_means_that_nobody_waits(tmp_path: Path) -> None:
    workload = generator(pods=[{"manifest": pod("p", "10m")}])
    (result,) = results(lab_file(tmp_path, workload=workload))

    assert result.waited == [0.0] * 4
    assert set(result.curves["waiting pods"].values()) == {0.0}


def test_pods_of_a_higher_priority_preempt_others(tmp_path: Path) -> None:
    workload = generator(
        nodes=[{"manifest": node("1")}],
        pods=[
            {"manifest": pod("low", "1")},
            {"manifest": pod("high", "1", priority=10), "lifetime": "1s"},
        ],
    )
    (result,) = results(lab_file(tmp_path, workload=workload))

    assert result.preempted > 0
    assert result.unplaced == 0


def test_the_same_seed_gives_the_same_run_and_another_one_another(tmp_path: Path) -> None:
    pods = [{"manifest": pod("p", "1"), "lifetime": "60s"}, {"manifest": pod("q", "2")}]
    file = lab_file(tmp_path, workload=generator(pods=pods))
    one, two = results(file, seeds=2)
    again = results(file)[0]

    assert again.curves == one.curves
    assert two.curves != one.curves


def test_a_summary_has_mean_and_sample_deviation(tmp_path: Path) -> None:
    def result(seed: int, value: float) -> RunResult:
        return RunResult(
            policy="p",
            seed=seed,
            axis="x",
            curves={"m": {10: value, 20: 1.0}},
            pods=4,
            unplaced=seed,
            unplaced_by_reason={"r": seed},
            preempted=0,
            waited=[],
            cpu_seconds=1.0,
        )

    (summary,) = summarize([result(1, 1.0), result(3, 3.0)], ["p"])

    assert (summary.measured["m"][10].mean, summary.measured["m"][10].deviation) == (2.0, 1.41)
    assert summary.unplaced_by_reason == {"r": 2.0}
    assert columns([summary], ()) == [10, 20]
    with pytest.raises(UserError, match=r"report\.measures: 'n': must be one of m"):
        only([summary], ["n"])


def test_policies_are_compared_with_the_first_seed_by_seed() -> None:
    def result(policy: str, seed: int, value: float) -> RunResult:
        totals = {"m": value, f"only {policy}": 1.0}
        return RunResult(policy, seed, "x", {}, 4, 0, {}, 0, [], 1.0, totals=totals)

    runs = [result("a", 1, 10), result("a", 2, 90), result("b", 1, 13), result("b", 2, 93)]
    runs.append(result("b", 3, 1000))
    first, second = summarize(runs, ["a", "b"])

    assert first.differences == {}
    assert second.differences == {"m": Difference(3.0, 3.0, 3.0, pairs=2)}
    assert first.totals["m"].mean == 50.0
    (kept, _) = only([first, second], ["m"])
    assert list(kept.totals) == ["m"]


POD = {"manifest": pod("p", "1")}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"workload": {}},
            "workload: Invalid value: {}: exactly one of recording, csv, trace, manifests and",
            id="no workload",
        ),
        pytest.param(
            {"workload": generator(pods=[POD]), "policies": []},
            "policies: Invalid value: []: ",
            id="nothing to compare",
        ),
        pytest.param(
            {"workload": generator(pods=[POD], count=0)},
            "workload.generator.count: Invalid value: 0: input should be greater than or equal",
            id="no pods",
        ),
        pytest.param(
            {"workload": generator(pods=[POD]), "seed": 3},
            'strict decoding error: unknown field "seed"',
            id="a field that is not known",
        ),
        pytest.param(
            {"workload": generator(pods=[POD]), "kind": "Scenario"},
            "kind Lab are needed, got apiVersion 'berth.dev/v1alpha1' and kind 'Scenario'",
            id="another kind",
        ),
        pytest.param(
            {"workload": generator(pods=[POD]), "policies": [{"name": "a"}, {"name": "a"}]},
            "there are several of the name 'a'",
            id="two policies of a name",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused(fields: Any, want: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        lab_file(tmp_path, **fields)

    assert want in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"workload": {"manifests": {"files": ["none.yaml"]}}}, "none.yaml", id="no such file"
        ),
        pytest.param(
            {"workload": generator(nodes=[{"manifest": {"kind": "Node"}}], pods=[POD])},
            "nodes[0].manifest.status.allocatable: needed",
            id="a node without anything",
        ),
        pytest.param(
            {"workload": generator(pods=[{"manifest": {"kind": "Service"}}])},
            "pods[0].manifest.kind: 'Service': must be one of",
            id="what makes no pods",
        ),
    ],
)
def test_a_workload_that_cannot_be_read_is_an_error(fields: Any, want: str, tmp_path: Path) -> None:
    file = lab_file(tmp_path, **fields)
    with pytest.raises(UserError) as caught:
        file.workload()

    assert want in str(caught.value)
