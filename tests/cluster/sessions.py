"""Sessions of random requests that a real API server answered, played against the embedded one.

``recorded/session-N.jsonl.gz`` has a request and its answer in each line, in order; the server was
empty at the beginning, without controllers. What a run of its own decides is set aside before the
answers are compared: identities, versions, times, addresses, generated names.

``python -m tests.cluster.sessions [--session N] [--kind KIND]`` prints what differs.
"""

import argparse
import asyncio
import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import ADMIN
from berth.cluster.bootstrap import bootstrap, publish
from berth.cluster.features import default_features
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import resources
from berth.cluster.kinds.registry import Registry
from berth.cluster.storage.store import Store
from berth.cluster.times import seconds_of
from berth.cluster.writes.admission.steps import standard_admission
from berth.runtime.clock import FakeClock, rfc3339

RECORDED: Final = Path(__file__).parent / "recorded"
NOW: Final = 1795454349.0
"""When the sessions were recorded, about."""
RELEASE: Final = "1.36"
"""Of the server that answered them."""

DISABLED_PLUGINS: Final = frozenset({"ServiceAccount", "TaintNodesByCondition"})
"""What the recorded server was started without."""

KINDS: Final = (
    "accepted",
    "refused",
    "code",
    "reason",
    "message",
    "causes",
    "object",
    "managedFields",
    "table",
    "watch",
    "warnings",
)
"""Of differences, from the worst: what is *accepted* or *refused* is not by the real one."""
SILENT: Final = frozenset({"accepted", "object"})
"""Those after which a client has other objects than it would have, and nobody says so."""

OWN_METADATA: Final = frozenset({"uid", "resourceVersion", "selfLink", "continue"})
TIMES: Final = frozenset({"creationTimestamp", "deletionTimestamp", "time"})
ALLOCATED: Final = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})
AGE = re.compile(r"(\d+d)?(\d+h)?(\d+m)?(\d+s)?|<unknown>")
GENERATED = re.compile(r"\bgn-[a-z0-9]{5}\b")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
VERSION = re.compile(r"(in record \(|, current: |resourceVersion\\?\":\\?\")\d+")
SERVICE_ADDRESS = re.compile(r"\b10\.(0|96)\.\d+\.\d+\b")
"""Of the networks that both servers allocate from."""
SIGNED = re.compile(r"[\w-]{20,}\.[\w-]{20,}\.[\w-]{20,}")
WRITTEN = re.compile(r'"(?:creationTimestamp|time)": "([^"]{20})"')
ADDRESS: Final = ("192.0.2.2", 6443)
"""What the recorded servers said theirs was, but for the port, which each had one of."""
PORTS: Final = frozenset({6443, *range(29600, 29700)})
LONGEST_SESSION: Final = 600
"""Seconds, more than any took."""
OF_MAP = re.compile(r"(abels|annotations|\.hard\[[^]]*\])$")
"""Fields that are of maps: labels and what selects them, annotations, amounts of a quota."""
VENDOR = re.compile(r"service-ca|openshift|ibm")
VENDOR_ROLES: Final = 2
"""Of ClusterRoles from the start, and as many bindings."""
VENDOR_PATHS: Final = "/.well-known"
"""What one of these roles is about."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that is not the recorded one."""

    session: str
    line: int
    """From 1."""
    kind: str
    """One of KINDS."""
    request: Mapping[str, Any]
    expected: Any
    actual: Any

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.request["query"].items())
        return (
            f"{self.session}:{self.line} [{self.kind}] {self.request['method']} "
            f"{self.request['path']}?{query} {self.request.get('contentType') or ''}"
        )


