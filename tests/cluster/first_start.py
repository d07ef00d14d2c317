"""What a server stores at its first start, which is the same for all servers of the same kinds."""

import random
from collections.abc import Collection, Sequence
from functools import cache

from berth.cluster.bootstrap import bootstrap
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.gated import served
from berth.cluster.kinds.registry import Registry
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.runtime.clock import FakeClock
from berth.runtime.release import RELEASE
from tests.cluster.at_once import at_once
from tests.cluster.serving import NOW


def store_after_first_start(features: Collection[str], release: str = RELEASE) -> Store:
    """Return a new store with the first objects, for a server that starts again.

    To have them made takes 25 ms, which is more than most tests; to write them again takes two.
    """
    store = Store()
    for storage_key, stored in _first_objects(frozenset(features), release):
        store.create(storage_key, stored.decode())
    return store


@cache
def _first_objects(features: frozenset[str], release: str) -> Sequence[tuple[str, Stored]]:
    """Return the objects and their storage keys, in the order of their versions."""
    store, registry = Store(), Registry(served(features, release), release=release)
    server = ApiServer(
        registry,
        store,
        clock=FakeClock(NOW),
        rng=random.Random(0),  # no other server's: no object made later has the UID of one of these
        features=features,
    )
    at_once(bootstrap(server.writes, served=registry))
    stored = [
        (key, each)
        for key in {resource.storage_key for resource in registry}
        for each in store.list(key)
    ]
    assert len(stored) == store.version - 1
    return sorted(stored, key=lambda item: item[1].version)
