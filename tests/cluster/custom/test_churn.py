"""What is left of custom resources, pods and watches when they are gone: nothing that adds up."""

import gc
from collections import Counter

from berth.cluster.http.metrics import Series
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.schemas.types import Schema
from berth.cluster.storage.log import Change, Cursor
from berth.cluster.storage.stored import Stored
from berth.cluster.writes.definitions import MOST_GONE
from tests.cluster.custom.definitions import DEFINITIONS, definition, widget
from tests.cluster.serving import Serving, pod

COUNTED = (Change, Cursor, Schema, Series, Stored)
ROUNDS = 3
WARM_UP = MOST_GONE + 2
"""Rounds in which what is kept for a while, or once for all, is made."""
LOG = 6
"""Changes that the store keeps of each kind: less than a round makes."""


async def one_round(server: Serving, number: int) -> None:
    """Do what a CI job does, under names of its own, and take all of it back."""
    group = f"run-{number}.example.com"
    custom = f"/apis/{group}/v1/namespaces/ci-{number}/widgets"
    pods = f"/api/v1/namespaces/ci-{number}/pods"
    await server.post("/api/v1/namespaces", {"metadata": {"name": f"ci-{number}"}})
    await server.post(DEFINITIONS, definition(group=group))
    for name in map(str, range(2 * LOG)):
        await server.post(custom, widget(name, api_version=f"{group}/v1"))
        await server.post(pods, pod(f"{name}-{number}", labels={"run": str(number)}))
        await server.request("PATCH", f"{custom}/{name}", {"spec": {}}, content_type=MERGE)
        await server.request("GET", f"{custom}/{name}", accept=TABLE)
    await server.get(f"{custom}?labelSelector=run%3D{number}")
    await server.get(f"/openapi/v3/apis/{group}/v1")
    await server.watch(f"{custom}?watch=1&timeoutSeconds=5", lambda: None, seconds=5)
    await server.request("DELETE", custom)
    await server.request("DELETE", pods, {"gracePeriodSeconds": 0})
    await server.request("DELETE", f"{DEFINITIONS}/widgets.{group}")
    await server.request("DELETE", f"/api/v1/namespaces/ci-{number}")
    (await server.http.get("/metrics")).raise_for_status()


MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def counts() -> Counter[str]:
    gc.collect()
    live = Counter(type(each).__name__ for each in gc.get_objects())
    return Counter({each.__name__: live[each.__name__] for each in COUNTED})


async def series(server: Serving) -> int:
    """Return how many samples are scraped."""
    text = (await server.http.get("/metrics")).text
    return sum(not line.startswith("#") for line in text.splitlines())


async def test_what_is_deleted_leaves_nothing_behind() -> None:
    server = Serving(resources=RESOURCES, log_capacity=LOG)
    for number in range(WARM_UP):
        await one_round(server, number)
    samples, before = await series(server), counts()
    for number in range(WARM_UP, WARM_UP + ROUNDS):
        await one_round(server, number)
    assert await series(server) == samples
    assert "run-" not in (await server.http.get("/metrics")).text
    # Logs are halved when they are twice as long as they should be.
    grown = {name: count for name, count in (counts() - before).items() if count > 2 * LOG}
    assert grown == {}
    assert counts()["Schema"] == before["Schema"]
