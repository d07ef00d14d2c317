"""``berth rebalance`` on snapshots. How proposals are carried out is in tests/rebalance."""

import json
import os
import socket
from pathlib import Path

import pytest
from tests.builders import node, pod
from tests.insight.whatif.asking import snapshot

from berth import cli
from berth.cli.rebalance import has_ended
from berth.insight.certificate.solver_process import is_installed

TAKEN = snapshot(
    node("a", labels={"pool": "big"}),
    node("b", cpu="16"),
    pod("x", node="a", cpu="2", owner="web"),
    pod("w", cpu="3", node_selector={"pool": "big"}),
    pod("huge", cpu="99"),
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_bytes(b"".join(TAKEN.encode()))
    return str(path)


def test_a_proposal(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--for-pod", "w"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == [
        "so that default/w fits: 1 eviction",
        "  evict default/x (ReplicaSet/web, priority 0) from a",
    ]
    assert told[2].startswith("    it goes to b (")
    assert told[3:] == ["  default/w goes to a, the only node that fits"]


def test_a_goal_that_cannot_be_reached(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--for-pod", "huge"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "cannot be reached: default/huge fits"
    assert told[1].startswith("  default/huge fits nowhere: 0/2 nodes are available: ")


def test_names_of_the_pods_to_evict(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--empty-nodes", "a", "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == ["default/x"]


def test_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--empty-nodes", "a", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [step] = found["steps"]
    [[eviction]] = [round_["evictions"] for round_ in step["rounds"]]
    assert (step["goal"], step["cordon"], step["uncordon"]) == ("a is empty", "a", False)
    assert (eviction["pod"], eviction["goesTo"], eviction["orTo"]) == ("default/x", "b", [])
    assert found["unmet"] == []


def test_nothing_to_do(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--mend-skew"]) == 0
    assert capsys.readouterr().out == "nothing to do\n"


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        pytest.param(
            [],
            "name a goal: --for-pod, --pending, --empty-nodes or --mend-skew",
            id="no goal",
        ),
        pytest.param(
            ["--mend-skew", "--apply"], "--apply needs a cluster, not a snapshot", id="apply"
        ),
        pytest.param(
            ["--mend-skew", "--context", "c"],
            "--snapshot excludes --kubeconfig and --context",
            id="both a snapshot and a cluster",
        ),
        pytest.param(
            ["--mend-skew", "--uncordon"],
            "--uncordon excludes goals, --apply and --snapshot",
            id="both a goal and to uncordon",
        ),
        pytest.param(
            ["--mend-skew", "--keep-cordoned"],
            "--keep-cordoned needs --empty-nodes and --apply",
            id="nothing is cordoned",
        ),
        pytest.param(["--empty-nodes", "0"], "--empty-nodes: 0 must be at least 1", id="no node"),
    ],
)
def test_usage(file: str, argv: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(["rebalance", "--snapshot", file, *argv])
    assert raised.value.code == 2
    assert error in capsys.readouterr().err


def test_a_node_that_is_not_there(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--empty-nodes", "q"]) == 2
    want = "berth rebalance: --empty-nodes: 'q': there is no such node\n"
    assert capsys.readouterr().err == want


@pytest.mark.parametrize(
    ("run", "ended"),
    [
        pytest.param(f"{socket.gethostname()}/{2**22 + 1}/then", True, id="no such process"),
        pytest.param(f"{socket.gethostname()}/{os.getppid()}/then", False, id="it runs"),
        pytest.param(f"{socket.gethostname()}/x/then", False, id="no process"),
        pytest.param("elsewhere/4194305/then", False, id="another machine"),
        pytest.param("what", False, id="not of ours"),
    ],
)
def test_a_run_has_ended_if_its_process_is_gone(run: str, *, ended: bool) -> None:
    assert has_ended(run) is ended


@pytest.mark.wall
@pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed")
def test_a_proof(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rebalance", "--snapshot", file, "--for-pod", "w", "--prove"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-3:-1] == [
        "fewest evictions so that default/w fits:",
        "  evictions: 1, proven to be the best",
    ]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            ["--empty-nodes", "a", "--prove"],
            "--prove needs one of --for-pod, --pending and --empty-nodes NUMBER",
        ),
        (
            ["--for-pod", "w", "--max-evictions", "2"],
            "--max-evictions needs --pending, and excludes --apply",
        ),
        (
            ["--for-pod", "w", "--pending", "--prove"],
            "--prove needs one of --for-pod, --pending and --empty-nodes NUMBER",
        ),
    ],
)
def test_flags_of_proofs(
    flags: list[str], error: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["rebalance", "--snapshot", file, *flags])
    assert error in capsys.readouterr().err
