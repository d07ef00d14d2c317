"""What is recorded on nodes: the value of the label that their slots go by, as it was first."""

from itertools import islice
from typing import Final

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ConflictError, NotFoundError
from berth.kube.objects.node import Node
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import RECORD, slot_of

MOST_AT_ONCE: Final = 100


class NodeRecords:
    """Writes the records of nodes that have none. Each replica does it for a share of them.

    A node is left alone for a while. If it was deleted and made anew, with another value, others
    have seen that by then; until it has a record nobody binds to it.
    """

    def __init__(self, client: Api, ownership: Ownership, *, patience: float) -> None:
        """*patience* is how many seconds a node is left alone."""
        self._client = client
        self._ownership = ownership
        self._patience = patience
        self._seen_at: dict[str, float] = {}
        """By UID, when a node without a record was first seen."""

    async def write(self, now: float) -> bool:
        """Record some; whether there may be more to record at once. Raises ApiError."""
        nodes = [*self._ownership.unrecorded.values()]
        before = self._seen_at
        self._seen_at = {n.metadata.uid: before.get(n.metadata.uid, now) for n in nodes}
        due = [
            node
            for node in nodes
            if now - self._seen_at[node.metadata.uid] >= self._patience
            and slot_of(node.metadata.name, self._ownership.slots.number) in self._ownership.active
        ]
        for node in islice(due, MOST_AT_ONCE):
            await self._record(node)
        return len(due) > MOST_AT_ONCE

    async def _record(self, node: Node) -> None:
        """Record what *node* says now; nothing, if it is not as we know it any more."""
        annotations = {RECORD: self._ownership.slots.record_of(node)}
        version = node.metadata.resource_version
        body = {"metadata": {"resourceVersion": version, "annotations": annotations}}
        try:
            await self._client.request(
                "PATCH",
                f"/api/v1/nodes/{node.metadata.name}",
                body=msgspec.json.encode(body),
                content_type="application/merge-patch+json",
            )
        except (ConflictError, NotFoundError):
            return  # the watch will tell
