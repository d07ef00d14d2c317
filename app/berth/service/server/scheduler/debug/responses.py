"""Parameters and answers that many endpoints have."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeVar

import msgspec
from fastapi import Query
from fastapi.responses import Response

from berth.insight.explain.explanation import ResponseModel
from berth.runtime.clock import Clock
from berth.runtime.tasks import Turn
from berth.service.server.refusal import Refusal

T = TypeVar("T")

ITEMS_PER_TURN: Final = 100
"""Of a page, that are told or encoded in one turn of the event loop."""

OfPod = Annotated[
    str, Query(pattern="^([^/]+/[^/]+)?$", description="Only this pod, as namespace/name.")
]
NameOfPod = Annotated[
    str, Query(alias="name", description="Only pods whose namespace/name contains this.")
]
Descending = Annotated[bool, Query(description="Whether the largest comes first.")]
OfNode = Annotated[str, Query(description="Only this node.")]

UNREADABLE: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Refusal, "description": "A parameter cannot be read"}
}


def as_json(model: ResponseModel) -> Response:
    """Encode *model* in one go, which is some times faster than through plain objects."""
    return Response(model.model_dump_json(by_alias=True), media_type="application/json")


async def told_in_turns(items: Iterable[T], clock: Clock) -> tuple[T, ...]:
    """Return *items*, which are made one by one; others have turns on the event loop meanwhile.

    Each is as it is when its turn comes.
    """
    turn, told = Turn(clock, items=ITEMS_PER_TURN), list[T]()
    for item in items:
        told.append(item)
        if turn.is_over():
            await turn.next()
    return tuple(told)


async def page_as_json(page: ResponseModel, clock: Clock) -> Response:
    """Encode *page*, whose ``items`` may be many, in turns with others on the event loop."""
    items: Iterable[ResponseModel] = getattr(page, "items")  # noqa: B009 - of each kind of page
    encoded = (item.model_dump_json(by_alias=True).encode() for item in items)
    whole = msgspec.Raw(b"[" + b",".join(await told_in_turns(encoded, clock)) + b"]")
    rest = page.model_dump(mode="json", by_alias=True, exclude={"items"})
    return Response(msgspec.json.encode({"items": whole, **rest}), media_type="application/json")
