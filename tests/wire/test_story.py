"""The recorded story told to ``berth run``: the same watches, the same writes in the same order.

Compared are whole bodies but for names of machines and nodes, times, uids and versions of objects.
Not compared: what the API server or kubectl had added to an object that is written back, and fields
that are null or empty, which mean the same when they are missing.

Excluded as well is the order of events to other writes: kube-scheduler writes them beside, and has
them now before and now after the status of the same attempt. They are compared by pod.
"""

import json
import re
import socket
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.wire.story import Recorder, told

pytestmark = [pytest.mark.wall, pytest.mark.slow]

RECORDED = Path(__file__).parent / "recorded"
METHODS = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}

ADDED_BY_OTHERS = {
    "managedFields",
    "creationTimestamp",
    "kubectl.kubernetes.io/last-applied-configuration",
}
"""Fields and annotations of objects that berth only hands back."""
NOT_OURS = {"Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"}
"""Conditions that kubelets write; there was none where the story was recorded."""
PATTERNS = (
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "MICROTIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\.[0-9a-f]{16}$"), ".NANOS"),
    (re.compile(r"\bnode-[ab01]\b"), "NODE"),
    (re.compile(rf"\b(host-1|{re.escape(socket.gethostname())})(?=_UID|$)"), "HOST"),
)


class Write(NamedTuple):
    method: str
    uri: str
    status: int
    body: Any


def normal(value: Any) -> Any:
    """Return *value* without what may differ."""
    match value:
        case str():
            for pattern, name in PATTERNS:
                value = pattern.sub(name, value)
            return value
        case dict():
            found = {
                key: "VERSION" if key == "resourceVersion" else normal(each)
                for key, each in value.items()
                if key not in ADDED_BY_OTHERS
            }
            return {key: each for key, each in found.items() if each not in (None, {})}
        case list():
            others = [{"type": name} for name in NOT_OURS]
            return [normal(each) for each in value if each not in others]
        case _:
            return value


def written(requests: Iterable[tuple[str, str, Any, int]]) -> list[Write]:
    return [
        Write(method, uri, status, _body(method, normal(body)))
        for method, uri, body, status in requests
        if method not in ("GET", "WATCH")
    ]


def _body(method: str, body: Any) -> Any:
    """Return *body*; of a delete's the group is the client's own business.

    That it is about this very pod is said by us alone.
    """
    if method != "DELETE":
        return body
    kept = {name: value for name, value in body.items() if name != "preconditions"}
    return {**kept, "apiVersion": "v1"}


def recorded_writes() -> list[Write]:
    lines = (RECORDED / "api-writes.jsonl").read_text().splitlines()
    return written(
        (METHODS[line["verb"]], line["uri"], line.get("body"), line["code"])
        for line in map(json.loads, lines)
    )


def is_about_lease(write: Write) -> bool:
    return "leases" in write.uri or write.body.get("reason") == "LeaderElection"


def decisions(writes: Iterable[Write]) -> list[Write]:
    return [w for w in writes if "/events" not in w.uri and not is_about_lease(w)]


def events(writes: Iterable[Write]) -> dict[str, list[Write]]:
    found: dict[str, list[Write]] = {}
    for write in writes:
        if write.uri.endswith("/events") and not is_about_lease(write):
            found.setdefault(write.body["regarding"]["name"], []).append(write)
    return found


def lease_writes(writes: Iterable[Write]) -> list[Write]:
    """Return what was written to get the lease and to hold it once: later ones were left out."""
    found: list[Write] = []
    for write in writes:
        if is_about_lease(write) and write not in found:
            found.append(write)
    return found


def watches(uris: Iterable[str]) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Return paths and parameters, but for how long a watch may last."""
    lengths = ("timeout", "timeoutSeconds")
    found = set()
    for uri in uris:
        path, query = urlsplit(uri).path, urlsplit(uri).query
        params = parse_qsl(query)
        assert "timeoutSeconds" in dict(params), uri
        found.add((path, frozenset((k, v) for k, v in params if k not in lengths)))
    return found


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Recorder]:
    async with told(tmp_path) as recorder:
        yield recorder


async def test_the_story_is_answered_as_by_kube_scheduler(listener: Recorder) -> None:
    ours, theirs = written(listener.requests), recorded_writes()

    assert decisions(ours) == decisions(theirs)
    assert events(ours) == events(theirs)
    assert lease_writes(ours) == lease_writes(theirs)
    asked = [r for r in listener.requests if r.method == "GET" and "leases" in r.uri]
    assert (asked[0].uri, asked[0].status) == (
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler?timeout=5s",
        404,
    )

    lines = (RECORDED / "watches.txt").read_text().splitlines()
    watched = [r.uri for r in listener.requests if r.method == "WATCH"]
    assert len(watched) == len(lines)
    assert watches(watched) == watches(line.removeprefix("watch ") for line in lines)
