"""The JSON of ``/debug/cluster``: all nodes at once, each a place in lists that run in parallel.

What many nodes have alike is listed once, and of each node there is the index in that list.
Amounts are in the units of the scheduler, as everywhere below ``/debug``.
"""

from berth.insight.explain.explanation import ResponseModel


class OfAllNodes(ResponseModel):
    """Something about all nodes."""

    version: str
    """Of the list of nodes. While it is the same, so is the order of the nodes, whatever is asked.
    It changes when a node comes, goes or changes, and means nothing else."""


class ClusterNodes(OfAllNodes):
    """All nodes as they are, whatever pods they run."""

    names: list[str]
    group_by: str
    """The label key; empty: all nodes are in one group."""
    groups: list[str | None]
    """The values of the label that nodes have; null: nodes without it."""
    group: list[int]
    """By node, the index in ``groups``."""
    taint_sets: list[list[str]]
    """The sets of taints that nodes have, each taint as in key=value:effect."""
    taint_set: list[int]
    """By node, the index in ``taintSets``."""
    unschedulable: list[int]
    """The places of the nodes with ``spec.unschedulable``."""
    resources: list[str]
    """What ``/debug/cluster/use`` can be asked for."""


class LabelKey(ResponseModel):
    """A label that nodes have."""

    key: str
    values: int
    """How many different ones there are."""


class NodeLabels(OfAllNodes):
    """The labels that nodes have, by key."""

    items: list[LabelKey]


class ResourceUse(OfAllNodes):
    """How much of a resource each node has, and how much its pods request."""

    resource: str
    allocatable: list[int]
    """By node."""
    requested: list[int]
    """By node, assumed pods included."""


class PodRejections(OfAllNodes):
    """Which filters reject a pending pod on each node, all of them and not only the first."""

    pod: str
    """As in namespace/name."""
    message: str
    """Why the pod fits nowhere; empty if it fits somewhere."""
    num_feasible: int
    """How many nodes no filter rejects."""
    plugin_sets: list[list[str]]
    """The sets of plugins that reject the pod together, in the order in which they are asked. A
    plugin whose PreFilter leaves nodes out counts there."""
    plugin_set: list[int]
    """By node, the index in ``pluginSets``."""
