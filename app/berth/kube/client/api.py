"""The interface of an API server's client."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol, Self

from berth.kube.client.contact import Contact
from berth.kube.client.errors import ApiError
from berth.kube.client.request_observer import RequestObserver


class Api(Protocol):
    """Requests and watches in raw bytes; :class:`berth.kube.client.api_client.ApiClient` over HTTP.

    Raises :class:`~berth.kube.client.errors.ApiError` for every answer that is not a success.
    """

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
        """Send one request and return the body of its answer. *timeout* is in seconds."""
        ...

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the JSON lines of a watch until the server ends it; maybe empty ones, too."""
        ...


class PostingApi(Api, Protocol):
    """An Api that takes several objects at a time."""

    async def post_all(self, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        """POST bodies to paths, in this order; return the body of each answer, or what it means.

        One that fails does not keep the others from being sent. A body may be posted twice when a
        connection breaks, and the server say that it exists: for what has names, and may be there.
        """
        ...


async def post_each(client: Api, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
    """Do what ``PostingApi.post_all`` does with a request after the other."""
    answers: list[bytes | ApiError] = []
    for path, body in posts:
        try:
            answers.append(await client.request("POST", path, body=body))
        except ApiError as exc:
            answers.append(exc)
    return answers


class AcceptingApi(Api, Protocol):
    """An Api that can ask for another form of objects than JSON as it is."""

    def accepting(self, media_type: str) -> Api:
        """Return an Api that asks for answers of *media_type*, such as metadata only."""
        ...


class FenceableApi(PostingApi, Protocol):
    """An Api whose writes may be made to depend on something until the last moment."""

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = ...) -> PostingApi:
        """Return an Api whose writes leave only while *may_write* says so, else FencedError."""
        ...


class ObservedApi(FenceableApi, Protocol):
    """An Api as a scheduler has it, which counts its requests and notices outages."""

    observer: RequestObserver
    """Who looks on. To be set before :meth:`fenced` makes another client like this one."""
    contact: Contact
    """Whether the server answers. To be set before :meth:`fenced`, if it is shared."""

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = ...) -> Self:
        """Return an Api whose writes leave only while *may_write* says so, else FencedError."""
        ...

    def unlimited(self) -> FenceableApi:
        """Return an Api without a rate limit."""
        ...
