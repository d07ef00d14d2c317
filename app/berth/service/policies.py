"""Reads what admission goes by from the API server, when somebody asks what if."""

import logging
from typing import Final

import msgspec

from berth.insight.whatif.admission import KINDS, Policies, read_policies
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.objects.meta import KubeStruct, ListHead
from berth.runtime.clock import Clock
from berth.runtime.errors import UNREADABLE

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 5.0
"""How long an answer serves others who ask."""
MOST_SECONDS: Final = 5.0
"""How long one list may take: without it there is an answer, too."""

_decode_list = msgspec.json.Decoder(ListHead).decode


async def list_policies(client: Api) -> Policies:
    """List the kinds that admission goes by; those that cannot be listed are not in the answer.

    No installation has to allow it: a scheduler decides without.
    """
    policies: dict[str, list[KubeStruct]] = {}
    for name, kind in KINDS.items():
        try:
            body = await client.request("GET", kind.path, timeout=MOST_SECONDS)
            policies[name] = read_policies(kind, _decode_list(body).items)
        except (ApiError, *UNREADABLE) as exc:
            log.info("cannot be listed for what-if", extra={"kind": name, "error": str(exc)})
    return policies


class LivePolicies:
    """Lists them for those who ask, once for all who ask at the same time."""

    def __init__(self, client: Api, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._found: Policies = {}
        self._until = float("-inf")

    async def read(self) -> Policies:
        """Return them as they were at most some seconds ago."""
        if self._clock.monotonic() >= self._until:
            self._found = await list_policies(self._client)
            self._until = self._clock.monotonic() + KEPT_SECONDS
        return self._found
