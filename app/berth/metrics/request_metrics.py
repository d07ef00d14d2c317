"""Requests to the API server: how many, how long, how large."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from berth.metrics import families
from berth.metrics.family import Counters, Histograms

NO_ANSWER = "<error>"
"""client-go's status code of a request that nobody answered."""


class RequestMetrics:
    """The ``rest_client_...`` families. Methods are verbs of HTTP, *host* has the port."""

    def __init__(self) -> None:
        self._requests = Counters(families.REQUESTS)
        self._duration = Histograms(families.REQUEST_DURATION)
        self._limiter = Histograms(families.RATE_LIMITER_DURATION)
        self._sent = Histograms(families.REQUEST_SIZE)
        self._received = Histograms(families.RESPONSE_SIZE)
        self._instruments = (
            self._requests, self._duration, self._limiter, self._sent, self._received
        )  # fmt: skip

    def held_back(self, host: str, method: str, *, seconds: float) -> None:
        """A request waited for the client's own rate limit, maybe 0 seconds."""
        self._limiter.observe(seconds, host, method)

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None:
        """A request, whose body had *sent* bytes, was answered with *received* bytes."""
        self._requests.add(str(status), host, method)
        self._duration.observe(seconds, host, method)
        self._sent.observe(sent, host, method)
        self._received.observe(received, host, method)

    def unanswered(self, host: str, method: str, *, seconds: float) -> None:
        """A request ended without an answer."""
        self._requests.add(NO_ANSWER, host, method)
        self._duration.observe(seconds, host, method)

    def watching(self, host: str, status: int) -> None:
        """A watch was begun, or refused; how long it lasts says nothing about the server."""
        self._requests.add(str(status), host, "GET")

    def reset(self) -> None:
        """Forget all."""
        for instrument in self._instruments:
            instrument.reset()

    def collect(self) -> Iterator[Metric]:
        for instrument in self._instruments:
            yield instrument.collect()
