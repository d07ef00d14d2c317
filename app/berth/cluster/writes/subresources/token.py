"""``serviceaccounts/token``: tokens of a service account."""

from berth.cluster import errors
from berth.cluster.access import token_requests
from berth.cluster.access.token_requests import TokenRequests
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.field_manager import FieldManager
from berth.cluster.writes.subresources.action import Outcome
from berth.runtime.clock import Clock, rfc3339


class Token:
    """Issues tokens."""

    name = "token"
    kind = token_requests.RESOURCE

    def __init__(
        self, store: Store, requests: TokenRequests, field_manager: FieldManager, *, clock: Clock
    ) -> None:
        self._store = store
        self._requests = requests
        self._field_manager = field_manager
        self._clock = clock

    async def act(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        body: Object,
        context: WriteContext,
    ) -> Outcome:
        try:
            account = self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            raise errors.not_found(resource, name) from None
        token_requests.default(body)
        self._field_manager.update(
            None,
            body,
            resource=self.kind,
            subresource=self.name,
            manager=context.field_manager,
            now=rfc3339(self._clock.now()),
        )
        return Outcome(self._requests.answer(account, body), self.kind.schema)
