"""``/debug/shadow``: what a shadow has found of another scheduler."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Shadowed
from berth.insight.shadow.shadow import Shadow
from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.debug.models import ShadowedPods
from berth.service.server.scheduler.debug.pagination import (
    DEFAULT_LIMIT,
    AfterNumber,
    Limit,
    ordered,
)
from berth.service.server.scheduler.debug.responses import UNREADABLE, OfPod, as_json

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    **UNREADABLE,
    404: {"model": Refusal, "description": "This process is not a shadow"},
}


def add_shadow(router: APIRouter, shadow: Shadow | None) -> None:
    """Add the endpoint to *router*, which has the prefix."""

    @router.get(
        "/shadow",
        summary="What a shadow decides, beside what the other scheduler did, newest first",
        description="The last comparisons, and counts of all. Only a process that runs with"
        " `--shadow` has them.",
        response_model=ShadowedPods,
        responses=_RESPONSES,
    )
    async def shadowed(
        after: AfterNumber,
        pod: OfPod = "",
        node: Annotated[
            str, Query(description="Only comparisons in which this node is the best or the chosen.")
        ] = "",
        result: Annotated[
            Agreement | None, Query(description="Only comparisons with this result.")
        ] = None,
        plugin: Annotated[
            str, Query(description="Only comparisons in which this plugin made the difference.")
        ] = "",
        profile: Annotated[str, Query(description="Only this profile.")] = "",
        differing: Annotated[
            bool, Query(description="Only comparisons that differ, if only in the reasons.")
        ] = False,
        limit: Limit = DEFAULT_LIMIT,
    ) -> Response:
        if shadow is None:
            raise HTTPException(404, "this process is not a shadow: `berth run --shadow` is one")
        wanted = ShadowFilter(pod, node, result, plugin, profile, differing)
        return as_json(shadowed_pods(shadow, wanted, after=after, limit=limit))


# Findings of a shadow about another scheduler.


@dataclass(frozen=True, slots=True)
class ShadowFilter:
    """Which comparisons are asked for; what is empty does not matter."""

    pod: str = ""
    """As in namespace/name."""
    node: str = ""
    """The best here, or the chosen one."""
    result: Agreement | None = None
    plugin: str = ""
    """That made the difference."""
    profile: str = ""
    only_differing: bool = False

    def matches(self, shadowed: Shadowed) -> bool:
        return (
            self.pod in ("", shadowed.pod)
            and self.node in ("", shadowed.node, shadowed.chosen)
            and self.result in (None, shadowed.result)
            and self.plugin in ("", shadowed.plugin)
            and self.profile in ("", shadowed.profile)
        )


def shadowed_pods(
    shadow: Shadow, wanted: ShadowFilter, *, after: int | None, limit: int
) -> ShadowedPods:
    """Return the comparisons that *wanted* describes, those before number *after*, newest first."""
    older = (
        shadowed
        for shadowed in shadow.comparisons.newest_first(agreements=not wanted.only_differing)
        if (after is None or shadowed.number < after) and wanted.matches(shadowed)
    )
    items, token = ordered(older, key=lambda shadowed: shadowed.number, limit=limit)
    return ShadowedPods(summary=shadow.summary(), items=tuple(items), continue_=token)
