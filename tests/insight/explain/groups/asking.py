"""Asks about pod groups of a scheduler in process."""

from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.groups.tables import render_group
from berth.kube.objects.pod_group import GroupKey
from berth.runtime.tables import as_text
from tests.builders import node
from tests.harness import Harness
from tests.insight.explain.asking import explainer
from tests.scheduler.pod_group.building import group_harness

TOPOLOGY = "TopologyAwareWorkloadScheduling"


def explain_group(
    harness: Harness, name: str = "g", *, limit: int | None = None
) -> PodGroupExplanation:
    found = explainer(harness).explain_pod_group(GroupKey("default", name), limit=limit)
    assert found is not None, name
    return found


def lines(found: PodGroupExplanation) -> list[str]:
    """Return the tables for people, with single spaces."""
    text = as_text(render_group(found), width=200)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def racks(**sizes: int) -> Harness:
    """Make a cluster of racks with so many nodes of 2 CPUs each."""
    harness = group_harness(TOPOLOGY)
    for rack, size in sizes.items():
        for number in range(size):
            harness.put(node(f"{rack}{number}", cpu="2", labels={"rack": rack}))
    return harness
