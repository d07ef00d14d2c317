"""``serviceaccounts/token``: tokens of a service account."""

from berth.cluster import errors
from berth.cluster.access.reviews import TOKEN_REQUESTS, Reviews
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.subresources.action import Outcome


class Token:
    """Issues tokens."""

    name = "token"
    kind = TOKEN_REQUESTS

    def __init__(self, store: Store, reviews: Reviews) -> None:
        self._store = store
        self._reviews = reviews

    async def act(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        body: Object,
        _context: WriteContext,
    ) -> Outcome:
        try:
            account = self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            raise errors.not_found(resource, name) from None
        return Outcome(self._reviews.issue(account, body), TOKEN_REQUESTS.schema)
