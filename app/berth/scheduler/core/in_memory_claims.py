"""ResourceClaims of an API in memory, with resource versions and conflicts."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from berth.kube.objects.devices import ResourceClaim, decode_claim
from berth.scheduler.framework.writes import ConflictError

OnChange = Callable[[ResourceClaim | None, ResourceClaim | None], None]


class InMemoryClaims:
    """The :class:`~berth.scheduler.framework.writes.ResourceClaimWrites` of an API in memory."""

    def __init__(self, on_change: OnChange) -> None:
        """*on_change* hears of each change: the old claim and the new one, None for no claim."""
        self._on_change = on_change
        self._bodies: dict[tuple[str, str], dict[str, Any]] = {}
        self._version = 100

    def claim(self, name: str, namespace: str = "default") -> ResourceClaim:
        """Return a claim as it is now; KeyError if there is none."""
        return decode_claim(msgspec.json.encode(self._bodies[namespace, name]))

    def names(self) -> list[str]:
        return [name for _, name in self._bodies]

    def put(self, claim: ResourceClaim) -> ResourceClaim:
        """Create or replace a claim, as somebody else than the scheduler would."""
        bare = msgspec.structs.replace(claim, raw=b"")
        return self._store({"kind": "ResourceClaim", **msgspec.to_builtins(bare)})

    def remove(self, name: str, namespace: str = "default") -> None:
        gone = self.claim(name, namespace)
        del self._bodies[namespace, name]
        self._notify(gone, None)

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        return self.claim(name, namespace)

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        meta = body["metadata"]
        name = f"{meta['generateName']}{self._version}"
        self._before("create", name)
        return self._store({**body, "metadata": {**meta, "name": name, "uid": f"uid-{name}"}})

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        current = self._checked("update", body)
        return self._store({**body, "status": current.get("status", {})})

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        current = self._checked("update status", body)
        return self._store({**current, "status": body.get("status", {})})

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> ResourceClaim:
        """Take a consumer out of ``reservedFor``, which is all that the scheduler patches."""
        self._before("patch status", name)
        current = self._bodies[namespace, name]
        if patch["metadata"]["uid"] != current["metadata"]["uid"]:
            raise ConflictError(f"{name}: another claim has this name")
        (directive,) = patch["status"]["reservedFor"]
        status = current["status"]
        kept = [user for user in status["reservedFor"] if user["uid"] != directive["uid"]]
        return self._store({**current, "status": {**status, "reservedFor": kept}})

    async def delete(self, namespace: str, name: str) -> None:
        self._before("delete", name)
        self.remove(name, namespace)

    def _before(self, verb: str, name: str) -> None:
        """Do nothing; called before each write, for who wants to know or to refuse it."""

    def _checked(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the current body; ConflictError unless *body* was made from it."""
        meta = body["metadata"]
        self._before(verb, meta["name"])
        current = self._bodies[meta["namespace"], meta["name"]]
        if current["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise ConflictError(f"{meta['name']}: the object has been modified")
        return current

    def _store(self, body: Mapping[str, Any]) -> ResourceClaim:
        self._version += 1
        meta = {**body["metadata"], "resourceVersion": str(self._version)}
        key = meta.get("namespace", ""), meta["name"]
        old = self.claim(key[1], key[0]) if key in self._bodies else None
        self._bodies[key] = {**body, "metadata": meta}
        stored = self.claim(key[1], key[0])
        self._notify(old, stored)
        return stored

    def _notify(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self._on_change(old, new)
