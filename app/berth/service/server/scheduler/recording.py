"""``/debug/recording``: which moment of a recording is shown, and another one."""

from typing import Any, Final, Protocol

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict, Field

from berth.insight.explain.explanation import ResponseModel
from berth.runtime.errors import UserError
from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.parameters import ONLY_KNOWN

_UNUSABLE: Final[dict[int | str, dict[str, Any]]] = {
    422: {"model": Refusal, "description": "There is no such moment, or the file is broken there"}
}


class RecordedAttempt(ResponseModel):
    """An attempt, as it was recorded."""

    at: str
    """When it began, in UTC."""
    pod: str
    """As in namespace/name; of a group, its first pod."""
    result: str
    """Empty: the pod was not tried after all."""
    node: str = ""
    """Where the pod was to go; empty if nowhere."""


class RecordingPosition(ResponseModel):
    """The moment of a recording that is shown."""

    files: tuple[str, ...]
    begins: str
    """In UTC."""
    at: str
    """The moment, in UTC."""
    made: int
    """How many attempts have been made up to it."""
    attempts: int
    """How many there are."""
    next: RecordedAttempt | None = None
    """The attempt that comes next; None at the end."""


class MoveTo(BaseModel):
    """Another moment of the recording: one of both."""

    model_config = ConfigDict(extra="forbid")

    made: int | None = Field(
        default=None, ge=0, description="Just before the next attempt after so many."
    )
    time: float | None = Field(
        default=None, allow_inf_nan=False, description="A time, in seconds since 1970."
    )


class Moments(Protocol):
    """Who knows the moments; :class:`berth.service.recorded_scheduler.RecordedScheduler`."""

    def position(self) -> RecordingPosition: ...

    async def move(self, *, made: int | None, time: float | None) -> None:
        """Show another moment. Raises UserError if there is none."""
        ...


def recording_endpoints(moments: Moments) -> APIRouter:
    """Return the endpoints that tell and change which of the *moments* is shown."""
    router = APIRouter(prefix="/debug", tags=["debug"], dependencies=[ONLY_KNOWN])

    @router.get("/recording", summary="The moment of the recording that is shown")
    async def position() -> RecordingPosition:
        return moments.position()

    @router.post("/recording", summary="Show another moment of the recording", responses=_UNUSABLE)
    async def move(to: MoveTo) -> RecordingPosition:
        if (to.made is None) == (to.time is None):
            raise HTTPException(422, "made and time: one of them is needed")
        try:
            await moments.move(made=to.made, time=to.time)
        except UserError as exc:
            raise HTTPException(422, str(exc)) from exc
        return moments.position()

    return router
