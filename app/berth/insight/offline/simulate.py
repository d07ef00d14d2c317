"""A sequence of pods in, where each would go out, in the shape of the recordings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.insight.offline.explain import configuration
from berth.insight.offline.scenario import ScenarioError, objects_of, read
from berth.kube.objects.pod import Pod
from berth.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.scheduler.config.load import Adjust, as_is
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import (
    SimulatedCluster,
    SimulationOptions,
    run_simulation,
)
from berth.scheduler.framework.listers import kinds_of, with_kinds
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.profile.build import Registry, kinds_read
from berth.scheduler.result import Result
from berth.scheduler.schedule_pod import smallest_name

KIND_OF_REFUSAL: Final = {Result.UNSCHEDULABLE: "fitErrors", Result.ERROR: "errors"}


def simulate(
    scenario: Mapping[str, Any],
    registry: Registry,
    *,
    seed: int | None = None,
    adjust: Adjust = as_is,
) -> dict[str, Any]:
    """Schedule ``scenario["pods"]`` in their order, each with those before it in place.

    A pod is tried once, and who does not fit is left out. Nobody is preempted. A gang is placed
    when its first pod's turn comes. No pod is held back: PreEnqueue plugins see all pods, and may
    say what they like. A scenario with a single pod gets ``{"id", "unsupported"}``: it is for
    ``berth explain``. Raises ScenarioError or ConfigError when the scenario is malformed.

    Of several best nodes the smallest name is taken, as in the recordings; with a *seed* one is
    drawn, as a scheduler does, and the same seed draws the same ones. *adjust* may change the
    configuration of the scenario.
    """
    identity = scenario.get("id")
    if "pods" not in scenario:
        return {"id": identity, "unsupported": "a single pod; simulate takes a sequence of pods"}
    config = configuration(scenario, registry, adjust)
    listers = with_kinds(kinds_read(registry))
    cluster = SimulatedCluster(
        config,
        registry,
        SimulationOptions(
            preempts=False,
            gates=False,
            select=smallest_name if seed is None else None,
            sort_key=_first_come_first_served,
        ),
        listers=listers,
    )
    cluster.rng.seed(seed or 0)
    for obj in objects_of(scenario.get("objects", ()), kinds=kinds_of(listers)):
        _put(cluster, obj)
    pods = {pod.key: pod for pod in _pods(scenario, config, cluster)}
    return {"id": identity} | run_simulation(_schedule(cluster, pods))


async def _schedule(cluster: SimulatedCluster, pods: Mapping[str, PodInfo]) -> dict[str, Any]:
    cluster.show_to_gates(pods.values())
    for pod in pods.values():
        cluster.wait_anew(pod.pod)
    assignments: dict[str, str | None] = dict.fromkeys(pods)
    refusals: dict[str, dict[str, str]] = {}
    while (records := await cluster.schedule_next()) is not None:
        for record in records:
            assignments[record.pod] = record.node or None
            if not record.node:
                kind = KIND_OF_REFUSAL[record.result]
                refusals.setdefault(kind, {})[record.pod] = record.message
                cluster.put_aside(pods[record.pod].pod)
    return {"assignments": assignments} | refusals


def _put(cluster: SimulatedCluster, obj: Any) -> None:
    """Put in an object of the scenario; pods without a node only leave room to their nominations.

    Raises CacheError for a pod that has no uid, or that of another pod.
    """
    if isinstance(obj, Pod) and (obj.is_terminated or not obj.spec.node_name):
        cluster.put_aside(obj)
    else:
        cluster.put(obj)


def _pods(
    scenario: Mapping[str, Any], config: KubeSchedulerConfiguration, cluster: SimulatedCluster
) -> Iterator[PodInfo]:
    """Yield the pods of the sequence; ScenarioError for one that cannot be scheduled."""
    uids = {pod.uid for pod in cluster.cache.pods()}
    names = {profile.scheduler_name for profile in config.profiles}
    for raw in scenario["pods"]:
        pod: Pod = read(raw, Pod)
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        if name not in names:
            raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
        uid = pod.metadata.uid
        if not uid or uid in uids:
            why = f"{uid!r} is that of another pod" if uid else "needed to tell pods apart"
            raise ScenarioError(f"pod {pod.key}: metadata.uid: {why}")
        uids.add(uid)
        spec = msgspec.structs.replace(pod.spec, scheduler_name=name)
        yield PodInfo(msgspec.structs.replace(pod, spec=spec))


def _first_come_first_served(_queued: QueuedPodInfo) -> int:
    """Put all pods on a par: the queue then gives them out in the order in which they came."""
    return 0
