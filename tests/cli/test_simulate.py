"""``berth simulate`` on snapshots. Recorded sequences are in test_cli.py."""

import gzip
import json
from collections.abc import AsyncGenerator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.builders import node, pod, priority_class
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

from berth import cli
from berth.insight.certificate.solver_process import is_installed
from berth.insight.whatif.answer import Answer
from berth.kube.client.errors import ForbiddenError, NotFoundError
from berth.kube.objects.devices import ResourceClaim
from berth.service.listed_snapshot import snapshot_of
from berth.service.scheduler_client import AskError, RunningScheduler, ask_to_simulate

TAKEN = snapshot(node("one", cpu="2", zone="a"), node("two", cpu="2", zone="b"))

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a snapshot and manifests."""
    taken = gzip.compress(b"".join(TAKEN.encode()))
    (tmp_path / "cluster.json.gz").write_bytes(taken)
    for name, things in {
        "web": [deployment()],
        "pods": [
            manifest(priority_class("gold", value=9)),
            manifest(pod("a", cpu="2")) | {"spec": {"priorityClassName": "gold"}},
            manifest(pod("b", cpu="2")),
        ],
        "render": [
            deployment(),
            deployment("agent", kind="DaemonSet", priorityClassName="gold"),
            CONFIG_MAP,
            manifest(priority_class("gold", value=9)),
        ],
        "large": [manifest(node("large", cpu="9"))],
        "config": [
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "mine"}],
            }
        ],
    }.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(things), encoding="utf-8")
    return tmp_path


def simulate(folder: Path, *argv: str) -> int:
    files = {path.name for path in folder.iterdir()}
    given = [str(folder / each) if each in files else each for each in argv]
    return cli.main(["simulate", "--snapshot", str(folder / "cluster.json.gz"), *given])


@pytest.mark.parametrize(
    ("argv", "question"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(
            ["--template", "web.yaml", "--replicas", "5", "--find-nodes", "one"],
            {
                "templates": [{"manifest": deployment(), "replicas": 5}],
                "findNodes": {"like": "one"},
            },
            id="replicas, and how many nodes they need",
        ),
        pytest.param(
            ["--template", "web.yaml", "--add-nodes", "large.yaml", "--count", "2", "--seed", "3"],
            {
                "templates": [{"manifest": deployment()}],
                "addNodes": [{"manifest": manifest(node("large", cpu="9")), "count": 2}],
                "seed": 3,
            },
            id="nodes that are added",
        ),
        pytest.param(
            ["--template", "web.yaml", "--remove-node", "one", "--cordon-node", "two"],
            {
                "templates": [{"manifest": deployment()}],
                "removeNodes": {"names": ["one"]},
                "cordonNodes": {"names": ["two"]},
            },
            id="nodes that are not there",
        ),
        pytest.param(
            ["--remove-node", "o*,two"],
            {"removeNodes": {"names": ["one", "two"]}},
            id="a list and a pattern of nodes",
        ),
        pytest.param(
            [
                "--remove-node-selector",
                "topology.kubernetes.io/zone=a",
                "--cordon-node-selector",
                "topology.kubernetes.io/zone in (b)",
            ],
            {
                "removeNodes": {"names": ["one"]},
                "cordonNodes": {"names": ["two"]},
            },
            id="nodes by their labels",
        ),
        pytest.param(
            ["--template", "web.yaml", "--find-removable"],
            {"templates": [{"manifest": deployment()}], "findRemovable": {}},
            id="which nodes can go",
        ),
        pytest.param(
            ["--find-removable", "one,t*"],
            {"findRemovable": {"names": ["one", "two"]}},
            id="which of these can go",
        ),
        pytest.param(
            ["--find-removable-selector", "topology.kubernetes.io/zone=b"],
            {"findRemovable": {"names": ["two"]}},
            id="which of these can go, by label",
        ),
        pytest.param(["--repack"], {"repack": True}, id="placed anew"),
        pytest.param(
            ["--template", "render.yaml", "--replicas", "3"],
            {
                "templates": [
                    {"manifest": deployment(), "replicas": 3},
                    {"manifest": deployment("agent", kind="DaemonSet", priorityClassName="gold")},
                    {"manifest": CONFIG_MAP},
                ],
                "priorityClasses": {"gold": 9},
            },
            id="a render, replicas are not of a DaemonSet",
        ),
        pytest.param(
            ["--pod", "render.yaml"],
            {
                "templates": [
                    {"manifest": deployment()},
                    {"manifest": deployment("agent", kind="DaemonSet", priorityClassName="gold")},
                    {"manifest": CONFIG_MAP},
                ],
                "priorityClasses": {"gold": 9},
            },
            id="a render where pods are expected",
        ),
        pytest.param(
            ["--pod", "pods.yaml", "--preemption", "--no-pending"],
            {
                "pods": [
                    manifest(pod("a", cpu="2")) | {"spec": {"priorityClassName": "gold"}},
                    manifest(pod("b", cpu="2")),
                ],
                "priorityClasses": {"gold": 9},
                "preemption": True,
                "includePending": False,
            },
            id="pods of a priority class",
        ),
    ],
)
def test_the_flags_make_the_question(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str], question: dict[str, Any]
) -> None:
    want = ask(TAKEN, **question)
    assert simulate(folder, *argv, "--output", "json") == (0 if want.fits else 1)
    found = json.loads(capsys.readouterr().out)
    found["notes"] = [note for note in found["notes"] if note != TAKEN_CLASS]
    assert found == want.model_dump(mode="json", by_alias=True)


TAKEN_CLASS = "taken into account: 1 PriorityClass"


def test_the_table_says_it_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--template", "web.yaml", "--replicas", "6", "--find-nodes", "one"]
    assert simulate(folder, *argv) == 1
    assert capsys.readouterr().out == TABLE


TABLE = """\
snapshot of   2026-01-01T00:00:00Z
fits          no: 4 of 6 pods have a node
nodes needed  1 more
admission     excludes webhooks and admission policies, and PriorityClasses, LimitRanges and \
ResourceQuotas, which could not be read

