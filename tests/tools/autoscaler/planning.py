"""Small clusters with node groups, and what a scan plans for them."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from berth.cluster.kubelet.node_template import NodeTemplate
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.autoscaler.actions import Action
from berth.tools.autoscaler.autoscaler import Plan, Planner
from berth.tools.autoscaler.cluster_view import ClusterView, DrainPod
from berth.tools.autoscaler.node_groups import GROUP_LABEL, NodeGroup
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.scale_up import GroupState
from berth.tools.autoscaler.simulation import Simulation
from berth_plugins.registry import IN_TREE
from tests.builders import condition, node, pod
from tests.insight.whatif.asking import snapshot

NOW = 1_767_225_600.0
SIMULATION = Simulation(lambda: IN_TREE)
DEFAULTS = AutoscalingOptions()


def group(name: str = "general", *, cpu: str = "4", **fields: Any) -> NodeGroup:
    """A group of nodes of 4 cores and 16 GiB."""
    labels = {GROUP_LABEL: name, **fields.pop("labels", {})}
    taints = fields.pop("taints", ())
    template = NodeTemplate(
        prefix=f"{name}-",
        cpu=cpu,
        memory=fields.pop("memory", "16Gi"),
        zones=0,
        labels=labels,
        taints=taints,
    )
    return NodeGroup(name, **{"max_size": 5, "template": template, **fields})


def member(name: str, *, of: str = "general", cpu: str = "4", **fields: Any) -> Node:
    """A node of a group."""
    labels = {GROUP_LABEL: of, **fields.pop("labels", {})}
    return node(name, cpu=cpu, memory="16Gi", labels=labels, **fields)


def unschedulable(name: str, *, cpu: str = "1", **fields: Any) -> Pod:
    """A pod that the scheduler has tried in vain."""
    refused = condition("PodScheduled", "False", reason="Unschedulable")
    fields = {"owner": "web", "conditions": (refused,), **fields}
    return pod(name, cpu=cpu, **fields)


def running(name: str, on: str, *, cpu: str = "1", **fields: Any) -> Pod:
    return pod(name, cpu=cpu, node=on, **{"owner": "web", **fields})


def view(*objects: KubeStruct, drain: Mapping[str, DrainPod] | None = None) -> ClusterView:
    return ClusterView(snapshot(*objects), drain or {})


def states(
    seen: ClusterView, *groups: NodeGroup, upcoming: Mapping[str, int] | None = None
) -> list[GroupState]:
    """Return the groups as large as their nodes, and *upcoming* ones, are many."""
    coming = upcoming or {}
    found = []
    for each in groups:
        nodes = sum(n.labels.get(GROUP_LABEL) == each.name for n in seen.nodes.values())
        more = coming.get(each.name, 0)
        found.append(GroupState(each, nodes + more, more))
    return found


def planner(options: AutoscalingOptions = DEFAULTS) -> Planner:
    return Planner(options, SIMULATION, rng=random.Random(1))


def plan(
    seen: ClusterView,
    groups: Sequence[GroupState],
    *,
    by: Planner | None = None,
    options: AutoscalingOptions = DEFAULTS,
    at: float = 0.0,
) -> Plan:
    """Return what one scan plans, *at* so many seconds after the first."""
    used = by or planner(options)
    return used.plan(seen, groups, monotonic=at, now=NOW + at)


def scan(seen: ClusterView, groups: Sequence[GroupState], **more: Any) -> list[Action]:
    return list(plan(seen, groups, **more).actions)
