"""Nodes that can go."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import numpy as np

from berth.insight.whatif.answer import Removable, RemovableNode, Staying
from berth.insight.whatif.movable import Movable
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.question import MOST_PODS, NodeChoice
from berth.insight.whatif.usage import NodesThen
from berth.insight.whatif.world import World, unplaced
from berth.kube.objects.node_pods import goes_with_node
from berth.scheduler.framework.node_table import CPU, MEMORY
from berth.scheduler.framework.pod_info import PodInfo

CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

MOST_EVALUATED: Final = 40_000_000
"""Nodes that may be looked at, for all pods that are tried together: 8,000 pods on 5,000 nodes."""


class Begin(Protocol):
    """Makes the cluster of the question, with nothing placed yet."""

    def __call__(self, *, shares_answers: bool = True) -> tuple[World, Placing]: ...


async def removable(begin: Begin, choice: NodeChoice) -> Removable:
    """Find a large set of nodes whose pods all fit on the others, evicting nobody else.

    Tries one node after another, the least used first, each with those gone that were found before.
    What was found is then placed for real: all nodes of the set are removed at once, and their pods
    placed in the order of the queue with all others of the question, as ``removeNodes`` does. As
    long as anybody loses a node by that, the nodes that were found last stay, after all.
    """
    world, placing = begin(shares_answers=False)  # which last only until the next node goes
    refused = (await placing.place(world.waiting)).refusals.keys()
    placing.keep()
    search = _Search(world, placing)
    found = await search.run(choice)
    step = 1
    while True:
        world, placing = begin()
        rows = world.cluster.cache.table.row_of
        pods = world.cluster.cache.table.pods
        here = {name: list(pods[rows[name]].values()) for name in found}
        for name in found:
            world.remove_node(name)
        world.cluster.cache.refresh_order()
        placed = await placing.place(world.waiting)
        if placed.refusals.keys() <= refused:
            break
        for name in found[-step:]:
            search.keep(name, "its pods fit elsewhere, but not together with those of the others")
        found, step = found[:-step], 2 * step
    return Removable(
        nodes=tuple(RemovableNode(node=name, moves=_moves(here[name], placed)) for name in found),
        stays=tuple(Staying(why=why, nodes=tuple(names)) for why, names in search.stays.items()),
        after=NodesThen.of(world.cluster.cache.table).totals(),
        without_controller=tuple(
            pod.key
            for name in found
            for pod in _movable(here[name])
            if pod.pod.metadata.controller is None
        ),
    )


class _Search:
    """Takes nodes out of a cluster as long as their pods have a place."""

    def __init__(self, world: World, placing: Placing) -> None:
        self.stays: dict[str, list[str]] = {}
        """Names of nodes by the reason."""
        self._world = world
        self._placing = placing
        self._movable = Movable(world.cluster.listers, placing.profiles)
        self._most = min(MOST_EVALUATED // max(len(world.cluster.cache.table), 1), MOST_PODS)
        self._left = self._most

    async def run(self, choice: NodeChoice) -> list[str]:
        """Return who can go, in the order in which they were found."""
        candidates = list(self._candidates(choice))
        candidates.sort(key=lambda name: (self._use(name), name))
        self._placing.course.begin("findRemovable", len(candidates), counts_attempts=False)
        return [name for name in candidates if await self._goes(name)]

    def keep(self, name: str, why: str) -> None:
        self.stays.setdefault(why, []).append(name)

    def _candidates(self, choice: NodeChoice) -> Iterator[str]:
        table = self._world.cluster.cache.table
        if not choice.names and not choice.selector:
            choice = NodeChoice(names=["*"])
        for name in self._world.chosen_nodes(choice, at="findRemovable"):
            labels = self._world.node(name).labels
            if name in self._world.added:
                self.keep(name, "it is one of the added nodes")
            elif name not in choice.names and any(label in labels for label in CONTROL_PLANE):
                self.keep(name, "it is a control plane node")
            elif why := self._why_not(table.pods[table.row_of[name]].values()):
                self.keep(name, why)
            else:
                yield name

    def _why_not(self, pods: Iterable[PodInfo]) -> str:
        reasons = (self._movable.why_not(pod) for pod in _movable(pods))
        return next(filter(None, reasons), "")

    def _use(self, name: str) -> float:
        """Return how much of a node its pods take, of cpu or memory; those that move count."""
        table = self._world.cluster.cache.table
        row = table.row_of[name]
        cpu, memory = _requested(_movable(table.pods[row].values()))
        shares = ((cpu, table.allocatable[CPU, row]), (memory, table.allocatable[MEMORY, row]))
        return max(float(wanted / has) if has else float(wanted > 0) for wanted, has in shares)

    async def _goes(self, name: str) -> bool:
        """Take a node out if its pods have a place elsewhere; they are there then."""
        world, placing = self._world, self._placing
        if not placing.course.has_half():
            self.keep(name, "not tried: half of the CPU time was used up for the others")
            return False
        placing.course.advance()
        if why := self._obviously_not(name):
            self.keep(name, why)
            return False
        node, pods = world.take_node(name)
        world.cluster.cache.refresh_order()
        moving = [PodInfo(unplaced(pod.pod)) for pod in _movable(pods)]
        self._left -= len(moving)
        placed = await placing.place_anew(moving)
        if not placed.refusals:
            placing.keep()
            return True
        placing.take_back()
        world.put_back(node, pods)
        world.cluster.cache.refresh_order()
        key, message = next(iter(placed.refusals.items()))
        self.keep(name, f"{key} fits nowhere else: {message}")
        return False

    def _obviously_not(self, name: str) -> str:
        """Return why a node cannot go, as far as that can be told without placing its pods."""
        table = self._world.cluster.cache.table
        row = table.row_of[name]
        moving = list(_movable(table.pods[row].values()))
        if len(moving) > self._left:
            return f"not tried, after {self._most - self._left} pods were placed for the others"
        others = table.exists.copy()
        others[row] = False
        wanted = _requested(moving)
        for index, resource in ((CPU, "cpu"), (MEMORY, "memory")):
            free = table.allocatable[index, others] - table.requested[index, others]
            if wanted[index] > int(np.maximum(free, 0).sum()):
                return f"the other nodes have too little {resource} left"
        return ""


def _movable(pods: Iterable[PodInfo]) -> Iterator[PodInfo]:
    return (pod for pod in pods if not goes_with_node(pod.pod))


def _requested(pods: Iterable[PodInfo]) -> tuple[int, int]:
    """Return the milli-cores and bytes that *pods* request."""
    amounts = [pod.template.requested for pod in pods]
    return sum(amount.milli_cpu for amount in amounts), sum(amount.memory for amount in amounts)


def _moves(pods: Iterable[PodInfo], placed: Placed) -> dict[str, str]:
    return {pod.key: placed.nodes[pod.key] for pod in _movable(pods) if pod.key in placed.nodes}
