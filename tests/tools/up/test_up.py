"""A whole embedded cluster in process, over loopback HTTP. Wall time: controllers take some."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.node_template import NodePool
from berth.cluster.sources import gather
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.tools.up.kubeconfig_out import KubeconfigOut
from berth.tools.up.up import Up, UpOptions
from berth_plugins.registry import IN_TREE

pytestmark = pytest.mark.wall


def manifest(name: str, *, kind: str = "Pod", cpu: str = "100m") -> str:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"containers": containers},
        }
    )


async def run(
    tmp_path: Path, *, hear: Callable[[str], None] = lambda _line: None, **options: object
) -> tuple[int, list[str]]:
    """Run until idle; return the exit status and what was said, which *hear* is told at once."""
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        hear(line)

    settings = UpOptions(
        kubeconfig=KubeconfigOut(tmp_path / "kubeconfig"),
        exit_when_idle=True,
        **{"pools": [NodePool(3)], **options},  # type: ignore[arg-type] # a table of options, one per test
    )
    clock, rng = RealClock(), random.Random(1)
    up = Up(
        settings,
        default_configuration(args_models(IN_TREE)),
        EmbeddedCluster(clock=clock, rng=rng),
        clock=clock,
        rng=rng,
        say=say,
    )
    return await up.run(), said


async def test_the_sample_is_placed_but_for_what_cannot_be(tmp_path: Path) -> None:
    status, said = await run(tmp_path, pools=[NodePool(20)], sample=True)

    assert status == 1
    assert "1 pod without a node: shop/too-large" in said
    reasons = [line for line in said if line.startswith("fits nowhere: shop/too-large: 0/20 nodes")]
    assert "17 Insufficient cpu" in reasons[-1]
    assert "checked through the API: 42 pods placed, 1 gated" in said
    assert "no node is over its allocatable" in said
    assert f"--kubeconfig {tmp_path / 'kubeconfig'} " in said[0]
    assert not (tmp_path / "kubeconfig").exists(), "it would lead nowhere"


async def test_everything_placed_is_success(tmp_path: Path) -> None:
    load = tmp_path / "pods.yaml"
    load.write_text("---\n".join(manifest(f"p{i}") for i in range(5)), encoding="utf-8")

    status, said = await run(tmp_path, load=gather([str(load)]))

    assert status == 0
    assert "checked through the API: 5 pods placed, 0 gated" in said


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        pytest.param(
            manifest("x", kind="Rollout"), 0, "1 objects refused, 0 of them with pods",
            id="an object of a kind that is not there",
        ),
        pytest.param(
            manifest("x", kind="Job"), 1, "1 objects refused, 1 of them with pods",
            id="a workload that nobody makes pods of",
        ),
    ],
)  # fmt: skip
async def test_the_status_says_whether_all_pods_were_placed(
    tmp_path: Path, text: str, status: int, told: str
) -> None:
    good, other = tmp_path / "good.yaml", tmp_path / "other.yaml"
    good.write_text(manifest("good"), encoding="utf-8")
    other.write_text(text, encoding="utf-8")

    got, said = await run(tmp_path, load=gather([str(good), str(other)]))

    assert got == status
    assert told in said
    assert "checked through the API: 1 pod placed, 0 gated" in said


async def test_bad_manifests_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    good, bad, broken = tmp_path / "good.yaml", tmp_path / "bad.yaml", tmp_path / "broken.yaml"
    good.write_text(manifest("good") + "---\n" + manifest("good"), encoding="utf-8")
    bad.write_text(
        "---\n".join(
            [
                manifest("negative", cpu="-1"),
                manifest("nonsense", cpu="one"),
                manifest("unknown", kind="Foo"),
                manifest("Not_A_Name"),
            ]
        ),
        encoding="utf-8",
    )
    broken.write_text("a: [", encoding="utf-8")

    status, said = await run(
        tmp_path, load=gather([*map(str, (good, bad, broken, tmp_path / "absent.yaml"))])
    )

    assert status == 1
    refused = [line.removeprefix("not loaded: ") for line in said if "not loaded" in line]
    wanted = [
        "broken.yaml: not YAML",
        "absent.yaml: No such file or directory",
        "good.yaml: Pod 'good': pods \"good\" already exists",
        "must be greater than or equal to 0",
        "quantities must match the regular expression",
        "metadata.name: Invalid value",
        'no matches for kind "Foo" in version "v1"; docs/reference/embedded-api.md lists',
    ]
    for line, part in zip(refused, wanted, strict=True):
        assert part in line
    assert "5 objects refused, 4 of them with pods" in said
    assert "2 files not read" in said
    assert "checked through the API: 1 pod placed, 0 gated" in said
