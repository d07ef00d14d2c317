"""ResourceClaims of an API server, in memory: versions, conflicts, and a watch that may lag."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from berth.framework.listers import Lister
from berth.framework.writes import ConflictError
from berth.objects.devices import ResourceClaim, decode_claim


class Write(NamedTuple):
    verb: str
    name: str


class FakeClaims:
    """The :class:`~berth.framework.writes.ResourceClaimWrites` of a cluster of plain dicts.

    What is written is told to *known* at once, unless ``lags``; then :meth:`catch_up` tells it.
    """

    def __init__(self, known: Lister[ResourceClaim]) -> None:
        self.writes: list[Write] = []
        self.conflicts = 0
        """How many of the next writes find that the claim was changed meanwhile."""
        self.error: Exception | None = None
        """Raised by the next writes."""
        self.lags = False
        self._known = known
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._version = 100

    def claim(self, name: str, namespace: str = "default") -> ResourceClaim:
        """Return a claim as it is on the server; KeyError if there is none."""
        return decode_claim(msgspec.json.encode(self._objects[namespace, name]))

    def names(self) -> list[str]:
        return [name for _, name in self._objects]

    def put(self, claim: ResourceClaim) -> ResourceClaim:
        """Create or replace a claim, as somebody else than the scheduler would."""
        bare = msgspec.structs.replace(claim, raw=b"")
        return self._store({"kind": "ResourceClaim", **msgspec.to_builtins(bare)})

    def remove(self, name: str, namespace: str = "default") -> None:
        gone = self.claim(name, namespace)
        del self._objects[namespace, name]
        self._known.on_delete(gone)

    def catch_up(self) -> None:
        """Tell what was written while the watch lagged."""
        self.lags = False
        for body in self._objects.values():
            self._known.on_add(decode_claim(msgspec.json.encode(body)))

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        return self.claim(name, namespace)

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        meta = body["metadata"]
        name = f"{meta['generateName']}{self._version}"
        self._note("create", name)
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
        """Understands what takes a consumer out of ``reservedFor``."""
        self._note("patch status", name)
        current = self._objects[namespace, name]
        assert patch["metadata"]["uid"] == current["metadata"]["uid"]
        (directive,) = patch["status"]["reservedFor"]
        assert directive["$patch"] == "delete"
        status = current["status"]
        kept = [user for user in status["reservedFor"] if user["uid"] != directive["uid"]]
        return self._store({**current, "status": {**status, "reservedFor": kept}})

    async def delete(self, namespace: str, name: str) -> None:
        self._note("delete", name)
        assert not self._objects[namespace, name]["metadata"].get("finalizers")
        self.remove(name, namespace)

    def _note(self, verb: str, name: str) -> None:
        if self.error is not None:
            raise self.error
        self.writes.append(Write(verb, name))

    def _checked(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        meta = body["metadata"]
        self._note(verb, meta["name"])
        current = self._objects[meta["namespace"], meta["name"]]
        if self.conflicts:
            self.conflicts -= 1
            self._store(current)
            current = self._objects[meta["namespace"], meta["name"]]
        if current["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise ConflictError(f"{meta['name']}: the object has been modified")
        return current

    def _store(self, body: Mapping[str, Any]) -> ResourceClaim:
        self._version += 1
        meta = {**body["metadata"], "resourceVersion": str(self._version)}
        self._objects[meta["namespace"], meta["name"]] = {**body, "metadata": meta}
        stored = self.claim(meta["name"], meta["namespace"])
        if not self.lags:
            self._known.on_add(stored)
        return stored
