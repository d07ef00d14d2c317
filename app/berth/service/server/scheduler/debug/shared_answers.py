"""Answers that are the same for whoever asks: made once for all, and sent again only when changed.

A page that is open in ten tabs asks for the same every few seconds. An answer is made again when
what it is about has changed, and not more than once in :data:`REST_SECONDS`.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Header, Response

from berth.runtime.clock import Clock

REST_SECONDS: Final = 1.0
"""How old an answer may be although there is something new."""
MOST_KEPT: Final = 16
"""Answers; one about 50,000 nodes has up to 2 MB."""

NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The answer is still the one with this `ETag`"}
}

IfNoneMatch = Annotated[
    str, Header(description="The `ETag` of an earlier answer, which is not sent again if the same.")
]


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """The JSON of an answer."""

    body: bytes
    tag: str
    """The entity tag (RFC 9110, section 8.8.3), which follows from the body."""
    version: int
    """Of what it is about."""
    made: float
    """When, by the monotonic clock."""

    def response(self, if_none_match: str) -> Response:
        """Return it for somebody who has the answers with the tags in *if_none_match*."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        if known & {self.tag, "*"}:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type="application/json", headers=headers)


class SharedAnswers:
    """The last answers, by what was asked for. One is made at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, SharedAnswer] = OrderedDict()
        self._making = asyncio.Lock()

    async def get(
        self, key: Hashable, version: Callable[[], int], make: Callable[[], Awaitable[bytes]]
    ) -> SharedAnswer:
        """Return the answer to *key*, which *make* makes of what has the *version* then.

        What *make* raises is raised, and nothing is kept.
        """
        async with self._making:
            kept = self._kept.get(key)
            if kept is None or self._is_old(kept, version()):
                of = version()
                body = await make()
                tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
                kept = self._kept[key] = SharedAnswer(body, tag, of, self._clock.monotonic())
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept

    def _is_old(self, answer: SharedAnswer, version: int) -> bool:
        rested = self._clock.monotonic() - answer.made >= REST_SECONDS
        return rested and answer.version != version
