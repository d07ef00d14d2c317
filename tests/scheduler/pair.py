"""Two schedulers to which the same happens, of which one shares the answers of plugins."""

import random
from typing import Any

from berth.kube.client.errors import ConflictError
from berth.kube.objects.node import Node
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PermitPlugin, ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.build import Registry
from berth_plugins.registry import IN_TREE
from tests.builders import (
    host_port,
    node,
    node_affinity,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    requirement,
    selector,
    spread,
    taint,
    term,
    toleration,
)
from tests.harness import Harness
from tests.scheduler.pod_group.building import GATES

TIMED = ("scheduler_plugin_execution", "berth_plugin_seconds")
"""Metrics of calls, of which there are fewer."""
APPS = [{"app": "x"}, {"app": "y"}]
SCORING = (
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
    "TaintToleration",
)
FILTERING = ("InterPodAffinity", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread")


def number_of(name: str) -> int:
    return sum(map(ord, name))


class Moody(ReservePlugin, PermitPlugin):
    """A plugin by somebody else, that refuses nodes by what things are called."""

    NAME = "Moody"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if number_of(pod.name + node_name) % 11 == 0:
            return Status.unschedulable("not here")
        return Status.error("no idea") if number_of(pod.name + node_name) % 13 == 0 else None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        is_bad = number_of(pod.name + node_name) % 17 == 0
        return Status.unschedulable("not today") if is_bad else None, 0.0


def strategy_of(rng: random.Random) -> dict[str, Any]:
    match rng.randrange(3):
        case 0:
            return {"type": "LeastAllocated"}
        case 1:
            return {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}
        case _:
            shape = [{"utilization": 0, "score": 2}, {"utilization": 70, "score": 10}]
            ratio = {"shape": [*shape, {"utilization": 100, "score": 0}]}
            return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}


def config_of(rng: random.Random) -> dict[str, Any]:
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy_of(rng)}}
    moody = [{"name": "Moody"}] if rng.random() < 0.3 else []
    weighed = {name: rng.randint(1, 300) for name in SCORING if rng.random() < 0.3}
    off = [name for name in SCORING if name not in weighed and rng.random() < 0.15]
    score = {
        "enabled": [{"name": name, "weight": weight} for name, weight in weighed.items()],
        "disabled": [{"name": name} for name in (*off, *weighed)],
    }
    unfiltered = [{"name": name} for name in FILTERING if rng.random() < 0.1]
    profile = {
        "plugins": {
            "multiPoint": {"enabled": moody},
            "score": score,
            "filter": {"disabled": unfiltered},
        },
        "pluginConfig": [fit, {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}}],
        "percentageOfNodesToScore": rng.choice([0, 0, 0, 50]),
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": dict.fromkeys(GATES, True),
        "profiles": [profile],
    }


def node_of(number: int, rng: random.Random) -> Node:
    effect = rng.choice(["NoSchedule", "PreferNoSchedule", "PreferNoSchedule"])
    return node(
        f"n{number}",
        cpu=rng.choice(["2", "4", "4", "8"]),
        memory=rng.choice(["4Gi", "8Gi"]),
        pods=rng.choice([4, 110]),
        zone=rng.choice(["", "a", "b", "c"]),
        labels={"disk": rng.choice(["ssd", "hdd"])},
        taints=[taint("t", effect=effect)] if rng.random() < 0.3 else [],
        allocatable={"example.com/gpu": "3"} if rng.random() < 0.5 else {},
        images={"big:1": 400_000_000} if rng.random() < 0.3 else {},
        unschedulable=rng.random() < 0.05,
    )


def fields_of(rng: random.Random) -> dict[str, Any]:
    """Return what replicas ask for."""
    labels = rng.choice(APPS)
    fields: dict[str, Any] = {
        "labels": labels,
        "cpu": rng.choice([None, "50m", "100m", "700m"]),
        "memory": rng.choice([None, "64Mi", "1Gi"]),
        "image": rng.choice(["", "big:1"]),
    }
    if rng.random() < 0.3:
        fields["tolerations"] = [toleration("t")]
    if rng.random() < 0.2:
        fields["priority"] = rng.choice([5, 10])
    wanted = requirement("disk", "In", "ssd")
    match rng.randrange(12):
        case 0:
            fields["ports"] = [host_port(80)]
        case 1:
            fields["affinity"] = pod_anti_affinity(required=[pod_term(labels)])
        case 2:
            fields["affinity"] = pod_affinity(required=[pod_term(labels, key="zone")])
        case 3:
            fields["affinity"] = pod_anti_affinity(preferred=[(7, pod_term(APPS[0]))])
        case 4:
            fields["spread"] = [spread(selector=selector(labels), max_skew=2)]
        case 5:
            fields["spread"] = [spread(selector=selector(labels), soft=True)]
        case 6:
            fields["affinity"] = node_affinity(preferred=[(3, term(wanted))])
        case 7:
            fields["node_selector"] = {"disk": "ssd"}
        case 8:
            fields["requests"] = {"example.com/gpu": "1"}
    return fields


def varied(fields: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return *fields* with other containers and labels."""
    wanted = {
        "labels": rng.choice([*APPS, {}]),
        "cpu": rng.choice([None, *(f"{n}m" for n in range(10, 900, 7))]),
        "memory": rng.choice([None, *(f"{n}Mi" for n in range(16, 900, 9))]),
        "image": rng.choice(["", "big:1"]),
    }
    return fields | {name: value for name, value in wanted.items() if rng.random() < 0.6}


def relabelled(fields: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return *fields* with other labels, as pods of another Job have."""
    return fields | {"labels": {**rng.choice([*APPS, {}]), "job": str(rng.randrange(6))}}


class Pair:
    """Two schedulers to which the same happens, of which one shares answers."""

    def __init__(self, seed: int) -> None:
        config = config_of(random.Random(seed))
        registry: Registry = {**IN_TREE, Moody.NAME: Moody}
        self.both = [
            Harness(
                config=config,
                registry=registry,
                rng=random.Random(seed),
                shares_answers=shares,
            )
            for shares in (True, False)
        ]

    def put(self, *objects: Any) -> None:
        for harness in self.both:
            harness.put(*objects)

    def delete(self, key: str) -> None:
        for harness in self.both:
            harness.delete(harness.cluster.pods[key])

    def fail_binds(self, *, fail: bool) -> None:
        for harness in self.both:
            harness.cluster.bind_error = ConflictError(409, "Conflict", "a fault") if fail else None

    async def until_idle(self) -> None:
        for harness in self.both:
            await harness.until_idle()
            harness.clock.advance(2)
            harness.queue.flush_backoff_completed()

    def check(self, seed: int) -> None:
        shared, plain = (state_of(harness) for harness in self.both)
        for what, value in plain.items():
            assert shared[what] == value, f"seed {seed}: {what}"


def state_of(harness: Harness) -> dict[str, Any]:
    table = harness.cache.table
    (profile,) = harness.scheduler.profiles.values()
    return {
        "decisions": harness.scheduler.decisions.all(),
        "placements": harness.placements(),
        "requested": table.requested.tolist(),
        "generation": table.generation.tolist(),
        "waiting": harness.queue.sub_queues.pending_counts(),
        "evaluations": profile.evaluations,
        "ties": harness.core.outside.rng.ties.getstate(),
        "rotation": harness.core.sampling.next_start_node_index,
        "metrics": {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for metric in harness.registry.collect()
            for sample in metric.samples
            if sample.name.endswith(("_count", "_total")) and not sample.name.startswith(TIMED)
        },
    }
