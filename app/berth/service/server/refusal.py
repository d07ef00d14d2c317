"""Refusals of an endpoint: of bounded length, whatever was asked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

MOST_PROBLEMS: Final = 10
"""Problems of one request that are reported; there may be thousands."""
LONGEST_WORD: Final = 100
"""Characters of a name that comes from a request."""
LONGEST: Final = 4_000
"""Characters of a whole reason."""


class Refusal(BaseModel):
    """Why there is no answer."""

    detail: str


def problems(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first of Pydantic's findings in FastAPI's form, without what was sent."""
    shown = [
        {
            "type": problem["type"],
            "loc": [_cut(part) for part in problem["loc"]],
            "msg": problem["msg"],
        }
        for problem in errors[:MOST_PROBLEMS]
    ]
    if len(errors) > MOST_PROBLEMS:
        more = f"and {len(errors) - MOST_PROBLEMS} problems more"
        shown.append({"type": "too_many", "loc": [], "msg": more})
    return shown


def in_words(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the same as one line, as in ``templates[0].manifest: Field required; ...``."""
    return "; ".join(
        f"{_path(problem['loc'])}: {problem['msg']}" if problem["loc"] else problem["msg"]
        for problem in problems(errors)
    )


def cut(reason: str) -> str:
    """Return *reason*, which may quote what was sent, with an end."""
    if len(reason) <= LONGEST:
        return reason
    return f"{reason[:LONGEST]}... and {len(reason) - LONGEST} characters more"


def _cut(part: str | int) -> str | int:
    return part if isinstance(part, int) or len(part) <= LONGEST_WORD else f"{part[:LONGEST_WORD]}…"


def _path(parts: Iterable[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
