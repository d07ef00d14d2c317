"""The API server of a process, and the clients of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.runtime.release import version
from berth.scheduler.config.types import ClientConnection

REVIEW_QPS: Final = 200.0
REVIEW_BURST: Final = 400
"""Reviews per second, and at once: as kube-scheduler's clients for them."""


class ApiConnection(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach an API server, and how many requests to send."""

    kubeconfig: str = ""
    """Empty: as a pod does, unless there is a *master*."""
    master: str = ""
    """The server's address; wins over the one in the kubeconfig."""
    qps: float
    """Requests per second; 0: no limit."""
    burst: int

    @classmethod
    def of(cls, connection: ClientConnection, *, kubeconfig: str = "", master: str = "") -> Self:
        """Return what *connection* says; *kubeconfig* and *master* come from flags and win."""
        return cls(
            kubeconfig=kubeconfig or connection.kubeconfig,
            master=master,
            qps=connection.qps,
            burst=connection.burst,
        )

    def for_reviews(self, kubeconfig: str) -> Self:
        """Return the connection for reviews: by *kubeconfig*, or this one where it is empty.

        kube-scheduler looks only whether it runs in a pod then, and authenticates nobody elsewhere.
        """
        return type(self)(
            kubeconfig=kubeconfig or self.kubeconfig,
            master="" if kubeconfig else self.master,
            qps=REVIEW_QPS,
            burst=REVIEW_BURST,
        )

    @asynccontextmanager
    async def client(self, purpose: str) -> AsyncIterator[ApiClient]:
        """Yield a client whose user agent names *purpose*. Raises ConnectError."""
        client = await connect(
            kubeconfig=self.kubeconfig or None,
            master=self.master or None,
            qps=self.qps,
            burst=self.burst,
            user_agent=f"berth/{version()} {purpose}",
        )
        try:
            yield client
        finally:
            await client.close()
