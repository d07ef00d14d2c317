"""``berth explain``: of recorded scenarios, and of a scheduler that answers over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explainer
from tests.insight.whatif.asking import snapshot

from berth import cli
from berth.kube.objects.meta import OwnerReference
from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.service.server.application import Application
from berth.service.server.scheduler.explain import explain_endpoints


def scenario(name: str, *, cpu: str = "2") -> dict[str, Any]:
    """One node of one cpu, one pending pod that wants *cpu*."""
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "id": name,
        "objects": [
            {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}
        ],
        "pod": {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": containers},
        },
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    sequence = {"id": "many", "objects": [], "pods": []}
    lines = [scenario("big"), {"scenario": scenario("small", cpu="1")}, sequence]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


TABLES = """\
scenario  big
default/p: now it would fit nowhere: 0/1 nodes are available: 1 Insufficient cpu; nearest is n1: \
request 1000m cpu less, or have a larger node

pod           default/p
profile       default-scheduler
fits nowhere  0/1 nodes are available: 1 Insufficient cpu.
filters       1 node; NodeResourcesFit rejects 1, 0 left
nearest miss  n1: request 1000m cpu less, or have a larger node

node  verdict           why
n1    NodeResourcesFit  needs cpu 2000m, free 1000m of 1000m

scenario  small
default/p: now it would go to n1, the only node that fits

