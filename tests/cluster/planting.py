"""Nulls, and empty objects, in every place of an object of every kind, by every kind of write.

And who reads what is stored: the controllers, the scheduler, the authorizer.
"""

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import httpx
import msgspec

from berth.cluster.bootstrap import bootstrap
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.informers import reader
from berth.cluster.controllers.run import Controllers
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import RESOURCES, STORED
from berth.cluster.kinds.registry import Registry, collected
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.presence import complete
from berth.cluster.schemas.types import Schema
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.kube.client.errors import ApiError
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.kind import NODES, PODS, Kind
from berth.scheduler.framework.listers import KINDS
from tests.cluster.at_once import at_once
from tests.cluster.every_kind import named
from tests.cluster.every_status import STATUSES
from tests.cluster.serving import NOW

Path = tuple[str | int, ...]

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"

CREATED: Final = {
    f"{each.group_version}/{each.plural}": each for each in STORED if "create" in each.verbs
}
"""The kinds, as :data:`tests.cluster.every_kind.EVERY_KIND` names them."""


class Planting(NamedTuple):
    """One request that brings null, or something as empty, to one place of one object."""

    key: str
    subresource: str
    """``status``, or empty."""
    path: Path
    what: Any
    how: str
    """One of :data:`WAYS`."""


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of everything in *value*."""
    children: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def nulls_in(value: Any) -> Iterator[Path]:
    """Yield the path of every null in *value*."""
    for path in places(value):
        if _inside(value, path) is None:
            yield path


def planted(value: Any, path: Path, what: Any) -> Any:
    """Return a copy of *value* with *what* at *path*."""
    changed = copy.deepcopy(value)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = what
    return changed


def _inside(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _pointer(path: Path) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _replacing(obj: Object, path: Path) -> Object:
    """Say ``$patch: replace`` in the object around *path*."""
    around = path[:-1]
    while not isinstance(_inside(obj, around), dict):
        around = around[:-1]
    changed = copy.deepcopy(obj)
    _inside(changed, around)["$patch"] = "replace"
    return changed


def _replacing_list(obj: Object, path: Path) -> Object | None:
    """Say it as an item of the list around *path*."""
    depth = max((n for n, key in enumerate(path) if isinstance(key, int)), default=None)
    if depth is None:
        return None
    changed = copy.deepcopy(obj)
    _inside(changed, path[:depth]).append({"$patch": "replace"})
    return changed


WAYS: Final = (
    "merge",
    "strategic",
    "strategic, replacing around it",
    "strategic, replacing the list",
    "strategic, replacing everything",
    "JSON patch",
    "apply",
    "PUT",
    "POST",
)


class Request(NamedTuple):
    method: str
    path: str
    body: Any
    media_type: str


class World:
    """An API server with one object of each kind, and readers of all that it stores."""

    def __init__(self) -> None:
        self.store = Store()
        registry = Registry(RESOURCES)
        self.server = ApiServer(registry, self.store, clock=FakeClock(NOW), rng=random.Random(1))
        at_once(bootstrap(self.server.writes))
        self.server.open()
        transport = httpx.ASGITransport(app=self.server.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://cluster")
        self.registry = registry
        self.before: dict[str, Stored] = {}

    async def fill(self) -> None:
        """Create one object of each kind."""
        for key, resource in CREATED.items():
            collection = resource.collection_path(self.namespace(resource))
            code, answer = await self.ask(Request("POST", collection, named(key), JSON))
            assert code == 201, answer
            if key in STATUSES:
                path = f"{self.path(key)}/status"
                status = {"status": STATUSES[key]}
                code, answer = await self.ask(Request("PATCH", path, status, MERGE))
                assert code == 200, answer
            self.before[key] = self.stored(key)
        self.readers = Readers(self.registry, self.store)

    async def ask(self, request: Request) -> tuple[int, str]:
        content = msgspec.json.encode(request.body)
        headers = {"content-type": request.media_type}
        answer = await self.http.request(
            request.method, request.path, content=content, headers=headers
        )
        return answer.status_code, answer.text

    async def shown(self, key: str) -> None:
        """Read an object in every form that there is."""
        resource = CREATED[key]
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        for path, accept in (
            (self.path(key), "application/yaml"),
            (self.path(key), "application/vnd.kubernetes.protobuf"),
            (resource.collection_path(self.namespace(resource)), table),
        ):
            answer = await self.http.get(path, headers={"accept": accept})
            assert answer.status_code == 200, (accept, answer.text)

    @staticmethod
    def namespace(resource: ResourceType) -> str:
        return "default" if resource.namespaced else ""

    def path(self, key: str) -> str:
        resource = CREATED[key]
        return resource.path_of(self.namespace(resource), named(key)["metadata"]["name"])

    def stored(self, key: str) -> Stored:
        resource = CREATED[key]
        name = named(key)["metadata"]["name"]
        return self.store.get(resource.storage_key, self.namespace(resource), name)

    def restore(self, key: str) -> None:
        """Make an object what it was."""
        if self.stored(key) is not self.before[key]:
            storage_key = CREATED[key].storage_key
            self.before[key] = self.store.update(storage_key, self.before[key].decode())

    def whole(self, key: str, subresource: str) -> Object:
        """Return what is changed: an object without what the server fills in, or a status."""
        if subresource:
            return {"metadata": {}, "status": STATUSES[key]}
        resource = CREATED[key]
        obj = resource.from_storage(self.before[key].decode())
        kept = ("name", "namespace", "labels", "annotations", "finalizers")
        metadata = {each: obj["metadata"][each] for each in kept if each in obj["metadata"]}
        return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}

    def request(self, planting: Planting) -> Request | None:
        """Return the request; None where it would not say anything else than another."""
        key, subresource, path, what, how = planting
        resource = CREATED[key]
        whole = self.whole(key, subresource)
        url = self.path(key) + (f"/{subresource}" if subresource else "")
        changed = planted(whole, path, what)
        typed = {"apiVersion": resource.group_version, "kind": resource.kind, **changed}
        match how:
            case "merge":
                return Request("PATCH", url, changed, MERGE)
            case "strategic":
                return Request("PATCH", url, changed, STRATEGIC)
            case "strategic, replacing around it":
                return Request("PATCH", url, _replacing(changed, path), STRATEGIC)
            case "strategic, replacing everything":
                return Request("PATCH", url, {"$patch": "replace", **changed}, STRATEGIC)
            case "strategic, replacing the list":
                body = _replacing_list(changed, path)
                return None if body is None else Request("PATCH", url, body, STRATEGIC)
            case "JSON patch":
                operation = {"op": "add", "path": _pointer(path), "value": what}
                if isinstance(path[-1], int):
                    operation["op"] = "replace"
                return Request("PATCH", url, [operation], JSON_PATCH)
            case "apply":
                return Request("PATCH", f"{url}?fieldManager=t&force=true", typed, APPLY)
            case "PUT":
                if subresource:
                    stored = resource.from_storage(self.before[key].decode())
                    typed = {**stored, "status": changed["status"]}
                return Request("PUT", url, typed, JSON)
            case _:
                if subresource:
                    return None
                collection = resource.collection_path(self.namespace(resource))
                return Request("POST", f"{collection}?dryRun=All", _renamed(typed), JSON)

    def plantings(self) -> Iterator[Planting]:
        """Yield all there are."""
        for key, resource in CREATED.items():
            for subresource in ("", "status") if key in STATUSES else ("",):
                whole = self.whole(key, subresource)
                for path in _all_places(whole, resource.schema):
                    for how in WAYS:
                        yield Planting(key, subresource, path, None, how)
                        if isinstance(path[-1], int) and isinstance(_inside(whole, path), dict):
                            yield Planting(key, subresource, path, {}, how)


def _renamed(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name") or "." in metadata["name"]:
        return obj
    return {**obj, "metadata": {**metadata, "name": "new"}}


def _all_places(whole: Object, schema: Schema) -> Iterator[Path]:
    for path in places(whole):
        if path[0] == "metadata" and len(path) == 2 and path[1] in ("name", "namespace"):
            continue
        if path[0] in ("kind", "apiVersion"):
            continue
        yield path
    for name in schema.fields:
        if name not in ("kind", "apiVersion", "metadata", "status", *whole):
            yield (name,)


class Readers:
    """All who read what is stored, except the API server itself."""

    def __init__(self, registry: Registry, store: Store) -> None:
        client: Any = _NoClient()
        controllers = Controllers(client, registry, clock=FakeClock(NOW), rng=random.Random(1))
        self._controllers = [loop._controller for loop in controllers._loops]
        informers = controllers._informers
        self._tables = {key: informers._tables[key] for key in informers._views}
        kinds = {each.storage_key: each for each in collected(registry)}
        self._decode = {key: reader(kinds[key], view) for key, view in informers._views.items()}
        self._due: dict[str, set[str]] = {}
        for controller in self._controllers:
            due = self._due[controller.name] = set()
            controller.subscribe(due.add)
        for key, table in self._tables.items():
            for stored in store.list(key):
                table.on_add(self._decode[key](stored.body))
        self._plan()

    def read(self, resource: ResourceType, stored: Stored) -> None:
        """Raise if somebody cannot read an object."""
        obj = {"kind": "", "apiVersion": "", **resource.from_storage(stored.decode())}
        completed = copy.deepcopy(obj)
        complete(resource.schema, completed)
        if not resource.is_view:
            assert not [path for path in nulls_in(obj) if path not in {*nulls_in(completed)}]
        kinds: list[Kind[Any]] = [PODS, NODES, *KINDS.values()]
        for kind in kinds:
            if kind.name == resource.kind:
                kind.decode(stored.body)

    def react(self, resource: ResourceType, before: Stored, after: Stored) -> None:
        """Raise if a controller cannot make a plan after a change."""
        key = resource.storage_key
        if key in self._tables:
            old, new = map(self._decode[key], (before.body, after.body))
            try:
                self._tables[key].on_update(old, new)
                self._plan()
            finally:
                self._tables[key].on_update(new, old)
                for due in self._due.values():
                    due.clear()

    def _plan(self) -> None:
        for controller in self._controllers:
            due = self._due[controller.name]
            for key in sorted(due):
                try:
                    plan = controller.plan(key)
                except Exception as exc:
                    raise AssertionError(f"{controller.name} cannot plan {key}: {exc!r}") from exc
                for action in plan.actions:
                    controller.finished(key, Outcome(action, error=ApiError(503, "", "no answer")))
            due.clear()


class _NoClient:
    """Of controllers that only plan."""

    def accepting(self, _media_type: str) -> "_NoClient":
        return self
