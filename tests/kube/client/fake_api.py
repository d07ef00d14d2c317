"""An API made of a function from request to answer, which remembers the requests."""

import copy
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from berth.kube.client.api import post_each
from berth.kube.client.errors import ApiError, FencedError


class Request(NamedTuple):
    """One request; ``body`` is its decoded JSON."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    params: Mapping[str, str] | None = None


Answer = Callable[[Request], bytes | Exception]


class FakeApi:
    """Answers requests by a function; an error that it returns is raised."""

    def __init__(self, answer: Answer = lambda request: b"{}") -> None:
        self.requests: list[Request] = []
        self._answer = answer

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        decoded = None if body is None else msgspec.json.decode(body)
        request = Request(method, path, decoded, content_type, params)
        self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def post_all(self, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        return await post_each(self, posts)

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = "fenced") -> "FakeApi":
        def answer(request: Request) -> bytes | Exception:
            if request.method != "GET" and not may_write():
                return FencedError(otherwise)
            return self._answer(request)

        fenced = copy.copy(self)
        fenced._answer = answer
        return fenced

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        for answer in (self._answer(Request("WATCH", path)),):
            if isinstance(answer, Exception):
                raise answer
            yield answer
