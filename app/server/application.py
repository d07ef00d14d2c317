"""The endpoints, described in ``/openapi.json``."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Literal, Protocol

from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, NonNegativeInt

from app.explain.explanation import Explanation, PastDecision

NODES_TOLD = 20
DECISIONS_TOLD = 100


class Answers(Protocol):
    """Who knows; :class:`app.explain.explainer.Explainer` for a running scheduler."""

    def explain(self, key: str, *, limit: int | None) -> Explanation | None: ...

    def decisions(
        self, pod: str | None = None, *, limit: int | None = None
    ) -> list[PastDecision]: ...


class Refusal(BaseModel):
    """Why there is no answer."""

    detail: str


def make_application(answers: Answers, *, is_ready: Callable[[], bool]) -> FastAPI:
    """Return an application that asks *answers*; *is_ready* is for probes."""
    app = FastAPI(
        title="berth",
        version=version("berth"),
        description="Why pods are where they are, and why others have no node.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )

    @app.get("/healthz", summary="Whether the process answers", response_class=PlainTextResponse)
    @app.get("/livez", summary="Whether the process answers", response_class=PlainTextResponse)
    async def live() -> str:
        return "ok"

    @app.get(
        "/readyz",
        summary="Whether the whole state of the cluster is known",
        response_class=PlainTextResponse,
        responses={503: {"model": Refusal}},
    )
    async def ready() -> str:
        if not is_ready():
            raise HTTPException(503, "the state of the cluster is not known yet")
        return "ok"

    @app.get(
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

    @app.get("/decisions", summary="The last attempts, the newest first")
    async def decisions(
        pod: Annotated[
            str | None, Query(description="of this pod only, as in namespace/name")
        ] = None,
        limit: Annotated[NonNegativeInt, Query(description="at most so many")] = DECISIONS_TOLD,
    ) -> list[PastDecision]:
        return answers.decisions(pod, limit=limit)

    return app
