"""Carries a proposal out on a live cluster, as long as it goes as said.

Pods go through the eviction API only.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from berth.client.api import Api
from berth.client.errors import ApiError, NotFoundError, TooManyRequestsError
from berth.clock import Clock
from berth.rebalance.proposal import Eviction, Proposal, Round, Step
from berth.rebalance.text import evicting
from berth.terminal import CommandError

POLL_SECONDS: Final = 0.5
MERGE: Final = "application/merge-patch+json"

Object = dict[str, Any]


class RebalanceStoppedError(CommandError):
    """Something did not go as proposed; what was done until then stays."""


class Applying:
    """Does the steps one after the other, and waits for ready pods between rounds."""

    def __init__(
        self, client: Api, *, clock: Clock, tell: Callable[[str], None], timeout: float
    ) -> None:
        """*timeout* is for each round, in seconds; *tell* hears of what is done."""
        self._client = client
        self._clock = clock
        self._tell = tell
        self._timeout = timeout

    async def apply(self, proposal: Proposal) -> bool:
        """Cordon the nodes that are to become empty, and evict.

        Return whether all is done: not, when a pod went to another of equally good nodes, so that
        the rest has to be proposed anew. Raises RebalanceStoppedError.
        """
        for step in proposal.steps:
            if step.cordon and not step.uncordon:
                await self._cordon(step.cordon)
        for place, step in enumerate(proposal.steps, 1):
            if step.uncordon:
                await self._cordon(step.cordon)
            try:
                went_otherwise = await self._rounds(step)
            finally:
                if step.uncordon:
                    await self._cordon(step.cordon, undo=True)
            for placement in step.rounds[-1].placements if step.uncordon else ():
                await self._until_placed(placement.pod, placement.node)
            if went_otherwise and (
                went_otherwise < len(step.rounds) or place < len(proposal.steps)
            ):
                return False
            self._tell(step.goal)
        return True

    async def _rounds(self, step: Step) -> int:
        """Do the rounds of a step; return the number of the one after which it must be left."""
        for number, round_ in enumerate(step.rounds, 1):
            if await self._round(round_):
                return number
            for placement in () if step.uncordon else round_.placements:
                await self._until_placed(placement.pod, placement.node)
        return 0

    async def _cordon(self, node: str, *, undo: bool = False) -> None:
        self._tell(f"{'uncordon' if undo else 'cordon'} {node}")
        body = {"spec": {"unschedulable": None if undo else True}}
        await self._ask("PATCH", f"/api/v1/nodes/{node}", body)

    async def _round(self, round_: Round) -> bool:
        """Do one round; return whether a pod went to another node than said, by chance."""
        deadline = self._clock.monotonic() + self._timeout
        before = {
            namespace: await self._pods(namespace)
            for namespace in {_namespace(each.pod) for each in round_.evictions}
        }
        for eviction in round_.evictions:
            self._tell(evicting(eviction))
            await self._evict(eviction, deadline)
        otherwise = False
        for namespace, pods in before.items():
            evictions = [each for each in round_.evictions if _namespace(each.pod) == namespace]
            otherwise |= await self._until_made_again(namespace, pods, evictions, deadline)
        return otherwise

    async def _evict(self, eviction: Eviction, deadline: float) -> None:
        """Evict one pod; the budget may still have to learn of those of the round before."""
        namespace, _, name = eviction.pod.partition("/")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": eviction.uid}},
        }
        while True:
            try:
                await self._ask("POST", path, body)
            except TooManyRequestsError as exc:
                await self._pause(deadline, f"{eviction.pod} is not evicted: {exc}")
            except ApiError as exc:
                raise RebalanceStoppedError(f"{eviction.pod} is not evicted: {exc}") from exc
            else:
                return

    async def _until_made_again(
        self,
        namespace: str,
        before: dict[str, Object],
        evictions: list[Eviction],
        deadline: float,
    ) -> bool:
        """Wait for as many ready pods of each controller as there were, on the proposed nodes.

        Return whether one is on another node, which is as good.
        """
        equals = {name for each in evictions for name in each.or_to}
        evicted = {each.uid for each in evictions}
        wanted: dict[str, Counter[str]] = {}
        for each in evictions:
            if each.uid not in before:
                raise RebalanceStoppedError(f"{each.pod} is gone, or another of the same name")
            wanted.setdefault(_controller(before[each.uid]), Counter())[each.goes_to] += 1
        needed = Counter(_controller(pod) for pod in before.values() if _is_ready(pod))
        while True:
            pods = await self._pods(namespace)
            ready = Counter(_controller(pod) for pod in pods.values() if _is_ready(pod))
            otherwise = False
            for owner, nodes in wanted.items():
                new = [
                    pod
                    for uid, pod in pods.items()
                    if uid not in before and _controller(pod) == owner
                ]
                went = Counter(
                    pod["spec"]["nodeName"] for pod in new if pod["spec"].get("nodeName")
                )
                if (other := went - nodes) and not other.keys() <= equals:
                    raise RebalanceStoppedError(
                        f"a new pod went to {', '.join(sorted(other))}, "
                        f"not to {', '.join(sorted(nodes))} as proposed"
                    )
                otherwise |= bool(other)
            is_done = all(ready[owner] >= needed[owner] for owner in wanted)
            if is_done and not evicted & pods.keys():
                return otherwise
            names = ", ".join(each.pod for each in evictions)
            await self._pause(deadline, f"the pods in the place of {names} are not ready")

    async def _until_placed(self, key: str, node: str) -> None:
        deadline = self._clock.monotonic() + self._timeout
        namespace, _, name = key.partition("/")
        while True:
            try:
                pod = await self._ask("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
            except NotFoundError:
                raise RebalanceStoppedError(f"{key} is gone") from None
            went = pod["spec"].get("nodeName")
            if went == node:
                self._tell(f"{key} goes to {node}")
                return
            if went:
                raise RebalanceStoppedError(f"{key} went to {went}, not to {node} as proposed")
            await self._pause(deadline, f"{key} has no node")

    async def _pods(self, namespace: str) -> dict[str, Object]:
        """Return the pods of a namespace by UID."""
        found = await self._ask("GET", f"/api/v1/namespaces/{namespace}/pods")
        return {each["metadata"]["uid"]: each for each in found["items"]}

    async def _pause(self, deadline: float, problem: str) -> None:
        if self._clock.monotonic() >= deadline:
            raise RebalanceStoppedError(f"after {self._timeout:g} seconds {problem}")
        await self._clock.sleep(POLL_SECONDS)

    async def _ask(self, method: str, path: str, body: Object | None = None) -> Any:
        answer = await self._client.request(
            method,
            path,
            body=None if body is None else msgspec.json.encode(body),
            content_type=MERGE if method == "PATCH" else "application/json",
        )
        return msgspec.json.decode(answer)


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _controller(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each.get("controller")), "")


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]
