"""A server as it is after its first start, written to without HTTP."""

import random
from collections.abc import Collection
from typing import Any

import pytest

from berth.cluster.access.users import ADMIN, User
from berth.cluster.errors import StatusError
from berth.cluster.features import default_features
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import served
from berth.cluster.kinds.registry import Registry
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.pipeline import Change
from berth.runtime.clock import FakeClock
from berth.runtime.release import RELEASE
from tests.cluster.at_once import at_once
from tests.cluster.first_start import store_after_first_start
from tests.cluster.serving import NOW

TEST = WriteContext(ADMIN, "test")
PODS = find("", "v1", "pods")


class Booted:
    """Writes and their refusals; by default to the namespace of the object."""

    def __init__(
        self,
        *more: str,
        off: Collection[str] = (),
        store: Store | None = None,
        release: str = RELEASE,
    ) -> None:
        """*more* feature gates are on than by default in *release*, or *off*.

        *store* is that of another.
        """
        self.features = features = {*default_features(release), *more} - {*off}
        self.clock = FakeClock(NOW)
        self.store = store or store_after_first_start(features, release)
        server = ApiServer(
            Registry(served(features, release), release=release),
            self.store,
            clock=self.clock,
            rng=random.Random(7),
            features=features,
        )
        self.writes = server.writes
        self.warnings: list[str] = []

    def create(
        self, resource: ResourceType, obj: Object, *, user: User = ADMIN, dry_run: bool = False
    ) -> Object:
        namespace = obj["metadata"].get("namespace", "")
        context = WriteContext(user, "test", dry_run, self.warnings)
        return at_once(self.writes.create(resource, namespace, obj, context)).decode()

    def update(
        self,
        resource: ResourceType,
        key: str,
        change: Change,
        *,
        subresource: str = "",
        user: User = ADMIN,
    ) -> Object:
        """*key* is ``namespace/name``, or the name of what has no namespace."""
        namespace, _, name = key.rpartition("/")
        context = WriteContext(user, "test", warnings=self.warnings)
        stored = at_once(
            self.writes.update(resource, namespace, name, change, context, subresource=subresource)
        )
        return stored.decode()

    def delete(self, resource: ResourceType, key: str) -> Stored:
        namespace, _, name = key.rpartition("/")
        return at_once(self.writes.delete(resource, namespace, name, DeleteOptions(), TEST))[0]

    def get(self, resource: ResourceType, key: str) -> Object:
        namespace, _, name = key.rpartition("/")
        return self.writes.get(resource, namespace, name).decode()

    def refused(self, resource: ResourceType, obj: Object, **more: Any) -> tuple[int, str]:
        """Return the code and message of what :meth:`create` raises."""
        with pytest.raises(StatusError) as error:
            self.create(resource, obj, **more)
        return error.value.code, error.value.message
