"""Waiting until the watches have told all that was written before a moment."""

from collections.abc import AsyncIterator, Collection
from typing import Any, Final

from berth.kube.client.api import Api
from berth.kube.informer.identity import Identity, identity_in, is_older
from berth.kube.informer.reflector import Reflector
from berth.kube.informer.watch_event import decode_list
from berth.runtime.clock import Clock

PAGE: Final = 500
PAUSE: Final = 0.2
"""Seconds between two looks at what the watches have told."""
LOOKS: Final = 10


async def catch_up(client: Api, reflectors: Collection[Reflector[Any]], clock: Clock) -> bool:
    """Whether the stores of *reflectors* become as new as what the API server has now.

    Lists all of their objects, not from a cache of the API server. False if they do not for a
    while: a watch is late, or what was listed has been deleted and its deletion seen. Raises
    ApiError.
    """
    for reflector in reflectors:
        missing = [
            identity
            async for identity in _listed(client, reflector)
            if not _has(reflector, identity)
        ]
        for _ in range(LOOKS):
            if not missing:
                break
            await clock.sleep(PAUSE)
            missing = [identity for identity in missing if not _has(reflector, identity)]
        if missing:
            return False
    return True


def _has(reflector: Reflector[Any], listed: Identity) -> bool:
    known = reflector.store.get(listed.key)
    if known is None:
        return listed.key in reflector.unreadable
    version = known.metadata.resource_version
    return bool(version == listed.resource_version or is_older(listed.resource_version, version))


async def _listed(client: Api, reflector: Reflector[Any]) -> AsyncIterator[Identity]:
    params = {**reflector.params, "limit": str(PAGE)}
    while True:
        page = decode_list(await client.request("GET", reflector.path, params=params))
        for item in page.items:
            yield identity_in(bytes(item))
        if not page.metadata.continue_:
            return
        params["continue"] = page.metadata.continue_
