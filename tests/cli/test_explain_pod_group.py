"""``berth explain podgroup/NAME``: of a scheduler that answers over HTTP, and of a snapshot."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.builders import node
from tests.cli.test_explain import served
from tests.harness import Harness
from tests.insight.explain.groups.asking import explain_group
from tests.scheduler.pod_group.building import composite, group, group_harness, members

from berth import cli
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.whatif.live import LiveSnapshots

SUMMARY = (
    "podgroup default/g: 2 of 3 waiting pods can get nodes now, and 3 are needed together;"
    " default/c has none: 0/1 nodes are available: 1 Insufficient cpu; it lacks room for 1 more pod"
    " (1000m cpu); 1 more node like n would do; tried again in "
)


async def waiting() -> Harness:
    """Return a scheduler with a gang of three and room for two."""
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    return harness


@pytest.mark.wall
async def test_a_group_of_a_running_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    harness = await waiting()
    async with served(harness) as url:

        async def ask(*argv: str) -> tuple[int, str, str]:
            code = await asyncio.to_thread(cli.main, ["explain", *argv, "--server", url])
            told = capsys.readouterr()
            return code, told.out, told.err

        code, table, _ = await ask("podgroup/g")
        _, as_json, _ = await ask("podgroups/g", "-n", "default", "--output", "json")
        unknown, _, why = await ask("podgroup/h")

    assert code == 0
    assert table.startswith(SUMMARY)
    assert "\nobstacle      default/c\n" in table
    assert PodGroupExplanation.model_validate_json(as_json) == explain_group(harness)
    assert json.loads(as_json)["evaluation"]["nodes"][0]["plugin"] == "NodeResourcesFit"
    refusal = "there is none and no pod names it, or the feature gate GenericWorkload is off"
    assert (unknown, why) == (2, f"berth explain: pod group default/h: {refusal}\n")


async def test_a_group_of_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness = await waiting()
    path = tmp_path / "snapshot.json"
    path.write_bytes(b"".join(LiveSnapshots(harness.core).take().encode()))

    assert cli.main(["explain", "-f", str(path), "--pod", "podgroup/g", "--output", "json"]) == 0
    told = PodGroupExplanation.model_validate_json(capsys.readouterr().out)
    assert told == explain_group(harness, limit=10)

    assert cli.main(["explain", "-f", str(path), "--pod", "podgroup/h"]) == 2
    assert "pod group default/h: there is none" in capsys.readouterr().err


async def waiting_tree() -> Harness:
    """Return a scheduler with a group of two groups, of which one has no pod yet."""
    harness = group_harness("TopologyAwareWorkloadScheduling", "CompositePodGroup", release="1.37")
    harness.put(node("n", cpu="2"), composite("c", min_count=2))
    harness.put(group("g", min_count=1, parent="c"), group("h", min_count=1, parent="c"))
    harness.put(*members("a", cpu="1"))
    await harness.until_idle()
    return harness


TREE = (
    "compositepodgroup default/c: 1 of 2 groups is ready, and 2 must be before any pod is tried;"
    " too few pods exist of default/h"
)


@pytest.mark.wall
async def test_a_group_of_groups_of_a_running_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    harness = await waiting_tree()
    async with served(harness) as url:
        argv = ["explain", "compositepodgroup/c", "--server", url]
        code = await asyncio.to_thread(cli.main, argv)
    told = capsys.readouterr().out
    assert code == 0
    assert told.startswith(TREE)
    assert "\n  default/h  gang 1 " in told


async def test_a_group_of_groups_of_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = await waiting_tree()
    path = tmp_path / "snapshot.json"
    path.write_bytes(b"".join(LiveSnapshots(harness.core).take().encode()))
    assert cli.main(["explain", "-f", str(path), "--pod", "compositepodgroup/c"]) == 0
    assert capsys.readouterr().out.startswith(TREE)
