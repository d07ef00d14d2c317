"""Groups of pods for tests, and a scheduler with the gates that they need."""

from typing import Any

import msgspec

from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.kube.objects.pod_group import (
    CompositeGangSchedulingPolicy,
    CompositePodGroup,
    CompositePodGroupSchedulingPolicy,
    CompositePodGroupSpec,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupCondition,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)
from berth.runtime.clock import FakeClock
from berth.scheduler.profile.build import Registry
from berth_plugins.registry import IN_TREE
from tests.builders import pod
from tests.harness import Harness

GATES = ("GenericWorkload", "GangScheduling")


def group(
    name: str = "g",
    *,
    min_count: int | None = None,
    topology: str = "",
    priority: int | None = None,
    disruption_mode: str = "Pod",
    preemption_policy: str | None = None,
    parent: str = "",
    created: str = "",
) -> PodGroup:
    """Make a gang of at least *min_count* pods; None: the policy is ``basic``.

    *topology* is the label of nodes that all pods must agree in; empty: none. *parent* is the
    CompositePodGroup that it is a part of.
    """
    gang = None if min_count is None else GangSchedulingPolicy(min_count=min_count)
    return PodGroup(
        ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            generation=1,
            creation_timestamp=created or None,
        ),
        PodGroupSpec(
            PodGroupSchedulingPolicy(gang=gang),
            PodGroupSchedulingConstraints((TopologyConstraint(topology),)) if topology else None,
            disruption_mode=disruption_mode,
            priority=priority,
            preemption_policy=preemption_policy,
            parent_composite_pod_group_name=parent,
        ),
    )


def composite(
    name: str = "root",
    *,
    min_count: int | None = None,
    topology: str = "",
    priority: int | None = None,
    disruption_mode: str = "Pod",
    preemption_policy: str | None = None,
    parent: str = "",
) -> CompositePodGroup:
    """Make a group of at least *min_count* groups; None: the policy is ``basic``."""
    gang = None if min_count is None else CompositeGangSchedulingPolicy(min_count=min_count)
    return CompositePodGroup(
        ObjectMeta(name=name, namespace="default", uid=f"uid-composite-{name}", generation=1),
        CompositePodGroupSpec(
            CompositePodGroupSchedulingPolicy(gang=gang),
            PodGroupSchedulingConstraints((TopologyConstraint(topology),)) if topology else None,
            disruption_mode=disruption_mode,
            priority=priority,
            preemption_policy=preemption_policy,
            parent_composite_pod_group_name=parent,
        ),
    )


def member(name: str, of: str = "g", **fields: Any) -> Pod:
    """Make a pod of a group; *fields* as of :func:`tests.builders.pod`."""
    plain = pod(name, **fields)
    spec = msgspec.structs.replace(plain.spec, scheduling_group=SchedulingGroup(of))
    return msgspec.structs.replace(plain, spec=spec)


def members(*names: str, of: str = "g", **fields: Any) -> list[Pod]:
    return [member(name, of, **fields) for name in names]


def group_harness(
    *gates: str,
    profiles: list[dict[str, Any]] | None = None,
    clock: FakeClock | None = None,
    release: str = "1.36",
    registry: Registry = IN_TREE,
) -> Harness:
    """Make a scheduler for groups; *gates* are turned on beside those of gangs."""
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "emulatedVersion": release,
        "featureGates": dict.fromkeys((*GATES, *gates), True),
    }
    if profiles is not None:
        config["profiles"] = profiles
    return Harness(config=config, registry=registry, clock=clock)


def harness_of_entities(*gates: str, **options: Any) -> Harness:
    return group_harness(*gates, release="1.37", **options)


def condition_of(harness: Harness, name: str = "g") -> PodGroupCondition | None:
    found = harness.listers.pod_groups.get("default", name)
    assert found is not None
    return next(iter(found.status.conditions), None)


def told_of_group(harness: Harness) -> tuple[str, str, str]:
    """Return status, reason and message of the condition of the group."""
    condition = condition_of(harness)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def told(harness: Harness, name: str) -> str:
    """Return the message of a pod's PodScheduled condition."""
    return harness.cluster.conditions[f"default/{name}"].message


def lesser(*names: str, priority: int = 10, on: str = "n", cpu: str = "1") -> list[Pod]:
    """Make pods that run on a node, each started a minute after the one before."""
    return [
        pod(name, cpu=cpu, node=on, priority=priority, started=f"2026-01-01T00:{minute:02}:00Z")
        for minute, name in enumerate(names)
    ]
