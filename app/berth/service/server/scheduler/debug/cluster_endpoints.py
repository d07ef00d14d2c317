"""``/debug/cluster``: compact answers about all nodes, for pictures of the cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.debug.cluster import ClusterAnswers, UnknownError
from berth.service.server.scheduler.debug.cluster_models import (
    ClusterNodes,
    NodeLabels,
    PodRejections,
    ResourceUse,
)
from berth.service.server.scheduler.debug.shared_answers import NOT_MODIFIED, IfNoneMatch

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    **NOT_MODIFIED,
    404: {"model": Refusal, "description": "There is no such label, resource or pending pod"},
}


def add_cluster(router: APIRouter, answers: ClusterAnswers) -> None:
    """Add the endpoints to *router*, which has the prefix."""

    @router.get(
        "/cluster",
        summary="All nodes: names, group, taints",
        response_model=ClusterNodes,
        responses=_RESPONSES,
    )
    async def nodes(
        group_by: Annotated[
            str, Query(alias="groupBy", description="Group the nodes by this label.")
        ] = "",
        if_none_match: IfNoneMatch = "",
    ) -> Response:
        with _refused():
            return (await answers.nodes(group_by)).response(if_none_match)

    @router.get(
        "/cluster/labels",
        summary="Labels that nodes have",
        response_model=NodeLabels,
        responses=NOT_MODIFIED,
    )
    async def labels(if_none_match: IfNoneMatch = "") -> Response:
        return (await answers.labels()).response(if_none_match)

    @router.get(
        "/cluster/use",
        summary="Use of a resource on all nodes",
        response_model=ResourceUse,
        responses=_RESPONSES,
    )
    async def use(
        resource: Annotated[str, Query(description="The name of the resource.")] = "cpu",
        if_none_match: IfNoneMatch = "",
    ) -> Response:
        with _refused():
            return (await answers.use(resource)).response(if_none_match)

    @router.get(
        "/cluster/filters",
        summary="Which filters reject a pending pod on each node",
        response_model=PodRejections,
        responses=_RESPONSES,
    )
    async def filters(
        pod: Annotated[
            str, Query(pattern="^[^/]+/[^/]+$", description="The pod, as namespace/name.")
        ],
        if_none_match: IfNoneMatch = "",
    ) -> Response:
        with _refused():
            return (await answers.rejections(pod)).response(if_none_match)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except UnknownError as exc:
        raise HTTPException(404, str(exc)) from exc