def session(name: str) -> list[dict[str, Any]]:
    """Return the lines of a session."""
    with gzip.open(RECORDED / f"{name}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def names() -> list[str]:
    return sorted(path.name.partition(".")[0] for path in RECORDED.glob("session-*.jsonl.gz"))


class Player:
    """An empty server, and what its versions and identities are called in the recording."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        tokens = Tokens()
        self.store = Store(log_capacity=100_000)
        self.server = ApiServer(
            Registry(
                (each for each in resources(RELEASE) if each.group != "metrics.k8s.io"),
                release=RELEASE,
            ),
            self.store,
            clock=self.clock,
            rng=random.Random(1),
            tokens=tokens,
            admission=partial(standard_admission, disabled=DISABLED_PLUGINS),
            features=default_features(RELEASE),
        )
        headers = {"authorization": f"Bearer {tokens.issue(ADMIN)}", "user-agent": "fuzz"}
        transport = httpx.ASGITransport(app=self.server.app)
        self.http = httpx.AsyncClient(
            transport=transport, base_url="https://cluster", headers=headers
        )
        self._ours: dict[str, str] = {}

    async def start(self) -> None:
        self.server.open()
        await bootstrap(self.server.writes)
        await publish(self.server.writes, *ADDRESS, now=rfc3339(self.clock.now()))

    async def play(self, line: Mapping[str, Any]) -> httpx.Response:
        """Send a recorded request, not before it was recorded."""
        if (ahead := _newest(line["response"]) - self.clock.now()) > 0:
            self.clock.advance(ahead)
        headers = {"accept": line["accept"]} if line.get("accept") else {}
        body = line.get("body")
        if line.get("contentType"):
            headers["content-type"] = line["contentType"]
        query = {key: self._translated(value, key) for key, value in line["query"].items()}
        content = None
        if body is not None:
            content = body if isinstance(body, str) else json.dumps(self._translated(body))
        request = asyncio.ensure_future(
            self.http.request(
                line["method"], line["path"], params=query, headers=headers, content=content
            )
        )
        while not request.done():
            for _ in range(30):
                await asyncio.sleep(0)
            if line.get("watch") and not request.done():
                self.clock.advance(1.0)
                self.store.wake_due(self.clock.monotonic())
        answer = request.result()
        self.clock.advance(0.001)
        if not line.get("watch"):
            self._learn(line["response"], _decoded(answer))
        return answer

    def _translated(self, value: Any, key: str = "") -> Any:
        """Return what a request says at *key* in the words of this server.

        A number is a version only where versions are; a JSON patch says where that is.
        """
        match value:
            case {"path": "/metadata/resourceVersion", "value": str(version)}:
                return {**value, "value": self._ours.get(version, version)}
            case dict():
                return {key: self._translated(child, key) for key, child in value.items()}
            case list():
                return [self._translated(child, key) for child in value]
            case str() if key == "resourceVersion" or not value.isdigit():
                return self._ours.get(value, value)
        return value

    def _learn(self, recorded: Any, actual: Any) -> None:
        """Remember what our versions, identities and continue tokens are called over there."""
        if isinstance(recorded, dict) and isinstance(actual, dict):
            for key, value in recorded.items():
                if key in OWN_METADATA and isinstance(value, str) and value and key in actual:
                    self._ours[value] = actual[key]
                else:
                    self._learn(value, actual.get(key))
        elif isinstance(recorded, list) and isinstance(actual, list):
            for one, other in zip(recorded, actual, strict=False):
                self._learn(one, other)


def _newest(response: Any) -> float:
    """Return when the last object in a recorded answer was made, or written, in unix seconds.

    What is later than any session is not a time of the server.
    """
    times = map(seconds_of, WRITTEN.findall(json.dumps(response)))
    return max((time for time in times if time < NOW + LONGEST_SESSION), default=0)


def _decoded(answer: httpx.Response) -> Any:
    try:
        return msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return {"text": answer.text}


def plain(value: Any, *, inside: str = "") -> Any:
    """Return an answer without what each run decides for itself."""
    match value:
        case dict():
            kept = {}
            for key, child in value.items():
                if key in OWN_METADATA or VENDOR.search(key):
                    continue
                if key in ("items", "rows", "nonResourceRules") and isinstance(child, list):
                    child = [each for each in child if not _is_vendors(each)]
                if key in TIMES and isinstance(child, str):
                    child = "T"
                elif key in ALLOCATED and child not in ("None", ["None"], ""):
                    child = "ALLOCATED"
                kept[key] = plain(child, inside=key)
            if "causes" in kept and kept["causes"][0].get("reason") == "FieldManagerConflict":
                kept["causes"].sort(key=_sorted_json)  # which are in no order
            if value.get("generateName") and "name" in kept:
                kept["name"] = "GENERATED"
            return kept
        case list():
            return [plain(child, inside=inside) for child in value]
        case int() if inside in ("port", "targetPort") and value in PORTS:
            return 6443
        case str():
            if SIGNED.fullmatch(value):
                return "TOKEN"
            if inside == "cells" and AGE.fullmatch(value):
                return "AGE"
            value = SERVICE_ADDRESS.sub("ALLOCATED", value)
            value = TIMESTAMP.sub("T", VERSION.sub(r"\1N", UUID.sub("UID", value)))
            return GENERATED.sub("gn-R", "T" if value == "TIME" else value)
    return value


def _is_vendors(value: Any) -> bool:
    """Tell whether an object, a Table, a row or a rule is there because a vendor's role is."""
    if not isinstance(value, dict):
        return False
    if value.get("rows"):
        return all(map(_is_vendors, value["rows"]))
    if VENDOR_PATHS in (value.get("nonResourceURLs") or ()):
        return True
    metadata = value.get("metadata") or (value.get("object") or {}).get("metadata") or {}
    return bool(VENDOR.search(metadata.get("name") or ""))


def _ours(line: Mapping[str, Any]) -> Any:
    """Return the recorded answer, with what remains of a list counted without the vendor's."""
    response = line["response"]
    is_of_roles = line["path"].endswith(("/clusterroles", "/clusterrolebindings"))
    if not is_of_roles or not (response.get("metadata") or {}).get("remainingItemCount"):
        return response
    metadata = dict(response["metadata"])
    metadata["remainingItemCount"] -= VENDOR_ROLES
    return {**response, "metadata": metadata}


def differences(name: str) -> Iterator[Difference]:
    """Play a session from its first line to its last."""

    async def played() -> list[Difference]:
        player = Player()
        await player.start()
        found = []
        for number, line in enumerate(session(name), 1):
            answer = await player.play(line)
            for kind, expected, actual in compared(line, answer):
                found.append(Difference(name, number, kind, line, expected, actual))
        return found

    yield from asyncio.run(played())


def compared(line: Mapping[str, Any], answer: httpx.Response) -> Iterator[tuple[str, Any, Any]]:
    """Say how *answer* differs from the recorded one: the first kind of difference, and warnings.

    Each comes with what was recorded and what is there now.
    """
    if line.get("watch") and line["code"] == answer.status_code == 200:
        if (expected := _events(line["response"]["events"])) != (actual := _watched(answer)):
            yield "watch", expected, actual
        return
    actual = _decoded(answer)
    body = line.get("body")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    prefix = metadata.get("generateName") if isinstance(metadata, dict) else ""
    yield from _first(
        line["code"], _ours(line), answer.status_code, actual, generate_name=prefix or ""
    )
    # Of several in one answer, the recorder lost the codes.
    recorded = ["299" + each.removeprefix("299") for each in line.get("warnings") or []]
    expected_warnings = sorted(plain(recorded))
    if expected_warnings != (warnings := sorted(plain(_warnings(answer)))):
        yield "warnings", expected_warnings, warnings


def _in_any_order(refusal: Any) -> Any:
    """Return a refusal with what it tells of maps in order: in Go they have none."""
    causes = (refusal.get("details") or {}).get("causes") or []
    if not any(OF_MAP.search(cause.get("field", "")) for cause in causes):
        return refusal
    details = {**refusal["details"], "causes": sorted(causes, key=_sorted_json)}
    parts = refusal["message"].removesuffix("]").replace(" is invalid: [", ", ", 1).split(", ")
    return {**refusal, "details": details, "message": sorted(parts)}


def _without_name(refusal: Any, prefix: str) -> Any:
    """Return a refusal without the characters that were drawn for a name."""
    drawn = re.compile(re.escape(prefix) + "[a-z0-9]{5}")
    return json.loads(drawn.sub(f"{prefix}-R", json.dumps(refusal)))


def _first(
    code: int, expected: Any, status: int, actual: Any, *, generate_name: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    expected, actual = plain(expected), plain(actual)
    if code == status == 422:
        expected, actual = _in_any_order(expected), _in_any_order(actual)
        if generate_name:
            expected, actual = (_without_name(each, generate_name) for each in (expected, actual))
    if code != status:
        kind = "accepted" if status < 300 <= code else "refused" if code < 300 <= status else "code"
        yield kind, (code, expected), (status, actual)
    elif not isinstance(expected, dict) or not isinstance(actual, dict):
        if expected != actual:
            yield "message", expected, actual
    elif code >= 300:
        for kind, key in (("reason", "reason"), ("message", "message")):
            if expected.get(key) != actual.get(key):
                yield kind, expected.get(key), actual.get(key)
                return
        if expected != actual:
            yield "causes", expected, actual
    elif expected != actual:
        if expected.get("kind") == "Table":
            yield "table", expected, actual
        elif _unmanaged(expected) != _unmanaged(actual):
            yield "object", _unmanaged(expected), _unmanaged(actual)
        else:
            yield "managedFields", _managed(expected), _managed(actual)


def _managed(value: Any) -> list[Any]:
    if "items" in value:
        return [item["metadata"].get("managedFields") for item in value["items"]]
    found: list[Any] = value["metadata"].get("managedFields")
    return found


def _unmanaged(value: Any) -> Any:
    match value:
        case dict():
            kept = ((k, v) for k, v in value.items() if k != "managedFields")
            return {key: _unmanaged(child) for key, child in kept}
        case list():
            return [_unmanaged(child) for child in value]
    return value


def _warnings(answer: httpx.Response) -> list[str]:
    return answer.headers.get_list("warning")


def _events(events: list[Any]) -> list[Any]:
    kept = ([kind, plain(obj)] for kind, obj in events if not _is_vendors(obj))
    return sorted(kept, key=_sorted_json)


def _sorted_json(event: Any) -> str:
    return json.dumps(event, sort_keys=True)


def _watched(answer: httpx.Response) -> list[Any]:
    events = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    return _events([[event["type"], event["object"]] for event in events])


def paths(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Say where two answers differ, a line for each place."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys((*expected, *actual)):
            here = f"{path}.{key}"
            if key not in actual:
                yield f"{here}: missing, expected {_short(expected[key])}"
            elif key not in expected:
                yield f"{here}: not expected: {_short(actual[key])}"
            else:
                yield from paths(expected[key], actual[key], here)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from paths(one, other, f"{path}[{index}]")
    elif expected != actual or type(expected) is not type(actual):
        yield f"{path}: {_short(actual)}, expected {_short(expected)}"


def _short(value: Any) -> str:
    return f"{json.dumps(value):.1500}"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", action="append", choices=names())
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--body", action="store_true", help="print the bodies of requests, too")
    asked = parser.parse_args()
    count: Counter[str] = Counter()
    requests = 0
    for name in asked.session or names():
        requests += len(session(name))
        for difference in differences(name):
            count[difference.kind] += 1
            if asked.kind and difference.kind not in asked.kind:
                continue
            say(difference)
            if asked.body:
                say("    body", json.dumps(difference.request.get("body")))
            for place in paths(difference.expected, difference.actual):
                say("   ", place)
    say(f"{requests} requests, {count.total()} differences:", dict(count.most_common()))


if __name__ == "__main__":
    main()
