"""kubectl's recorded requests, sent to the embedded API server in order, and its answers compared.

The store begins with what the recorded cluster had, as far as its answers show it.
"""

import asyncio
import copy
import functools
import json
import random
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import resources
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock
from tests.cluster.recording import Exchange, Target, exchanges, full_objects

NOW = 1795180200.0
"""2026-11-20T13:10:00Z, about when it was recorded."""

AGES = {"Age", "Last Seen", "First Seen"}
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON = "application/json"


def is_replayed(exchange: Exchange) -> bool:
    """Tell whether the embedded cluster serves the request at all."""
    return exchange.target is not None or exchange.path in ("/api", "/apis", "/api/v1")


REPLAYED = [each for each in exchanges() if is_replayed(each)]


def from_row(target: Target, cells: Mapping[str, Any], metadata: Object) -> Object:
    """Return an object that the recording shows only as a row, with what the row tells of it."""
    obj: Object = {"metadata": metadata}
    match target.resource.kind:
        case "Namespace":
            obj["status"] = {"phase": cells["Status"]}
        case "PriorityClass":
            obj["value"] = cells["Value"]
            obj["preemptionPolicy"] = cells["PreemptionPolicy"]
        case "Lease":
            obj["spec"] = {"holderIdentity": cells["Holder"]}
        case "Event":
            kind, _, name = cells["Object"].partition("/")
            component, _, host = cells["Source"].partition(", ")
            obj |= {
                "involvedObject": {"kind": kind.title(), "name": name, "namespace": "default"},
                "reportingComponent": component,
                "reportingInstance": host,
                "eventTime": metadata["creationTimestamp"],
                **{key: cells[key.title()] for key in ("type", "reason", "message")},
            }
    if "Terminating" in cells.values():
        obj["metadata"] = {**metadata, "deletionTimestamp": metadata["creationTimestamp"]}
    return obj


def first_state() -> dict[tuple[str, str, str], tuple[Target, Object]]:
    """Return what was there at first: whole where shown whole, else as rows tell."""
    found: dict[tuple[str, str, str], tuple[Target, Object]] = {}
    made = {"deployments"}  # created by the recorded commands themselves

    def keep(target: Target, obj: Object) -> None:
        metadata = obj["metadata"]
        key = (target.resource.storage_key, metadata.get("namespace", ""), metadata["name"])
        if target.resource.plural not in made:
            found.setdefault(key, (target, obj))

    for exchange in exchanges():
        for obj in full_objects(exchange):
            if exchange.target is not None:
                keep(exchange.target, obj)
    for exchange in exchanges():
        if exchange.body.get("kind") == "Table" and exchange.target is not None:
            names = [definition["name"] for definition in exchange.body["columnDefinitions"]]
            for row in exchange.body["rows"]:
                cells = dict(zip(names, row["cells"], strict=True))
                keep(exchange.target, from_row(exchange.target, cells, row["object"]["metadata"]))
    return found


def content_of(exchange: Exchange, versions: Mapping[str, str]) -> bytes | None:
    """Return the body to send; protobuf was recorded with a character for each byte.

    *versions* are ours, by those of the recorded cluster.
    """
    body = exchange.request
    if body is None or isinstance(body, str):
        return None if body is None else body.encode("latin-1")
    if isinstance(body, list):
        body = [
            {**each, "value": versions[each["value"]]} if each["path"] == VERSION else each
            for each in body
        ]
    return json.dumps(without_versions(body)).encode()


USER_AGENT = "kubectl/v1.32.4 (linux/amd64)"
VERSION = "/metadata/resourceVersion"


