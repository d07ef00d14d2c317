"""``/explain``: why a pod or a pod group is pending, or why it is where it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import AfterValidator, NonNegativeInt

from berth.insight.explain.explanation import Explanation, WorkloadExplanation
from berth.insight.explain.groups.explainer import NO_GROUP
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.summary import without_pods
from berth.insight.explain.workload import WORKLOADS, Workload
from berth.kube.objects.names import MAX_SUBDOMAIN
from berth.kube.objects.pod_group import CompositeKey, GroupKey
from berth.runtime.tasks import in_turns
from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.parameters import ONLY_KNOWN

NODES_TOLD: Final = 20
NODES_ENCODED: Final = 100
"""In one turn of the event loop."""
LONGEST_KEY: Final = 2 * MAX_SUBDOMAIN + 1
MOST_WAITING: Final = 16
"""Questions that wait for their turn; there is one at a time."""
RETRY_SECONDS: Final = 1
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": Refusal},
    429: {"model": Refusal, "description": "Too many requests at once"},
}


NumberOfNodes = Annotated[
    NonNegativeInt | Literal["all"],
    Query(description="how many nodes to show, the best first"),
]


class Answers(Protocol):
    """Who knows; :class:`berth.insight.explain.explainer.Explainer` for a running scheduler."""

    async def explain_in_turns(
        self, key: str, *, limit: int | None, evaluates: bool
    ) -> Explanation | None: ...

    async def explain_workload_in_turns(
        self, namespace: str, workload: Workload, *, limit: int | None
    ) -> WorkloadExplanation | None: ...

    async def explain_pod_group_in_turns(
        self, key: GroupKey, *, limit: int | None
    ) -> PodGroupExplanation | None: ...


class Missing(Protocol):
    """Who knows why a workload has no pods: ``MissingPods.why`` in :mod:`berth.service`."""

    async def __call__(
        self, namespace: str, workload: Workload, /, *, num_pods: int
    ) -> str | None: ...


async def nobody_knows(_namespace: str, _workload: Workload, /, *, num_pods: int) -> str | None:
    """Answer for who has no API server to ask: there are those whose pods are known."""
    return "" if num_pods else None


def explain_endpoints(answers: Answers, *, why_missing: Missing = nobody_knows) -> APIRouter:
    """Return the endpoints that ask *answers*, and *why_missing* of pods that there are not."""
    router = APIRouter(tags=["explain"], dependencies=[ONLY_KNOWN])
    queue = _Queue()

    @router.get(
        "/explain/pods/{namespace}/{name}",
        summary="Why a pod is pending, or why it is on its node",
        response_model=Explanation,
        responses=REFUSALS,
    )
    async def explain_pod(
        namespace: str,
        name: str,
        nodes: NumberOfNodes = NODES_TOLD,
        evaluate: Annotated[
            bool,
            Query(
                description="Whether to evaluate the pod on all nodes. Without, the answer is cheap"
                " and has where the pod is and its last attempts only."
            ),
        ] = True,
    ) -> Response:
        async with queue.turn() if evaluate else nullcontext():
            key = f"{namespace}/{name}"
            explanation = await answers.explain_in_turns(
                key, limit=_limit(nodes), evaluates=evaluate
            )
            if explanation is None:
                reason = f"pod {key[:LONGEST_KEY]}: not found, or it has finished"
                raise HTTPException(404, reason)
            return Response(await _encoded(explanation), media_type="application/json")

    @router.get(
        "/explain/pods/{namespace}",
        summary="Why the pods of a workload are pending",
        response_model=WorkloadExplanation,
        responses=REFUSALS,
    )
    async def explain_workload(
        namespace: str,
        workload: Annotated[
            str,
            AfterValidator(lambda text: str(Workload.parse(text))),
            Query(
                description=f"Kind and name, as in deployment/web. Kinds: {', '.join(WORKLOADS)}",
                max_length=LONGEST_KEY,
            ),
        ],
        nodes: NumberOfNodes = NODES_TOLD,
    ) -> Response:
        asked = Workload.parse(workload)
        async with queue.turn():
            explanation = await answers.explain_workload_in_turns(
                namespace, asked, limit=_limit(nodes)
            )
            num_pods = 0 if explanation is None else explanation.num_pods
            where = namespace[:LONGEST_KEY]
            why = await why_missing(namespace, asked, num_pods=num_pods)
            if explanation is None and why is None:
                reason = f"{asked} in namespace {where}: neither it nor a pod of it is known"
                raise HTTPException(404, reason)
            if explanation is None:
                explanation = WorkloadExplanation(
                    workload=str(asked), namespace=namespace, num_pods=0, num_pending=0, pods=()
                )
            if why or not num_pods:
                words = without_pods(asked, namespace, why or "", num_pods=num_pods)
                explanation = explanation.model_copy(update={"why_missing": words})
            pods = [msgspec.Raw(await _encoded(pod)) for pod in explanation.pods]
            shown = explanation.model_dump(mode="json", by_alias=True, exclude={"pods"})
            body = msgspec.json.encode({**shown, "pods": pods})
            return Response(body, media_type="application/json")

    @router.get(
        "/explain/podgroups/{namespace}/{name}",
        summary="Why a pod group waits, and what would let it start",
        response_model=PodGroupExplanation,
        responses=REFUSALS,
    )
    async def explain_pod_group(
        namespace: str,
        name: str,
        nodes: NumberOfNodes = NODES_TOLD,
        composite: Annotated[
            bool, Query(description="it is a CompositePodGroup, with all groups below it")
        ] = False,
    ) -> Response:
        async with queue.turn():
            key = CompositeKey(namespace, name) if composite else GroupKey(namespace, name)
            explanation = await answers.explain_pod_group_in_turns(key, limit=_limit(nodes))
            if explanation is None:
                raise HTTPException(404, f"pod group {str(key)[:LONGEST_KEY]}: {NO_GROUP}")
            return Response(await _encoded(explanation), media_type="application/json")

    return router


def _limit(nodes: int | Literal["all"]) -> int | None:
    return None if nodes == "all" else nodes


class _Queue:
    """One explanation at a time, and not too many that wait: together they would take all turns."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise HTTPException(429, f"{self._waiting} questions wait already", headers=headers)
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()


async def _encoded(explanation: Explanation | PodGroupExplanation) -> bytes:
    """Return the JSON of *explanation*, whose nodes may be many: others get a turn between them."""
    if explanation.evaluation is None:
        return explanation.model_dump_json(by_alias=True).encode()
    pieces = []
    async for some in in_turns(explanation.evaluation.nodes, piece=NODES_ENCODED):
        pieces += [verdict.model_dump_json(by_alias=True).encode() for verdict in some]
    shown = explanation.model_dump(mode="json", by_alias=True, exclude={"evaluation": {"nodes"}})
    shown["evaluation"]["nodes"] = msgspec.Raw(b"[" + b",".join(pieces) + b"]")
    return msgspec.json.encode(shown)
