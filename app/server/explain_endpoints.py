"""``/explain``: why a pod is pending, or why it is where it is."""

from typing import Annotated, Final, Literal, Protocol

from fastapi import APIRouter, HTTPException, Query
from pydantic import NonNegativeInt

from app.explain.explanation import Explanation
from app.server.parameters import ONLY_KNOWN
from app.server.refusal import Refusal

NODES_TOLD: Final = 20


class Answers(Protocol):
    """Who knows; :class:`app.explain.explainer.Explainer` for a running scheduler."""

    def explain(self, key: str, *, limit: int | None) -> Explanation | None: ...


def explain_endpoints(answers: Answers) -> APIRouter:
    """Return the endpoints that ask *answers*."""
    router = APIRouter(tags=["explain"], dependencies=[ONLY_KNOWN])

    @router.get(
        "/explain/pods/{namespace}/{name}",
        summary="Why a pod is pending, or why it is where it is",
        responses={404: {"model": Refusal}},
    )
    async def explain_pod(
        namespace: str,
        name: str,
        nodes: Annotated[
            NonNegativeInt | Literal["all"],
            Query(description="about how many nodes to tell, the best first"),
        ] = NODES_TOLD,
    ) -> Explanation:
        found = answers.explain(f"{namespace}/{name}", limit=None if nodes == "all" else nodes)
        if found is None:
            reason = f"pod {namespace}/{name}: there is none, or it has finished"
            raise HTTPException(404, reason)
        return found

    return router
