"""What is served on the extender port."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

from app.server.extender_endpoints import NOT_READY
from app.server.refusal import Refusal


def extender_application(*routers: APIRouter, is_ready: Callable[[], bool]) -> FastAPI:
    """Return an application of *routers* and of probes, which *is_ready* is for."""
    app = FastAPI(
        title="berth extender",
        version=version("berth"),
        description="What berth answers to schedulers that have it as their extender.",
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
            raise HTTPException(503, NOT_READY)
        return "ok"

    for router in routers:
        app.include_router(router)
    return app
