"""The flags that say who may use an embedded cluster, and which nodes it has."""

import argparse
from pathlib import Path

import pytest

from berth.cli.flags.embedded_cluster import (
    add_cluster_flags,
    add_node_flags,
    embedded_cluster,
    node_pools,
)
from berth.cluster.access.tokens import TokenFileError
from berth.cluster.kubelet.node_template import NodePool
from berth.runtime.errors import UserError


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_cluster_flags(parser)
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("t,alice\n", "tokens.csv:1: expected at least 3 columns", id="malformed"),
        pytest.param(None, "tokens.csv: No such file or directory", id="absent"),
    ],
)
def test_token_files_that_cannot_be_used_are_named(
    tmp_path: Path, text: str | None, why: str
) -> None:
    path = tmp_path / "tokens.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenFileError, match=why):
        embedded_cluster(parsed(f"--token-auth-file={path}"))


@pytest.mark.parametrize(
    ("argv", "release", "has_rules"),
    [
        pytest.param([], "1.37", True, id="the latest"),
        pytest.param(["--kubernetes-version=1.36"], "1.36", False, id="the one that is asked for"),
        pytest.param(
            ["--kubernetes-version=1.36", "--feature-gates=DRADeviceTaintRules=true"],
            "1.36",
            True,
            id="with a gate of that release",
        ),
    ],
)
def test_the_release(argv: list[str], release: str, *, has_rules: bool) -> None:
    cluster = embedded_cluster(parsed(*argv))
    assert cluster.release == release
    assert ("DRADeviceTaintRules" in cluster.features) is has_rules


def test_a_release_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--kubernetes-version=1.35")
    assert "--kubernetes-version: invalid choice: '1.35'" in capsys.readouterr().err


@pytest.mark.wall
@pytest.mark.parametrize(
    ("argv", "scheme"),
    [
        pytest.param([], "https://", id="secure unless told otherwise"),
        pytest.param(["--insecure"], "http://", id="insecure"),
    ],
)
async def test_tls(argv: list[str], scheme: str) -> None:
    cluster = embedded_cluster(parsed(*argv))
    await cluster.start(0)
    assert cluster.url.startswith(scheme)
    await cluster.stop()


@pytest.mark.wall
async def test_tokens_of_the_file_are_good(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("secret,alice,1,system:masters\n", encoding="utf-8")
    cluster = embedded_cluster(parsed(f"--token-auth-file={path}"))
    await cluster.start(0)
    client = await cluster.connect("alice", token="secret")
    assert b"NodeList" in await client.request("GET", "/api/v1/nodes")
    await client.close()
    await cluster.stop()


SHAPES = """\
apiVersion: v1
kind: Node
metadata: {name: general, annotations: {berth.dev/count: "12"}}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: gpu}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "16", memory: 128Gi, pods: "110", example.com/gpu: "4"}}
"""


def pools(tmp_path: Path, text: str, *argv: str) -> list[NodePool]:
    path = tmp_path / "nodes.yaml"
    path.write_text(text, encoding="utf-8")
    parser = argparse.ArgumentParser()
    add_node_flags(parser, nodes=20, besides="--node-group")
    return node_pools(parser.parse_args([f"--node-template={path}", *argv]), default=20)


@pytest.mark.parametrize(
    ("argv", "gpus"),
    [pytest.param([], 20, id="by default"), pytest.param(["--nodes=2"], 2, id="by the flag")],
)
def test_nodes_of_several_shapes(tmp_path: Path, argv: list[str], gpus: int) -> None:
    general, gpu = pools(tmp_path, SHAPES, *argv)
    assert (general.count, gpu.count) == (12, gpus)
    assert (general.names()[-1], gpu.names()[0]) == (
        "general-11",
        f"gpu-{'0' * len(str(gpus - 1))}",
    )
    assert general.template.allocatable()["cpu"] == "8"
    assert gpu.template.allocatable()["example.com/gpu"] == "4"
    assert [dict(taint) for taint in gpu.template.taints] == [
        {"key": "gpu", "value": "", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("kind: Pod\napiVersion: v1\n", r"Nodes are needed, got \['Pod'\]", id="kind"),
        pytest.param(
            SHAPES.replace("name: gpu", "name: general"),
            "metadata.name: 'general': names the nodes of 2 shapes",
            id="names that clash",
        ),
        pytest.param(
            SHAPES.replace('"12"', "many"),
            r"metadata.annotations\[berth.dev/count\]: 'many': must be a number",
            id="a count that is none",
        ),
        pytest.param(
            SHAPES.replace('"12"', '"-1"'), "'-1': must be a number from 0", id="a negative count"
        ),
    ],
)
def test_shapes_that_cannot_be_used_are_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        pools(tmp_path, text)