resource                 allocatable      before       after
cpu                              4.0    0.0 (0%)  4.0 (100%)
memory                        16.0Gi  0.0Gi (0%)  0.0Gi (0%)
pods                             220      0 (0%)      4 (2%)
imbalance of cpu                           0.000       0.000
imbalance of memory                        0.000       0.000
fragmentation of cpu                        0.0%        0.0%
fragmentation of memory                     0.0%      100.0%

topology.kubernetes.io/zone  nodes  placed        cpu   memory     pods
a                                1       2  0% > 100%  0% > 0%  0% > 2%
b                                1       2  0% > 100%  0% > 0%  0% > 2%

node  placed  pods
one        2  shop/web-0, shop/web-2
two        2  shop/web-1, shop/web-3

without a node       pods  why
Deployment shop/web     2  0/2 nodes are available: 2 Insufficient cpu.
"""


def test_a_render_may_come_through_a_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO((folder / "render.yaml").read_text()))
    assert simulate(folder, "--template", "-") == 0
    assert (
        "note         ignored, because they create no pods: 1 ConfigMap\n"
        in capsys.readouterr().out
    )
    monkeypatch.setattr("sys.stdin", StringIO("{"))
    assert simulate(folder, "--template", "-") == 2
    assert "stdin: not YAML" in capsys.readouterr().err


def test_objects_that_name_no_namespace_are_where_one_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--template", "render.yaml", "--pod", "pods.yaml", "-n", "apart", "--output", "json"]
    bare = deployment("bare")
    del bare["metadata"]["namespace"]
    (folder / "render.yaml").write_text(yaml.safe_dump_all([bare, deployment()]), encoding="utf-8")
    simulate(folder, *argv)
    found = json.loads(capsys.readouterr().out)
    left = [pod for group in found["unplaced"] for pod in group["pods"]]
    keys = ["apart/bare-0", "default/a", "default/b", "shop/web-0"]
    assert sorted([*found["placements"], *left]) == keys


def test_which_nodes_can_go_as_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--template", "web.yaml", "--find-removable", "--find-nodes", "one"]
    assert simulate(folder, *argv) == 0
    shown = capsys.readouterr().out
    assert "can go        two\n" in shown
    assert shown.endswith(REMOVABLE)


REMOVABLE = """
can go  pods  to
two        0

without them: 1 node, use of cpu 50%, memory 0%, pods 1%

