"""All nodes at once, for pictures of the cluster: straight from the columns of the node table.

What takes a look at every node object is done in pieces. The rest takes a few milliseconds at
50,000 nodes.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic.alias_generators import to_camel

from berth.insight.explain.explainer import Explainer
from berth.insight.explain.explanation import ResponseModel
from berth.kube.objects.node import Node
from berth.runtime.tasks import in_turns
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth.service.server.refusal import LONGEST_WORD
from berth.service.server.scheduler.debug.cluster_models import (
    ClusterNodes,
    LabelKey,
    NodeLabels,
    OfAllNodes,
    PodRejections,
    ResourceUse,
)
from berth.service.server.scheduler.debug.shared_answers import SharedAnswer, SharedAnswers

PODS: Final = "pods"
NODES_PER_TURN: Final = 512
"""A look at all labels of a node takes 2 µs or more."""


class UnknownError(LookupError):
    """There is no such thing to be told about."""


class ClusterAnswers:
    """What ``/debug/cluster`` answers; each answer is made once for all who ask."""

    def __init__(self, view: SchedulerView, explainer: Explainer) -> None:
        self._table = view.cache.table
        self._explainer = explainer
        self._shared = SharedAnswers(view.clock)
        self._start = int(view.clock.now() * 1000)
        """Keeps versions of this process apart from those of others."""

    async def nodes(self, group_by: str) -> SharedAnswer:
        """Return ClusterNodes. Raises UnknownError if no node has the label *group_by*."""

        async def make() -> bytes:
            return _encoded(await self._nodes(group_by))

        return await self._shared.get(("nodes", group_by), self._node_generation, make)

    async def labels(self) -> SharedAnswer:
        """Return NodeLabels."""

        async def make() -> bytes:
            return _encoded(await self._labels())

        return await self._shared.get("labels", self._node_generation, make)

    async def use(self, resource: str) -> SharedAnswer:
        """Return ResourceUse. Raises UnknownError if no node or pod has *resource*."""

        async def make() -> bytes:
            return _encoded(self._use(resource))

        return await self._shared.get(("use", resource), self._generation, make)

    async def rejections(self, pod: str) -> SharedAnswer:
        """Return PodRejections. Raises UnknownError if *pod* is not pending."""

        async def make() -> bytes:
            return _encoded(self._rejections(pod))

        return await self._shared.get(("rejections", pod), self._generation, make)

    def _generation(self) -> int:
        return self._table.last_generation

    def _node_generation(self) -> int:
        return self._table.node_generation

    def _version(self) -> str:
        return f"{self._start:x}-{self._table.node_generation:x}"

    def _rows(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._table.exists)

    async def _nodes(self, group_by: str) -> ClusterNodes:
        # All that may change before the first await; node objects never change.
        table, rows, version = self._table, self._rows(), self._version()
        nodes = _nodes_of(table)
        taint_set, taint_sets = table.taint_set[rows], list(table.taint_sets)
        unschedulable = np.flatnonzero(table.unschedulable[rows])
        resources = [PODS, *table.resources]
        used, taint_set = np.unique(taint_set, return_inverse=True)
        names: list[str] = []
        group: list[int] = []
        index: dict[str | None, int] = {}
        async for some in in_turns(nodes, piece=NODES_PER_TURN):
            names += [node.metadata.name for node in some]
            if group_by:
                values = [node.metadata.labels.get(group_by) for node in some]
                group += [index.setdefault(value, len(index)) for value in values]
        if group_by and not index.keys() - {None}:
            raise UnknownError(f"groupBy: no node has the label {group_by[:LONGEST_WORD]!r}")
        return ClusterNodes.model_construct(
            version=version,
            names=names,
            group_by=group_by,
            groups=[*index] if group_by else [None],
            group=group if group_by else [0] * len(names),
            taint_sets=[
                [f"{taint.key}={taint.value}:{taint.effect}" for taint in taint_sets[number]]
                for number in used.tolist()
            ],
            taint_set=taint_set.tolist(),
            unschedulable=unschedulable.tolist(),
            resources=resources,
        )

    async def _labels(self) -> NodeLabels:
        version, nodes = self._version(), _nodes_of(self._table)
        pairs: set[tuple[str, str]] = set()
        async for some in in_turns(nodes, piece=NODES_PER_TURN):
            for node in some:
                pairs.update(node.metadata.labels.items())
        values: dict[str, int] = {}
        async for piece in in_turns([*pairs]):
            for key, _ in piece:
                values[key] = values.get(key, 0) + 1
        return NodeLabels(
            version=version,
            items=[LabelKey(key=key, values=count) for key, count in sorted(values.items())],
        )

    def _use(self, resource: str) -> ResourceUse:
        rows = self._rows()
        allocatable, requested = self._amounts(resource)
        return ResourceUse.model_construct(
            version=self._version(),
            resource=resource,
            allocatable=allocatable[rows].tolist(),
            requested=requested[rows].tolist(),
        )

    def _amounts(self, resource: str) -> tuple[Ints, Ints]:
        table = self._table
        if resource == PODS:
            return table.allowed_pods, table.pod_count
        rows = table.resource_rows(resource)
        if rows is None:
            raise UnknownError(
                f"resource: no node has {resource[:LONGEST_WORD]!r}, and no pod requests it"
            )
        return rows

    def _rejections(self, pod: str) -> PodRejections:
        rejections = self._explainer.rejections(pod)
        if isinstance(rejections, str):
            raise UnknownError(f"pod: {pod[:LONGEST_WORD]!r}: {rejections}")
        return PodRejections.model_construct(
            version=self._version(),
            pod=pod,
            message=rejections.message,
            num_feasible=rejections.num_feasible,
            plugin_sets=[list(names) for names in rejections.plugin_sets],
            plugin_set=rejections.plugin_set[self._rows()].tolist(),
        )


def _nodes_of(table: NodeTable) -> Sequence[Node]:
    return [node for node in table.nodes if node is not None]


def _encoded(told: OfAllNodes) -> bytes:
    """Return the JSON of *told*, in less than half the time that Pydantic takes."""
    return msgspec.json.encode(told, enc_hook=_fields)


def _fields(model: ResponseModel) -> dict[str, Any]:
    return {to_camel(name): value for name, value in model.__dict__.items()}