def without_versions(body: Any) -> Any:
    """Return a request without the versions that only the recorded cluster had."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        return body
    kept = {k: v for k, v in body["metadata"].items() if k not in ("resourceVersion", "uid")}
    return {**body, "metadata": kept}


@functools.cache
def answers() -> list[httpx.Response]:
    """Return our answers to :data:`REPLAYED`."""
    return asyncio.run(_replay())


async def _replay() -> list[httpx.Response]:
    store = Store()
    for target, obj in first_state().values():
        store.create(target.resource.storage_key, copy.deepcopy(obj))
    clock = FakeClock(NOW)
    server = ApiServer(
        Registry(resources("1.36"), release="1.36"), store, clock=clock, rng=random.Random(0)
    )
    etags: dict[str, str] = {}
    versions: dict[str, str] = {}
    found = []
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        for exchange in REPLAYED:
            headers = {"User-Agent": USER_AGENT, **exchange.headers}
            if exchange.status == 304:
                headers["If-None-Match"] = etags[exchange.path]
            response = await client.request(
                exchange.method,
                exchange.url,
                headers=headers,
                content=content_of(exchange, versions),
            )
            if isinstance(exchange.response, dict) and "metadata" in exchange.response:
                theirs = exchange.response["metadata"].get("resourceVersion", "")
                versions[theirs] = response.json()["metadata"].get("resourceVersion", "")
            etags[exchange.path] = response.headers.get("etag", "")
            found.append(response)
    return found


def cases() -> list[Any]:
    return [pytest.param(index, each, id=str(each)) for index, each in enumerate(REPLAYED)]


@pytest.mark.parametrize(("index", "exchange"), cases())
def test_status_and_content_type(index: int, exchange: Exchange) -> None:
    response = answers()[index]
    assert response.status_code == exchange.status, response.text
    recorded = JSON if exchange.content_type == PROTOBUF else exchange.content_type
    assert response.headers.get("content-type") == recorded


def kinds(*names: str) -> list[Any]:
    return [case for case in cases() if case.values[1].body.get("kind") in names]


@pytest.mark.parametrize(("index", "exchange"), kinds("Table"))
def test_tables(index: int, exchange: Exchange) -> None:
    ours, theirs = answers()[index].json(), exchange.body
    assert shown(ours) == shown(theirs)


def shown(table: Object) -> list[Object]:
    """Return the cells by column, but for ages."""
    names = [definition["name"] for definition in table["columnDefinitions"]]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    return [{name: cell for name, cell in row.items() if name not in AGES} for row in rows]


@pytest.mark.parametrize(("index", "exchange"), kinds("Status"))
def test_statuses(index: int, exchange: Exchange) -> None:
    ours, theirs = answers()[index].json(), copy.deepcopy(exchange.body)
    for each in (ours, theirs):
        each.get("details", {}).pop("uid", None)
    assert ours == theirs


@pytest.mark.parametrize(
    ("index", "exchange"), kinds("Pod", "PodList", "Node", "NodeList", "Deployment", "Scale")
)
def test_objects(index: int, exchange: Exchange) -> None:
    """Everything but what a server makes up: versions, uids, times.

    Managed fields are compared below.
    """
    ours, theirs = answers()[index].json(), exchange.body
    assert essence(ours) == essence(theirs)


MADE_UP = {"resourceVersion", "uid", "creationTimestamp", "managedFields"}


@pytest.mark.parametrize(("index", "exchange"), kinds("Pod", "Node", "Deployment", "Scale"))
def test_managed_fields(index: int, exchange: Exchange) -> None:
    """Which manager manages which fields, and whether it is said since when."""
    assert managers(answers()[index].json()) == managers(exchange.body)


def managers(obj: Object) -> list[Object]:
    entries = [
        {**field, "time": "time" in field} for field in obj["metadata"].get("managedFields", [])
    ]
    return sorted(entries, key=lambda each: (each["operation"], each["manager"]))


def essence(obj: Object) -> Object:
    kept = {key: value for key, value in obj.items() if key not in ("items", "metadata", "status")}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in MADE_UP}
    if "items" in obj:
        kept["items"] = [essence(item) for item in obj["items"]]
    return {**kept, "metadata": metadata}
