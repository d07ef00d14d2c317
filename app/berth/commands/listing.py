"""A snapshot of any cluster, listed from its API server."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from berth.client.connect import connect
from berth.client.errors import ApiError, ForbiddenError, NotFoundError
from berth.clock import RealClock, rfc3339
from berth.framework.listers import KINDS
from berth.terminal import UsageError, in_loop
from berth.whatif.daemons import DAEMON_SETS_PATH
from berth.whatif.snapshot import Snapshot, decode


def list_cluster(kubeconfig: str) -> Snapshot:
    """List all that scheduling reads; the default configuration would decide.

    Kinds that the server does not serve are left out. The lists are of moments that are close to
    each other. Raises UsageError and ConnectError.
    """
    found: list[Snapshot] = []

    async def listing() -> int:
        client = await connect(kubeconfig=kubeconfig)
        try:
            time = rfc3339(RealClock().now())
            found.append(await snapshot_of(client, time=time))
        finally:
            await client.close()
        return 0

    try:
        in_loop(listing())
    except ApiError as exc:
        raise UsageError(f"{kubeconfig}: {exc}") from exc
    return found[0]


class Api(Protocol):
    """An API server, as far as it is read here."""

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None
    ) -> bytes: ...


async def snapshot_of(client: Api, *, time: str) -> Snapshot:
    """List every kind through *client*; raises the API's errors."""
    objects: dict[str, Any] = {}
    for kind in KINDS.values():
        try:
            body = await client.request("GET", kind.path, params=kind.params)
        except NotFoundError:
            continue
        objects |= decode(body, source=kind.path).objects
    return Snapshot(
        time=time,
        objects={kind: objects[kind] for kind in KINDS if kind in objects},
        daemon_sets=await _daemon_sets(client),
    )


async def _daemon_sets(client: Api) -> Sequence[Mapping[str, Any]]:
    """List the DaemonSets; none if we may not, for their pods tell most of them."""
    path = DAEMON_SETS_PATH
    try:
        return decode(await client.request("GET", path), source=path).daemon_sets
    except (ForbiddenError, NotFoundError):
        return ()