pod          default/p
profile      default-scheduler
would go to  n1, the only node that fits
"""


def test_recorded_scenarios_as_tables(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "-f", str(recorded)]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith(TABLES), printed
    assert printed.endswith(
        "\nscenario  many\nnot supported: a sequence of pods; explain takes one pod\n"
    )


@pytest.mark.parametrize(
    ("output", "read"),
    [
        pytest.param("json", lambda said: map(json.loads, said.splitlines()), id="json lines"),
        pytest.param("yaml", yaml.safe_load_all, id="a stream of yaml"),
    ],
)
def test_recorded_scenarios_for_programs(
    output: str,
    read: Callable[[str], Iterable[Any]],
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["explain", "-f", str(recorded), "--output", output]) == 0

    big, small, many = read(capsys.readouterr().out)
    assert (big["id"], big["evaluation"]["reasons"]) == ("big", {"Insufficient cpu": 1})
    assert (small["id"], small["evaluation"]["choice"]["node"]) == ("small", "n1")
    assert many == {"id": "many", "unsupported": "a sequence of pods; explain takes one pod"}


def test_one_scenario_by_its_id(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "-f", str(recorded), "--id", "small", "--output", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["id"] == "small"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        pytest.param([], "name a pod, or a file with -f", id="nothing asked"),
        pytest.param(["p", "-f", "IN"], "name a pod, or a file with -f", id="two questions"),
        pytest.param(
            ["-f", "IN", "--service", "a/b"],
            "--service and -f exclude each other",
            id="a file of a service",
        ),
        pytest.param(
            ["p", "--server", "https://s", "--service", "a/b"],
            "--service and --server exclude each other",
            id="two schedulers",
        ),
        pytest.param(["p", "-o", "OUT"], "-o and --id require -f", id="-o without -f"),
        pytest.param(["p", "--id", "x"], "-o and --id require -f", id="--id without -f"),
        pytest.param(
            ["-f", "IN", "-o", "OUT", "--output", "json"], "-o writes all decisions", id="two ways"
        ),
        pytest.param(["--pod", "p"], "name a pod, or a file with -f", id="--pod without -f"),
        pytest.param(["--pod", "p", "-f", "IN", "--id", "x"], "a snapshot", id="--pod and --id"),
        pytest.param(["p", "--nodes", "-1"], "must be a number or all", id="nodes"),
        pytest.param(["-f", "IN", "-n", "x"], "-n requires a pod", id="-n of scenarios"),
        pytest.param(
            ["shop/p", "-n", "x"],
            "shop/p: shop is neither the namespace of -n nor a kind that can be explained: pod,",
            id="two namespaces",
        ),
        pytest.param(
            ["-f", "IN", "--pod", "deploy/x"],
            "a snapshot explains pods and pod groups, not",
            id="snapshot",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["explain", *argv])

    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        pytest.param(["-f", "IN", "--id", "none"], "no scenario has id 'none'", id="unknown id"),
        pytest.param(["-f", "IN", "--pod", "p"], "no snapshot", id="not a snapshot"),
        pytest.param(["-f", "/nonexistent/in"], "/nonexistent/in: No such file", id="no file"),
        pytest.param(
            ["p", "--server", "http://127.0.0.1:1"],
            "no scheduler answers at http://127.0.0.1:1",
            id="no scheduler",
        ),
    ],
)
def test_failures_say_why(
    argv: list[str], why: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", *(str(recorded) if word == "IN" else word for word in argv)]) == 2

    assert why in capsys.readouterr().err


def test_decisions_are_not_overwritten_when_there_are_no_scenarios(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("kept", encoding="utf-8")

    assert cli.main(["explain", "-f", str(tmp_path / "none"), "-o", str(target)]) == 2
    assert target.read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("name", ["p", "default/p", "pod/p"])
def test_a_pod_of_a_snapshot(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "snapshot.json"
    path.write_bytes(b"".join(snapshot(node("n1", cpu=1), pod("p", cpu=2)).encode()))

    assert cli.main(["explain", "-f", str(path), "--pod", name]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "default/p: now it would fit nowhere: 0/1 nodes are available: 1 Insufficient cpu;"
        " nearest is n1: request 1000m cpu less, or have a larger node",
        "",
        "pod           default/p",
        "profile       default-scheduler",
        "fits nowhere  0/1 nodes are available: 1 Insufficient cpu.",
        "filters       1 node; NodeResourcesFit rejects 1, 0 left",
        "nearest miss  n1: request 1000m cpu less, or have a larger node",
        "",
        "node  verdict           why",
        "n1    NodeResourcesFit  needs cpu 2000m, free 1000m of 1000m",
    ]


@pytest.mark.wall
@pytest.mark.parametrize(
    "asked",
    [
        ["p"],
        ["default/p"],
        ["pod/p"],
        ["pods/p", "-n", "default"],
        ["default/p", "--namespace", "default"],
    ],
)
async def test_a_pod_of_a_running_scheduler(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    harness = Harness()
    harness.put(node("n1", cpu=1), node("n2", cpu="1500m"), pod("p", cpu=2))
    async with served(harness) as url:
        argv = ["explain", *asked, "--server", url, "--nodes", "1"]
        assert await asyncio.to_thread(cli.main, argv) == 0
        table = capsys.readouterr().out
        assert await asyncio.to_thread(cli.main, [*argv, "--output", "json"]) == 0
        told = json.loads(capsys.readouterr().out)

    first, empty, *_ = table.splitlines()
    assert (first, empty) == (told["summary"], "")
    assert first.startswith("default/p is pending: not tried yet: it is next; now it would fit")
    assert "nearest miss  n2: request 500m cpu less, or have a larger node\n" in table
    assert table.endswith("free 1500m of 1500m\nand 1 more of 2 nodes\n")
    assert [each["node"] for each in told["evaluation"]["nodes"]] == ["n2"]


@pytest.mark.wall
async def test_the_pods_of_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness()
    owner = OwnerReference("batch/v1", "Job", "sums", "u", controller=True)
    harness.put(node("n1", cpu=1))
    harness.put(*(pod(f"sums-{i}", ns="ml", owner=owner, cpu=2) for i in range(3)))
    harness.put(pod("alone", ns="ml", owner=replace(owner, name="done"), node="n1"))
    await harness.until_idle()
    async with served(harness) as url:

        async def ask(*argv: str) -> tuple[int, str, str]:
            code = await asyncio.to_thread(cli.main, ["explain", *argv, "--server", url])
            told = capsys.readouterr()
            return code, told.out, told.err

        code, table, _ = await ask("job/sums", "-n", "ml")
        _, as_json, _ = await ask("Jobs.batch/sums", "-n", "ml", "--output", "json")
        _, placed, _ = await ask("job/done", "-n", "ml")
        unknown, _, why = await ask("job/sums")

    assert code == 0
    assert table.splitlines()[0] == (
        "ml/sums-0 and 2 more of job/sums are pending: 0/1 nodes are available: 1 Insufficient cpu;"
        " nearest is n1: request 1000m cpu less, or have a larger node"
    )
    assert json.loads(as_json)["numPending"] == 3
    assert placed == "job/done in namespace ml: no pod is pending, 1 pod has a node\n"
    refusal = "job/sums in namespace default: neither it nor a pod of it is known"
    assert (unknown, why) == (2, f"berth explain: {refusal}\n")


@asynccontextmanager
async def served(harness: Harness) -> AsyncIterator[str]:
    """Yield where the scheduler of *harness* answers."""
    app = Application()
    app.include_router(explain_endpoints(explainer(harness)))
    server = HttpServer(app)
    await server.start(LOOPBACK, 0)
    try:
        yield server.url
    finally:
        await server.stop()
