"""The interface of plugins with ``berth lab``, beside the extension points."""

from collections.abc import Iterable, Mapping

from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo


class LabPlugin(Plugin):
    """Learns from a workload before it is run, and measures what is done with the cluster."""

    def learn(self, pods: Iterable[PodInfo]) -> None:
        """Take note of the pods of a workload, each once, before any of them is scheduled."""

    def measure(self) -> Mapping[str, float]:
        """Return numbers about the cluster as it is now, by name; asked after every attempt."""
        return {}
