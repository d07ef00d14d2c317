"""``/debug/shards``: which replica decides about which nodes and pods."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.debug.models import Shards
from berth.service.server.scheduler.debug.responses import UNREADABLE, as_json

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    **UNREADABLE,
    404: {"model": Refusal, "description": "This process shares nothing, or there is no such pod"},
}

Describe = Callable[[str, str], Shards]
"""Describes the shards, given the names of a node and of a pod or "". KeyError: no such pod."""


def add_shards(router: APIRouter, describe: Describe | None) -> None:
    """Add the endpoint to *router*, which has the prefix."""

    @router.get(
        "/shards",
        summary="The replicas that schedule at once, and the slots that each holds",
        description="As this replica read the Leases last; every replica answers. Only a process"
        " that runs with `--shards` has them.",
        response_model=Shards,
        responses=_RESPONSES,
    )
    async def shards(
        node: Annotated[str, Query(description="Also say whose this node is.")] = "",
        pod: Annotated[
            str, Query(description="Also say who decides about this pod: namespace/name.")
        ] = "",
    ) -> Response:
        if describe is None:
            raise HTTPException(404, "this process shares nothing: `berth run --shards` does")
        try:
            return as_json(describe(node, pod))
        except KeyError as exc:
            raise HTTPException(404, f"there is no pod {pod}") from exc
