"""The beginning that both kinds of runs have in common."""

from collections.abc import Iterator

from berth.scheduler.core.simulated_cluster import SimulatedCluster
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.lab_plugin import LabPlugin
from berth.tools.lab.workload import Workload


def put_all(cluster: SimulatedCluster, workload: Workload) -> None:
    """Put in the nodes of a workload, and what there is beside pods."""
    for obj in (*workload.objects, *workload.nodes):
        cluster.put(obj)


def lab_plugins(cluster: SimulatedCluster) -> Iterator[LabPlugin]:
    for profile in cluster.profiles.values():
        for plugin in profile.plugins:
            if isinstance(plugin, LabPlugin):
                yield plugin


def main_reason(record: DecisionRecord) -> str:
    """Return the reason that holds for most nodes."""
    return max(record.reasons, key=record.reasons.__getitem__, default=record.message)