stays  nodes  why
one        1  the other nodes have too little cpu left
"""


def test_what_moves_as_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apart = [pod(f"p{i}", cpu="500m", node=name) for i, name in enumerate(("one", "two", "two"))]
    written = b"".join(snapshot(*TAKEN.objects["Node"], *apart).encode())
    (folder / "cluster.json.gz").write_bytes(written)
    assert simulate(folder, "--repack", "--preset", "binpack") == 0
    shown = capsys.readouterr().out
    assert "nodes in use  2 before, 1 after; 2 of 3 pods moved\n" in shown
    assert shown.endswith(REPACKED)


@pytest.mark.wall
@pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed")
def test_a_proof_of_how_few_nodes_are_needed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apart = [pod(f"p{i}", cpu="500m", node=name) for i, name in enumerate(("one", "two", "two"))]
    written = b"".join(snapshot(*TAKEN.objects["Node"], *apart).encode())
    (folder / "cluster.json.gz").write_bytes(written)
    assert simulate(folder, "--repack", "--prove") == 0
    told = capsys.readouterr().out.splitlines()
    first = told.index("fewest nodes for 3 pods:")
    assert told[first + 1 : first + 3] == [
        "  nodes that run pods: 1, proven to be the best",
        "  now 2, as the scheduler places them 2",
    ]
    assert simulate(folder, "--repack", "--prove", "--output", "json") == 0
    [number] = json.loads(capsys.readouterr().out)["certificate"]["numbers"]
    assert number == {"what": "nodes that run pods", "value": 1, "bound": 1}


REPACKED = """
from                  moved  to
two   would be empty      2  one (2)

would be empty: two
"""


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(
            ["--config", "config.yaml", "--template", "web.yaml"],
            "berth simulate: pod shop/web-0: spec.schedulerName: no profile 'default-scheduler'",
            id="another configuration",
        ),
        pytest.param(
            ["--find-nodes", "x"], "findNodes.like: 'x': there is no such node", id="no such node"
        ),
        pytest.param(["--add-nodes", "pods.yaml"], "one Node is needed, got 3", id="no node"),
        pytest.param(["--pod", "/nonexistent/file"], "/nonexistent/file: No such", id="no file"),
        pytest.param(
            ["--compare-config", "/nonexistent/file"], "/nonexistent/file: No such", id="no config"
        ),
        pytest.param(["--seed", "-1"], "seed", id="a negative seed"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str], says: str
) -> None:
    assert simulate(folder, *argv) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(
            ["--snapshot", "x", "--server", "http://y"],
            "--snapshot, --server, --kubeconfig and -f exclude each other",
            id="two clusters",
        ),
        pytest.param(
            ["-f", "x"], "-f requires -o, and -o requires -f", id="a source without a target"
        ),
        pytest.param(
            ["--snapshot", "x", "--replicas", "2"],
            "--replicas requires --template",
            id="replicas of nothing",
        ),
        pytest.param(
            ["--snapshot", "x", "--count", "2"], "--count requires --add-nodes", id="a bare count"
        ),
        pytest.param(
            ["--snapshot", "x", "--prove"], "--prove requires --repack", id="nothing to prove"
        ),
        pytest.param(
            ["--repack", "--prove"],
            "--prove requires --snapshot or --kubeconfig, without --server",
            id="a proof by a running scheduler",
        ),
        pytest.param(
            ["--snapshot", "x", "--repack", "--prove", "--profile", "y"],
            "--prove and --profile exclude each other",
            id="a proof for a profile",
        ),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["simulate", *argv])
    assert says in capsys.readouterr().err


def test_a_running_scheduler_is_asked() -> None:
    question = {"templates": [{"manifest": deployment()}]}

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/simulate")
        found = ask(TAKEN, **json.loads(request.content))
        return httpx.Response(200, content=found.model_dump_json(by_alias=True))

    scheduler = RunningScheduler("http://localhost", transport=httpx.MockTransport(answer))
    assert ask_to_simulate(scheduler, question) == ask(TAKEN, **question)


@pytest.mark.parametrize(
    ("flags", "url"),
    [
        pytest.param([], "http://127.0.0.1:10261", id="the one of berth up"),
        pytest.param(["--server", "http://localhost:1"], "http://localhost:1", id="another"),
    ],
)
def test_the_scheduler_is_found_as_by_explain(
    flags: list[str],
    url: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a source it is the running one, with the credentials of ./berth.kubeconfig."""
    asked: list[RunningScheduler] = []

    def found(scheduler: RunningScheduler, question: Mapping[str, Any], _hear: object) -> Answer:
        asked.append(scheduler)
        return ask(TAKEN, **question)

    monkeypatch.chdir(folder)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("berth.service.scheduler_client.ask_to_simulate", found)
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "sesame"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
    (folder / "berth.kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")

    assert cli.main(["simulate", "--template", "web.yaml", *flags]) == 0
    assert [(each.url, each.authorization) for each in asked] == [(url, "Bearer sesame")]
    assert "yes: 1 of 1 pod has a node" in capsys.readouterr().out


