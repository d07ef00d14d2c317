"""A snapshot of any cluster, listed from its API server."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from berth.insight.whatif.daemons import DAEMON_SETS_PATH
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.kube.client.api import Api
from berth.kube.client.connect import connect
from berth.kube.client.errors import ApiError, ForbiddenError, NotFoundError
from berth.runtime.clock import RealClock, rfc3339
from berth.runtime.errors import UserError
from berth.runtime.event_loop import in_loop
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS
from berth.scheduler.framework.pod_group_sources import SOURCES
from berth.service.policies import list_policies


def list_cluster(kubeconfig: str, *, context: str | None = None) -> Snapshot:
    """List all that scheduling reads, in an event loop; the default configuration would decide.

    Kinds that the server does not serve are left out. The lists are of moments that are close to
    each other. Raises UserError, ConnectError among them, and SystemExit when a signal ends it.
    """
    snapshots = list[Snapshot]()

    async def listing() -> int:
        client = await connect(kubeconfig=kubeconfig, context=context)
        try:
            snapshots.append(await snapshot_of(client, time=rfc3339(RealClock().now())))
        except ApiError as exc:
            raise UserError(f"{kubeconfig}: {exc}") from exc
        finally:
            await client.close()
        return 0

    status = in_loop(listing())
    if not snapshots:
        sys.exit(status)
    return snapshots[0]


async def snapshot_of(client: Api, *, time: str) -> Snapshot:
    """List every kind through *client*; raises the API's errors."""
    objects: dict[str, list[Any]] = {}
    for kind in (*KINDS.values(), *(source.kind for source in SOURCES)):
        body = await _list(client, kind)
        if body is None:
            continue
        for name, listed in decode(body, source=kind.path).objects.items():
            objects.setdefault(name, []).extend(listed)
    return Snapshot(
        time=time,
        objects={kind: objects[kind] for kind in KINDS if kind in objects},
        daemon_sets=await _daemon_sets(client),
        policies=await list_policies(client),
    )


async def _list(client: Api, kind: Kind[Any]) -> bytes | None:
    """Return all objects of a kind, in the best version there is; None: it is not served."""
    for path in kind.paths:
        with suppress(NotFoundError):
            body = await client.request("GET", path, params=kind.params)
            convert = kind.conversion(path)
            if convert is None:
                return body
            document = msgspec.json.decode(body)
            items = [convert(item) for item in document["items"] or ()]
            return msgspec.json.encode({**document, "items": items})
    return None


async def _daemon_sets(client: Api) -> Sequence[Mapping[str, Any]]:
    """List the DaemonSets; none if that is forbidden: their pods say most about them."""
    path = DAEMON_SETS_PATH
    try:
        return decode(await client.request("GET", path), source=path).daemon_sets
    except (ForbiddenError, NotFoundError):
        return ()
