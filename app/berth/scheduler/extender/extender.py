"""One extender and its verbs (spec §9.3-9.6)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender import wire
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.result import EXTENDER
from berth.scheduler.extender.whole_objects import node_as_written, pod_as_written
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.status import Status

if TYPE_CHECKING:
    from berth.scheduler.extender.client import ExtenderClient


class FilterAnswer(NamedTuple):
    """Which nodes are left, and why others are not; those dropped without a word have no status."""

    nodes: list[str]
    statuses: dict[str, Status]


class Extender:
    """One entry of the configuration. All verbs raise ExtenderError."""

    def __init__(
        self, config: Config, client: "ExtenderClient", *, may_write: Callable[[], bool]
    ) -> None:
        """*may_write* says whether this replica may have pods bound at this moment."""
        self.config = config
        self.client = client
        self.name = client.name
        self.is_ignorable = config.ignorable
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._may_write = may_write

    def asking(self, client: "ExtenderClient") -> "Extender":
        """Return the same extender, asked by *client*."""
        return Extender(self.config, client, may_write=self._may_write)

    def is_interested(self, pod: Pod) -> bool:
        """Whether it manages everything, or something that a container requests or limits."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )

    async def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> FilterAnswer:
        """Ask which of *nodes* may take *pod*."""
        body = self._args(pod, nodes)
        said = await self.client.call(
            "filter", self.config.filter_verb, body, wire.read_filter_result
        )
        if said.error:
            raise ExtenderError(said.error)
        asked = {node.metadata.name for node in nodes}
        left: Sequence[str]
        if self.config.node_cache_capable and said.node_names is not None:
            left = said.node_names
            for name in left:
                if name not in asked:
                    raise ExtenderError(
                        f'extender "{self.name}" claims a filtered node "{name}" which is not'
                        " found in the input node list"
                    )
        else:
            left = [name for name in said.nodes or () if name in asked]
        statuses = {
            name: Status.unschedulable(reason).of(EXTENDER)
            for name, reason in said.failed_nodes.items()
            if name in asked
        }
        statuses |= {
            name: Status.unresolvable(reason).of(EXTENDER)
            for name, reason in said.failed_and_unresolvable_nodes.items()
            if name in asked
        }
        return FilterAnswer(list(dict.fromkeys(left)), statuses)

    async def prioritize(self, pod: PodInfo, nodes: Sequence[Node]) -> dict[str, int]:
        """Ask for scores of *nodes*; they are expected to be 0..10, but may be anything."""
        body = self._args(pod, nodes)
        said = await self.client.call(
            "prioritize", self.config.prioritize_verb, body, wire.read_priorities
        )
        return dict(said)

    async def preempt(
        self, pod: PodInfo, candidates: Sequence[Candidate], nodes: NodeTable
    ) -> list[Candidate]:
        """Ask which of *candidates*, with which victims, will do for *pod*.

        The victims in the answer are looked up among the candidates' and those that are on the
        nodes of the table when it comes.
        """
        body = wire.encode(
            wire.PreemptionArgs(
                pod_as_written(pod),
                None if self.config.node_cache_capable else _victims(candidates),
                _meta_victims(candidates) if self.config.node_cache_capable else None,
            )
        )
        said = await self.client.call(
            "preempt", self.config.preempt_verb, body, wire.read_preemption_result
        )
        asked = {candidate.node for candidate in candidates}
        known = {victim.uid: victim for c in candidates for victim in c.victims}
        left = []
        for node, victims in said.items():
            row = nodes.row_of.get(node)
            if row is None:
                if node in asked:
                    continue  # it has gone meanwhile
                raise ExtenderError(
                    f'extender "{self.name}" claims to preempt on node "{node}", which is not known'
                )
            if victims.pods:
                on_node = {**known, **nodes.pods[row]}
                pods = tuple(self._victim(victim.uid, on_node, node) for victim in victims.pods)
                left.append(Candidate(row, node, pods, victims.num_pdb_violations))
            elif not self.is_ignorable:
                raise ExtenderError(f'expected at least one victim pod on node "{node}"')
        return left

    def _victim(self, uid: str, on_node: Mapping[str, PodInfo], node: str) -> PodInfo:
        victim = on_node.get(uid)
        if victim is None or victim.node_name != node:
            raise ExtenderError(
                f'extender "{self.name}" claims to preempt pod (UID: {uid}) on node "{node}", but'
                " the pod is not found there"
            )
        return victim

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Have *pod* bound to a node. The extender may have done so even if this raises."""
        if not self._may_write():
            raise ExtenderError(
                "this replica does not lead any more and has nothing bound", may_have_acted=False
            )
        body = wire.encode(wire.BindingArgs(pod.name, pod.namespace, pod.uid, node_name))
        error = await self.client.call(
            "bind", self.config.bind_verb, body, wire.read_binding_result
        )
        if error:
            raise ExtenderError(error)

    def _args(self, pod: PodInfo, nodes: Sequence[Node]) -> bytes:
        written = pod_as_written(pod)
        if self.config.node_cache_capable:
            return wire.encode(wire.Args(written, None, [node.metadata.name for node in nodes]))
        return wire.encode(
            wire.Args(written, wire.NodeList([node_as_written(node) for node in nodes]), None)
        )


def _victims(candidates: Sequence[Candidate]) -> dict[str, wire.Victims]:
    return {
        c.node: wire.Victims([pod_as_written(victim) for victim in c.victims], c.pdb_violations)
        for c in candidates
    }


def _meta_victims(candidates: Sequence[Candidate]) -> dict[str, wire.MetaVictims]:
    return {
        c.node: wire.MetaVictims(
            [wire.MetaPod(victim.uid) for victim in c.victims], c.pdb_violations
        )
        for c in candidates
    }
