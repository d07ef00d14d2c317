"""Metrics of the process: its build, its resources, its feature gates."""

import platform
import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from berth.runtime.metrics import Family, numbers
from berth.runtime.release import LATEST, RELEASE, EffectiveVersion, version
from berth.scheduler.config.feature_gates import default_gates
from berth.scheduler.config.kube_features import Gate
from berth.scheduler.metrics.families import berth, kube

_NETWORK: Final = Path("/proc/self/net/netstat")


def register_process(
    registry: CollectorRegistry,
    *,
    effective: EffectiveVersion = LATEST,
    gates: Mapping[str, Gate] | None = None,
) -> None:
    """Add the metrics of this process to *registry*.

    *effective* is the release that it is like, and *gates* its feature gates, by default those of
    that release.
    """
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(MoreOfProcessCollector())
    registry.register(
        IdentityCollector(effective, default_gates(effective) if gates is None else gates)
    )


class MoreOfProcessCollector(Collector):
    """The process metrics that Go's client has and Python's does not. Linux only, as there."""

    def collect(self) -> Iterator[Metric]:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        yield GaugeMetricFamily(
            "process_virtual_memory_max_bytes",
            "Bytes of virtual memory that the process may have; -1 for no limit.",
            value=limit,
        )
        traffic = network_traffic(_NETWORK)
        if traffic is None:
            return
        yield CounterMetricFamily(
            "process_network_receive_bytes_total",
            "Bytes received over IP in the network namespace of the process.",
            value=traffic[0],
        )
        yield CounterMetricFamily(
            "process_network_transmit_bytes_total",
            "Bytes sent over IP in the network namespace of the process.",
            value=traffic[1],
        )


def network_traffic(netstat: Path) -> tuple[int, int] | None:
    """Return the bytes received and sent according to *netstat*; None if it has none."""
    try:
        lines = netstat.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    rows = [line.split() for line in lines if line.startswith("IpExt:")]
    if len(rows) != 2:
        return None
    counted = dict(zip(*rows, strict=False))
    return int(counted.get("InOctets", 0)), int(counted.get("OutOctets", 0))


class IdentityCollector(Collector):
    """Version, feature gates, and the number of families; none of it ever changes."""

    def __init__(self, effective: EffectiveVersion, gates: Mapping[str, Gate]) -> None:
        release = effective.emulation
        major, minor = release.split(".")
        operating_system, machine = platform.system().lower(), platform.machine()
        build = {
            "build_date": "",
            "compiler": platform.python_implementation(),
            "git_commit": "",
            "git_tree_state": "",
            "git_version": f"v{release}.0+berth-{version()}",
            "go_version": "",
            "major": major,
            "minor": minor,
            "platform": f"{operating_system}/{_GO_MACHINES.get(machine, machine)}",
        }
        by_stability = Counter(f.stability for f in declared() if f.stability)
        self._metrics = (
            numbers(kube.BUILD_INFO, {tuple(build[k] for k in kube.BUILD_INFO.labels): 1}),
            numbers(
                kube.VERSION_INFO, {(RELEASE, "kube", release, effective.min_compatibility): 1}
            ),
            numbers(
                kube.FEATURE_ENABLED,
                {(name, gate.stage): gate.enabled for name, gate in gates.items()},
            ),
            numbers(kube.REGISTERED_METRICS, {("", level): n for level, n in by_stability.items()}),
        )

    def collect(self) -> tuple[Metric, ...]:
        return self._metrics


_GO_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def declared() -> list[Family]:
    """Return all families that are declared, kube-scheduler's and our own."""
    return [
        thing
        for module in (kube, berth)
        for thing in vars(module).values()
        if isinstance(thing, Family)
    ]