def test_without_a_scheduler_it_is_told_what_else_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(*_asked: object) -> Answer:
        raise AskError("no scheduler answers at https://127.0.0.1:10261: refused")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("berth.service.scheduler_client.ask_to_simulate", nobody)
    assert cli.main(["simulate"]) == 2
    said = capsys.readouterr().err
    assert (
        "no scheduler answers at https://127.0.0.1:10261: refused; otherwise pass --server," in said
    )
    assert cli.main(["simulate", "--server", "https://127.0.0.1:10261"]) == 2
    assert "otherwise pass" not in capsys.readouterr().err


class ListedApi:
    """An API server that has what it is given, and serves no other kinds."""

    def __init__(self, **lists: dict[str, Any]) -> None:
        self.lists = lists
        self.asked: list[str] = []
        self.forbidden: tuple[str, ...] = ()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        name = path if path in self.lists else path.rpartition("/")[2]
        self.asked.append(path if not params else f"{path}?{params['fieldSelector']}")
        if name in self.forbidden:
            raise ForbiddenError(403, "Forbidden", path)
        if name not in self.lists:
            raise NotFoundError(404, "NotFound", path)
        return json.dumps(self.lists[name]).encode()

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("only listed")


async def test_a_cluster_is_listed() -> None:
    bare = manifest(node("n"))
    del bare["kind"], bare["apiVersion"]  # as items of lists come
    api = ListedApi(
        nodes={"kind": "NodeList", "apiVersion": "v1", "items": [bare]},
        pods={"kind": "PodList", "apiVersion": "v1", "items": None},
    )
    found = await snapshot_of(api, time="now")
    assert (found.time, dict(found.objects)) == ("now", {"Node": [node("n")]})
    assert "/api/v1/pods?status.phase!=Succeeded,status.phase!=Failed" in api.asked


async def test_a_cluster_with_devices_of_an_old_version_is_listed() -> None:
    request = {"name": "r", "deviceClassName": "gpu"}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    head = {"kind": "ResourceClaimList", "apiVersion": "resource.k8s.io/v1beta1"}
    path = "/apis/resource.k8s.io/v1beta1/resourceclaims"
    api = ListedApi(**{path: {**head, "items": [claim]}})
    (listed,) = (await snapshot_of(api, time="now")).objects["ResourceClaim"]
    assert isinstance(listed, ResourceClaim)
    (asked,) = listed.spec.devices.requests
    assert asked.exactly is not None
    assert asked.exactly.device_class_name == "gpu"


async def test_daemon_sets_are_listed_by_whoever_may() -> None:
    written = deployment("agent", kind="DaemonSet")
    api = ListedApi(daemonsets={"kind": "DaemonSetList", "apiVersion": "v1", "items": [written]})
    assert (await snapshot_of(api, time="now")).daemon_sets == (written,)
    assert "/apis/apps/v1/daemonsets" in api.asked
    api.forbidden = ("daemonsets",)
    assert (await snapshot_of(api, time="now")).daemon_sets == ()


def test_copies_weights_and_profiles(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = node("busy", cpu="4", memory="8Gi"), node("idle", cpu="4", memory="8Gi")
    taken = snapshot(*nodes, pod("running", cpu="1", memory="2Gi", node="busy"))
    (folder / "cluster.json.gz").write_bytes(gzip.compress(b"".join(taken.encode())))
    fit, balanced = "NodeResourcesFit=0", "NodeResourcesBalancedAllocation=0"
    weights = ["--compare-weight", fit, "--compare-weight", f"default-scheduler/{balanced}"]
    argv = ["--like", "running", "--replicas", "2", "--output", "json", *weights]
    assert simulate(folder, *argv, "--profile", "default-scheduler") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["placements"] == {"default/running-0": "idle", "default/running-1": "busy"}
    assert found["compared"]["placements"] == dict.fromkeys(found["placements"], "busy")

    assert simulate(folder, "--weight", fit, "--weight", balanced, "--like", "running") == 0
    assert "busy       1  default/running-0" in capsys.readouterr().out
    assert simulate(folder, "--compare-profile", "other") == 2
    said = capsys.readouterr().err
    assert "compareProfile: 'other': must be one of default-scheduler" in said
