"""``examples/groups``: the job of docs/groups.md, on its cluster."""

from pathlib import Path
from typing import Any

import yaml

from berth.insight.whatif.answer import Answer, PodGroupOutcome
from tests.insight.whatif.asking import ask
from tests.insight.whatif.test_pod_groups import cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "groups"
RACK = "example.com/rack"


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")))


def what_if(**racks: int) -> Answer:
    """Ask about the job on racks of so many nodes, beside the notebooks."""
    [node] = manifests("node.yaml")
    added = [
        {"manifest": {**node, "metadata": {"name": name, "labels": {RACK: name}}}, "count": number}
        for name, number in ((rack.replace("_", "-"), number) for rack, number in racks.items())
    ]
    templates = [{"manifest": manifest} for manifest in manifests("train.yaml")]
    return ask(cluster(), addNodes=added, pods=manifests("notebooks.yaml"), templates=templates)


def outcome(answer: Answer) -> PodGroupOutcome:
    [found] = answer.pod_groups
    return found


def test_the_job_waits_for_one_gpu() -> None:
    found = outcome(what_if(rack_1=2, rack_2=2))

    assert (found.starts, found.min_count, found.placed) == (False, 8, 0)
    assert found.why.startswith("7 of 8 waiting pods can get nodes now, and 8 are needed together")
    assert "room for 1 more pod (1 nvidia.com/gpu) in example.com/rack=rack-2" in found.why


def test_another_node_lets_it_start() -> None:
    found = outcome(what_if(rack_1=2, rack_2=3))
    assert (found.starts, found.topology) == (True, f"{RACK}=rack-2")
