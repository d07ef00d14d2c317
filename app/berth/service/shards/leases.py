"""The Leases of members and slots on the API server: read together, changed one by one."""

from typing import Any

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, ConflictError, NotFoundError
from berth.kube.objects.cluster import LeaseSpec
from berth.runtime.clock import Clock, rfc3339_micro
from berth.scheduler.shards.claims import Leases
from berth.service.leaderelection.candidate import Lease
from berth.service.leaderelection.lease_lock import API_VERSION, LeaseLock
from berth.service.leaderelection.membership import member_lease


class Listed(msgspec.Struct):
    items: list[msgspec.Raw] = msgspec.field(default_factory=list)


class ShardLeases:
    """Those of one scheduler, by the name of its Lease. All methods raise ApiError.

    Each write is for the version that was read last; if that is out of date, it changes nothing and
    returns False.
    """

    def __init__(
        self,
        client: Api,
        *,
        namespace: str,
        name: str,
        identity: str,
        num_slots: int,
        timeout: float,
        clock: Clock,
    ) -> None:
        """*timeout* of each request is in seconds."""
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._members = member_lease(name, "")
        self._slots = [f"{name}-slot-{slot}" for slot in range(num_slots)]
        self._timeout = timeout
        self._clock = clock
        self._read: dict[str, Lease] = {}
        """By name, as they were read last."""

    async def read(self) -> Leases:
        """Return what they all say at one moment, not from a cache of the API server."""
        path = f"/apis/{API_VERSION}/namespaces/{self._namespace}/leases"
        answer = await self._client.request("GET", path, timeout=self._timeout)
        try:
            listed = msgspec.json.decode(answer, type=Listed)
            found = [msgspec.json.decode(item, type=dict[str, Any]) for item in listed.items]
            self._read = {
                raw["metadata"]["name"]: Lease(raw, msgspec.convert(raw.get("spec", {}), LeaseSpec))
                for raw in found
            }
        except (msgspec.MsgspecError, KeyError) as exc:
            raise ApiError(0, "Malformed", f"not a list of Leases: {exc}") from exc
        holders = (self._read.get(name) for name in self._slots)
        return Leases(
            [lease.spec.holder_identity or "" if lease else "" for lease in holders],
            {
                name.removeprefix(self._members): lease.raw["metadata"].get("resourceVersion")
                for name, lease in self._read.items()
                if name.startswith(self._members) and lease.spec.holder_identity
            },
        )

    async def expel(self, member: str) -> bool:
        """Make the Lease of *member* name nobody."""
        return await self._write(self._members + member, "")

    async def take(self, slot: int) -> bool:
        """Make the Lease of *slot* name us; always a change, so that no earlier write holds."""
        return await self._write(self._slots[slot], self._identity)

    async def give(self, slot: int) -> bool:
        """Make the Lease of *slot* name nobody."""
        return await self._write(self._slots[slot], "")

    async def sweep(self) -> None:
        """Delete the Leases of members that were expelled or have left."""
        for name, lease in self._read.items():
            if name.startswith(self._members) and not lease.spec.holder_identity:
                path = f"/apis/{API_VERSION}/namespaces/{self._namespace}/leases/{name}"
                try:
                    await self._client.request("DELETE", path, timeout=self._timeout)
                except NotFoundError:
                    continue

    async def _write(self, name: str, holder: str) -> bool:
        lock = LeaseLock(
            self._client,
            namespace=self._namespace,
            name=name,
            component="",
            clock=self._clock,
        )
        lease, now = self._read.get(name), rfc3339_micro(self._clock.now())
        transitions = 0 if lease is None else (lease.spec.lease_transitions or 0) + 1
        spec = LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=1,  # not renewed: it is for as long as its holder is a member
            acquire_time=now,
            renew_time=now,
            lease_transitions=transitions,
        )
        try:
            if lease is None:
                await lock.create(spec, timeout=self._timeout)
            else:
                await lock.update(lease, spec, timeout=self._timeout)
        except (ConflictError, NotFoundError):
            return False
        return True
