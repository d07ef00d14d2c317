"""Objects of every kind with whatever its fields may hold: stored or refused, and shown after."""

import random
from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.bootstrap import bootstrap
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import RESOURCES, STORED
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import ANYTHING, Field, ListOf, MapOf, Scalar, Schema, Type
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock
from tests.cluster.at_once import at_once
from tests.cluster.serving import FAITHFUL, NOW

CREATED = [each for each in STORED if "create" in each.verbs]

TEXTS = st.sampled_from(
    ["", "x", "1", "-1", "9" * 30, "1e400", "100m", "2024-01-01T00:00:00Z", "2024-01-01t00:00:00z",
     "a/b", "\n", "é", "{}"]
) | st.text(max_size=5)  # fmt: skip
NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, -(2**63)])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "bytes": TEXTS | st.sampled_from(["YQ==", "/wA="]),
    "int32": NUMBERS,
    "int64": NUMBERS,
    "number": NUMBERS | st.floats(),
    "boolean": st.booleans(),
    "Time": TEXTS,
    "MicroTime": TEXTS,
    "Quantity": TEXTS | NUMBERS | st.sampled_from([0.5, 1e308]),
    "IntOrString": TEXTS | NUMBERS,
    **dict.fromkeys(ANYTHING, st.sampled_from([{}, [], "x", {"a": {"b": []}}])),
}


def values(draw: st.DrawFn, each: Type, depth: int) -> Any:
    match each:
        case Scalar(name):
            return draw(SCALARS[name])
        case ListOf(item):
            return [
                None if draw(st.integers(0, 9)) == 0 else values(draw, item, depth - 1)
                for _ in range(draw(st.integers(0, 2)))
            ]
        case MapOf(item):
            keys = draw(st.lists(TEXTS, max_size=2))
            return {key: values(draw, item, depth - 1) for key in keys}
        case Schema():
            return fields(draw, each, depth)


def fields(draw: st.DrawFn, schema: Schema, depth: int) -> Object:
    """Some of the fields of an object type; of those that are required, nearly all."""
    known = schema.fields

    def likely(field: Field) -> int:
        return 9 if field.is_required else 3 if depth > 0 else 0

    chosen = [name for name, each in known.items() if draw(st.integers(0, 9)) < likely(each)]
    return {name: values(draw, known[name].type, depth - 1) for name in chosen}


@st.composite
def objects(draw: st.DrawFn) -> tuple[ResourceType, Object]:
    resource = draw(st.sampled_from(CREATED))
    obj = fields(draw, resource.schema, 4)
    for key in ("kind", "apiVersion"):
        obj.pop(key, None)
    metadata = obj.setdefault("metadata", {})
    for key in ("namespace", "resourceVersion", "managedFields"):
        metadata.pop(key, None)
    if draw(st.integers(0, 9)):
        metadata["name"] = "name"
    return resource, obj


class Cluster:
    """The kinds that are served, without sockets."""

    def __init__(self) -> None:
        self.store = Store()
        server = ApiServer(
            Registry(RESOURCES),
            self.store,
            clock=FakeClock(NOW),
            rng=random.Random(1),
        )
        at_once(bootstrap(server.writes))
        transport = httpx.ASGITransport(app=server.app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://cluster")

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        content = None if body is None else msgspec.json.encode(body)
        given_headers = {"content-type": "application/json"} | {
            key.replace("_", "-"): value for key, value in headers.items()
        }
        answer = await self.http.request(method, path, content=content, headers=given_headers)
        is_faithful = any(each in answer.text for each in FAITHFUL)
        assert answer.status_code < 500 or is_faithful, answer.text
        return answer.status_code, answer.json()


CLUSTER = Cluster()
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TOO_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(suppress_health_check=TOO_SLOW, deadline=None)
@given(objects(), objects())
async def test_any_object(
    one: tuple[ResourceType, Object], two: tuple[ResourceType, Object]
) -> None:
    resource, obj = one
    namespace = "default" if resource.namespaced else ""
    collection = resource.collection_path(namespace)
    code, stored = await CLUSTER.ask("POST", collection, obj)
    assert code in (201, 400, 403, 404, 409, 422)
    if code == 201:
        path = resource.path_of(namespace, stored["metadata"]["name"])
        if two[0] is resource:
            kind = "application/strategic-merge-patch+json"
            await CLUSTER.ask("PATCH", path, two[1], content_type=kind)
            if "status" in resource.subresources:
                await CLUSTER.ask("PUT", f"{path}/status", {**two[1], "metadata": {}})
        assert (await CLUSTER.ask("GET", f"{collection}?limit=500", accept=TABLE))[0] == 200
        options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        await CLUSTER.ask("PATCH", path, {"metadata": {"finalizers": None}},
                          content_type="application/merge-patch+json")  # fmt: skip
        await CLUSTER.ask("DELETE", path, options)
    CLUSTER.store.check_invariants()
