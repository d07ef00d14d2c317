"""Carries a proposal out on a live cluster, as long as it goes as said.

Pods go through the eviction API only. Whoever is made in the place of a pod is known by its owner:
pods are made again, and get their nodes, in another order than they were proposed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from berth.kube.client.errors import ApiError, ConflictError, NotFoundError
from berth.runtime.clock import Clock
from berth.tools.rebalance.cordons import Cordons
from berth.tools.rebalance.patient_api import POLL_SECONDS, PatientApi, RebalanceStoppedError
from berth.tools.rebalance.proposal import Eviction, Placement, Proposal, Round, Step
from berth.tools.rebalance.text import evicting

GRACE_SECONDS: Final = 30.0
"""How long pods may take to be made, and to get a node, before all is proposed anew. A pod that was
refused is tried again after 10 seconds at most."""
WATCH_SECONDS: Final = 1.0
"""How long the scheduler may take to hear that a node is cordoned, or is no more. It hears of nodes
and of pods by different watches, and would put a pod back on the node that it has just left."""
TEMPLATE_LABELS: Final = ("pod-template-hash", "controller-revision-hash")

Object = dict[str, Any]
Owner = tuple[str, str, str]
"""Whose pods take each other's place: the namespace, the UID of the controller, the template."""


class Applying:
    """Does the steps one after the other, and waits for ready pods between rounds."""

    def __init__(
        self,
        api: PatientApi,
        cordons: Cordons,
        *,
        clock: Clock,
        tell: Callable[[str], None],
        timeout: float,
    ) -> None:
        """*timeout* is for each round, in seconds; *tell* hears of what is done."""
        self._api = api
        self._cordons = cordons
        self._clock = clock
        self._tell = tell
        self._timeout = timeout
        self.evictions = 0
        """How many were carried out."""

    async def carry_out(self, proposal: Proposal) -> None:
        """Cordon the nodes that are to become empty, and evict; until something goes otherwise.

        Then the rest has to be proposed anew. All pods that were made again are ready afterwards.
        Raises RebalanceStoppedError and ApiError; cordons stay.
        """
        await self._cordon(*proposal.emptied)
        for step in proposal.steps:
            if not await self._goes_as_proposed(step):
                await self._clock.sleep(WATCH_SECONDS)  # who proposes anew has to hear of it
                return
            self._tell(step.goal)

    async def _goes_as_proposed(self, step: Step) -> bool:
        has_evicted = any(done.evictions for done in step.rounds)
        if step.uncordon:
            await self._cordon(step.cordon, *step.also_cordoned)
        for number, round_ in enumerate(step.rounds, 1):
            as_proposed = await self._round(round_)
            if step.uncordon and (number == len(step.rounds) or not as_proposed):
                for name in (step.cordon, *step.also_cordoned):
                    await self._cordons.uncordon(name)
            if not as_proposed:
                return False
            for placement in round_.placements:
                if not await self._is_placed(placement, has_evicted=has_evicted):
                    return False
        return True

    async def _cordon(self, *names: str) -> None:
        before = len(self._cordons.names)
        for name in names:
            await self._cordons.cordon(name)
        if len(self._cordons.names) > before:
            await self._clock.sleep(WATCH_SECONDS)

    async def _round(self, round_: Round) -> bool:
        """Evict, and wait for the pods that are made again; return whether it goes as proposed."""
        deadline = self._clock.monotonic() + self._timeout
        before: dict[str, Object] = {}
        for namespace in sorted({_namespace(eviction.pod) for eviction in round_.evictions}):
            before |= await self._pods(namespace)
        for eviction in round_.evictions:
            if eviction.uid not in before:
                self._tell(f"{eviction.pod} is gone already")
                return False
        evicted = [eviction for eviction in round_.evictions if await self._evict(eviction)]
        if not await self._made_again(before, evicted, deadline):
            return False
        return len(evicted) == len(round_.evictions)

    async def _evict(self, eviction: Eviction) -> bool:
        """Evict one pod, as soon as its budget allows that; return whether it was there."""
        namespace, _, name = eviction.pod.partition("/")
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        }
        self._tell(evicting(eviction))
        try:
            await self._api.ask(
                "POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body
            )
        except (NotFoundError, ConflictError):
            self._tell(f"{eviction.pod} is gone already")
            return False
        except (ApiError, RebalanceStoppedError) as exc:
            raise RebalanceStoppedError(f"{eviction.pod} is not evicted: {exc}") from exc
        self.evictions += 1
        return True

    async def _made_again(
        self, before: Mapping[str, Object], evictions: Sequence[Eviction], deadline: float
    ) -> bool:
        """Wait for a ready pod in the place of each; return whether they are where proposed.

        Not, either, when one gets no node, or is not made at all, for some time.
        """
        evicted = {eviction.uid for eviction in evictions}
        wanted: dict[Owner, Counter[str]] = {}
        for eviction in evictions:
            wanted.setdefault(_owner(before[eviction.uid]), Counter())[eviction.goes_to] += 1
        names = ", ".join(eviction.pod for eviction in evictions)
        gone_at: float | None = None
        while wanted:
            pods: dict[str, Object] = {}
            for namespace in {owner[0] for owner in wanted}:
                pods |= await self._pods(namespace)
            new: dict[Owner, list[Object]] = {owner: [] for owner in wanted}
            for uid, pod in pods.items():
                if uid not in before and (owner := _owner(pod)) in wanted:
                    new[owner].append(pod)
            if not evicted & pods.keys():
                gone_at = self._clock.monotonic() if gone_at is None else gone_at
                if all(sum(map(_is_well, new[o])) >= n.total() for o, n in wanted.items()):
                    return all(not nodes - _nodes(new[o]) for o, nodes in wanted.items())
                is_stuck = any(
                    len(pods) < wanted[o].total() or not all(map(_has_node, pods))
                    for o, pods in new.items()
                )
                if is_stuck and self._clock.monotonic() >= gone_at + GRACE_SECONDS:
                    await self._settle(new, names, deadline)
                    return False
            await self._pause(deadline, f"the pods in the place of {names} are not ready")
        return True

    async def _settle(
        self, new: Mapping[Owner, Sequence[Object]], names: str, deadline: float
    ) -> None:
        """Let those that have no node go back to where they came from."""
        waiting = {p["metadata"]["uid"] for pods in new.values() for p in pods if not _has_node(p)}
        if waiting:
            self._tell(f"no other node has room for the pods in the place of {names} any more")
            await self._cordons.lift()
        while waiting:
            pods: dict[str, Object] = {}
            for namespace in {owner[0] for owner in new}:
                pods |= await self._pods(namespace)
            waiting = {uid for uid in waiting & pods.keys() if not _is_well(pods[uid])}
            if waiting:
                await self._pause(deadline, f"the pods in the place of {names} are not ready")

    async def _is_placed(self, placement: Placement, *, has_evicted: bool) -> bool:
        """Wait for a node; return whether it is the one that was proposed.

        If somebody was evicted for it, and it gets no node, others may have to be evicted.
        """
        patience = GRACE_SECONDS if has_evicted else self._timeout
        deadline = self._clock.monotonic() + patience
        namespace, _, name = placement.pod.partition("/")
        while True:
            try:
                pod = await self._api.ask("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
            except NotFoundError:
                self._tell(f"{placement.pod} is gone")
                return False
            if went := pod["spec"].get("nodeName"):
                self._tell(f"{placement.pod} goes to {went}")
                return bool(went == placement.node)
            if has_evicted and self._clock.monotonic() >= deadline:
                return False
            await self._pause(deadline, f"{placement.pod} has no node")

    async def _pods(self, namespace: str) -> dict[str, Object]:
        """Return the pods of a namespace by UID."""
        listed = await self._api.ask("GET", f"/api/v1/namespaces/{namespace}/pods")
        return {item["metadata"]["uid"]: item for item in listed["items"]}

    async def _pause(self, deadline: float, problem: str) -> None:
        if self._clock.monotonic() >= deadline:
            raise RebalanceStoppedError(f"after {self._timeout:g} seconds {problem}")
        await self._clock.sleep(POLL_SECONDS)


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _owner(pod: Object) -> Owner:
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or ()
    controller = next((owner["uid"] for owner in owners if owner.get("controller")), "")
    labels = meta.get("labels") or {}
    template = next((labels[key] for key in TEMPLATE_LABELS if key in labels), "")
    return meta.get("namespace", ""), controller, template


def _has_node(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _nodes(pods: Sequence[Object]) -> Counter[str]:
    return Counter(pod["spec"]["nodeName"] for pod in pods if _has_node(pod))


def _is_well(pod: Object) -> bool:
    """Whether *pod* is ready, or has done its work."""
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return True
    is_ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )
    return is_ready and "deletionTimestamp" not in pod["metadata"]
