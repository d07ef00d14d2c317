"""Requests to the API that are hostile by their form: bodies, patches and queries.

The objects that are hostile by what they say, and the table of all, are in ``hostile_objects``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec

from tests.hostile_text import C1, CLEARS, MARKUP

Object = dict[str, Any]

NAMESPACE: Final = "guest"
"""That of the user."""
DEVICE_CLASS: Final = "gpu"
CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
APPS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}"
POLICY: Final = f"/apis/policy/v1/namespaces/{NAMESPACE}"
DEVICES: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}"
RBAC: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
EVENTS: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}"

JSON: Final = "application/json"
YAML: Final = "application/yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

HUGE: Final = "9" * 5_000
DEEP: Final = 984
"""Within what the JSON decoder takes, beyond what other steps could recurse into."""


class Want(Enum):
    """What must come of the requests."""

    REFUSED = "4xx"
    """At least one is refused."""
    ACCEPTED = "2xx"
    """All are accepted."""
    EITHER = "2xx or 4xx"
    """API servers differ, by version or in what they check; harmless it must be in any case."""


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: Any = None
    """An object, or bytes to send as they are."""
    method: str = "POST"
    content_type: str = JSON

    def content(self) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return msgspec.json.encode(self.body)


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to do harm; *make* returns the requests."""

    name: str
    make: Callable[[], Sequence[Request]]
    want: Want = Want.ACCEPTED
    why: str = ""
    """Of what is refused: a part of the reason."""
    undo: Sequence[Request] = field(default=())
    """What ends it, where it would go on for as long as the cluster runs."""


def pod(name: str, *, container: Mapping[str, Any] = {}, **spec: Any) -> Object:
    """A pod that would fit on a node if *spec* lets it; *container* goes into its first one."""
    first = {"name": "c", "image": "i", **container}
    return {"metadata": {"name": name}, "spec": {"containers": [first], **spec}}


def creates(*objects: Object, path: str = f"{CORE}/pods") -> Callable[[], Sequence[Request]]:
    return lambda: [Request(path, obj) for obj in objects]


def exactly(name: str = "r", *, cel: str = "", count: int = 1, **more: Any) -> Object:
    """A request for devices, that *cel* holds for."""
    selectors = [{"cel": {"expression": cel}}] if cel else []
    asked = {"deviceClassName": DEVICE_CLASS, "count": count, "selectors": selectors, **more}
    return {"name": name, "exactly": asked}


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def raw(text: str) -> Callable[[], Sequence[Request]]:
    """Return what sends a pod's JSON as it is."""
    return lambda: [Request(f"{CORE}/pods", text.encode("utf-8", "surrogatepass"))]


def yaml(text: str) -> Callable[[], Sequence[Request]]:
    return lambda: [Request(f"{CORE}/configmaps", text.encode(), content_type=YAML)]


def gets(query: str) -> Callable[[], Sequence[Request]]:
    return lambda: [Request(f"{CORE}/pods?{query}", method="GET")]


def patched(
    name: str, patch: Any, *, content_type: str = JSON_PATCH, path: str = ""
) -> Callable[[], Sequence[Request]]:
    """Return what makes a pod and patches it."""
    return lambda: [
        Request(f"{CORE}/pods", pod(name, schedulerName="nobody")),
        Request(f"{CORE}/pods/{name}{path}", patch, method="PATCH", content_type=content_type),
    ]


def doubling() -> list[Object]:
    """Each copy puts all there is into itself once more: 2 to the 12th of it in the end."""
    start = {"op": "add", "path": "/metadata/annotations", "value": {"a0": "x" * 1000}}
    copies = [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/labels{i}"}
        for i in range(8)
    ]
    nested_copies = [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/copy{i}"} for i in range(12)
    ]
    return [start, *copies, *nested_copies]


def alias_bomb(levels: int = 7) -> str:
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*x{level - 1}"] * 9)
        lines.append(f"x{level}: &x{level} [{aliases}]")
    bomb = "\n".join(f"  {line}" for line in lines)
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\nbomb:\n{bomb}\n"


BODIES: Final = (
    *(
        Attack(
            f"nested {depth} deep in an unknown field",
            raw(
                f'{{"metadata": {{"name": "deep-{depth}"}}, "spec": {{"containers": [{{"name": "c",'
                f' "image": "i"}}], "unknown": {nested(depth).decode()}}}}}'
            ),
            Want.REFUSED,
        )
        for depth in (400, 900, 960, 980, DEEP, 990)
    ),
    Attack(
        "nested in managedFields",
        raw(
            '{"metadata": {"name": "managed", "managedFields": [{"manager": "m", "operation":'
            f' "Update", "fieldsType": "FieldsV1", "fieldsV1": {nested(DEEP).decode()}}}]}},'
            ' "spec": {"containers": [{"name": "c", "image": "i"}]}}'
        ),
        Want.REFUSED,
    ),
    Attack(
        "nested in parameters of a driver",
        lambda: [
            Request(
                f"{DEVICES}/resourceclaims",
                b'{"metadata": {"name": "opaque"}, "spec": {"devices": {"requests": ['
                + msgspec.json.encode(exactly())
                + b'], "config": [{"opaque": {"driver": "gpu.example.com", "parameters": '
                + nested(DEEP)
                + b"}}]}}}",
            )
        ],
        Want.REFUSED,
    ),
    Attack("nested a hundred thousand deep", raw('{"metadata":' + "[" * 100_000), Want.REFUSED),
    Attack("YAML aliases", yaml(alias_bomb()), Want.REFUSED),
    Attack("YAML nested", yaml("a: " + "[" * 5_000 + "]" * 5_000), Want.REFUSED),
    Attack(
        "YAML that is its own part",
        yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: self}\ndata: &d {a: *d}\n"),
        Want.REFUSED,
    ),
    Attack("YAML with a number of 5,000 digits", yaml(f"kind: ConfigMap\na: {HUGE}"), Want.REFUSED),
    Attack("YAML in base 60", yaml(f"kind: ConfigMap\na: 1{':59' * 20_000}"), Want.REFUSED),
    Attack("JSON with a number of 5,000 digits",
           raw(f'{{"metadata": {{"name": "n"}}, "spec": {{"priority": {HUGE}}}}}'), Want.REFUSED),
    Attack("JSON with an absurd exponent",
           raw('{"metadata": {"name": "n"}, "spec": {"priority": 1e999999999}}'), Want.REFUSED),
    Attack("not UTF-8", lambda: [Request(f"{CORE}/pods", b'{"metadata": {"name": "\xff\xfe"}}')],
           Want.REFUSED),
    Attack("half a character", raw('{"metadata": {"name": "h", "annotations": {"a": "\\ud800"}}}'),
           Want.REFUSED),
    Attack("a list for an object", raw("[" + "{}," * 50_000 + "{}]"), Want.REFUSED),
    Attack("protobuf of rubbish",
           lambda: [Request(f"{CORE}/pods", b"k8s\x00" + b"\x0a\xff\xff\xff\xff\x0f" * 10_000,
                            content_type="application/vnd.kubernetes.protobuf")],
           Want.REFUSED),
    Attack("protobuf in protobuf",
           lambda: [Request(f"{CORE}/pods", b"k8s\x00" + b"\x12\x80\x01" * 20_000,
                            content_type="application/vnd.kubernetes.protobuf")],
           Want.REFUSED),
    Attack("a body of 8 MB", raw('{"metadata": {"name": "' + "x" * 8_000_000), Want.REFUSED),
    Attack("a newline in the name of a field",
           lambda: [Request(f"{CORE}/configmaps?fieldValidation=Warn",
                            {"metadata": {"name": "newline"}, "a\r\nX-Forged: 1": C1})],
           Want.EITHER),
    Attack("thousands of unknown fields",
           lambda: [Request(f"{CORE}/configmaps?fieldValidation=Warn",
                            {"metadata": {"name": "unknown"},
                             **{f"unknown{i}": i for i in range(20_000)}})],
           Want.EITHER),
)  # fmt: skip
PATCHES: Final = (
    Attack("JSON patch: copies that double", patched("doubling", doubling()), Want.REFUSED),
    Attack(
        "JSON patch: copies into itself",
        patched(
            "copies",
            [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 100_000}}]
            + [
                {
                    "op": "copy",
                    "from": "/metadata/annotations/a",
                    "path": f"/metadata/annotations/b{i}",
                }
                for i in range(100)
            ],
        ),
        Want.REFUSED,
    ),
    Attack(
        "JSON patch: 20,000 tests",
        patched("tests", [{"op": "test", "path": "/kind", "value": "Pod"}] * 20_000),
        Want.REFUSED,
    ),
    Attack(
        "JSON patch: an index of 5,000 digits",
        patched("index", [{"op": "remove", "path": f"/spec/containers/{HUGE}"}]),
        Want.REFUSED,
    ),
    Attack(
        "JSON patch: a path of 100,000 parts",
        patched("path", [{"op": "add", "path": "/a" * 100_000, "value": 1}]),
        Want.REFUSED,
    ),
    Attack(
        "merge patch: nested",
        patched("merge", b'{"spec":' + nested(DEEP) + b"}", content_type=MERGE_PATCH),
        Want.REFUSED,
    ),
    Attack(
        "strategic merge patch: directives and nesting",
        patched(
            "strategic",
            b'{"spec": {"$setElementOrder/containers": [{"name": "\\u001b"}], "$patch": "merge",'
            b' "containers": [{"name": "c", "$patch": "delete", "x": ' + nested(DEEP) + b"}]}}",
            content_type=STRATEGIC,
        ),
        Want.REFUSED,
    ),
    Attack(
        "a status with escapes",
        patched(
            "status",
            {
                "status": {
                    "nominatedNodeName": CLEARS,
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "message": CLEARS + MARKUP}
                    ],
                }
            },
            content_type=MERGE_PATCH,
            path="/status",
        ),
        Want.EITHER,
    ),
)
QUERIES: Final = (
    Attack("a label selector of 16,000 pluses",
           gets(f"labelSelector=a{'+' * 16_000}b"), Want.REFUSED),
    Attack("a label selector of 16,000 blanks and a bang", gets(f"labelSelector={'+' * 16_000}!"),
           Want.REFUSED),
    Attack("a label selector of 3,000 parts",
           gets("labelSelector=" + ",".join(f"k{i}!=v" for i in range(3_000))), Want.EITHER),
    Attack("a field selector of commas", gets(f"fieldSelector={',' * 16_000}="), Want.REFUSED),
    Attack("limit of 5,000 digits", gets(f"limit={HUGE}"), Want.REFUSED),
    Attack("resourceVersion of 5,000 digits", gets(f"resourceVersion={HUGE}"), Want.REFUSED),
    Attack("a watch from the far future",
           gets(f"watch=1&timeoutSeconds=1&resourceVersion={2**64 - 1}"), Want.EITHER),
    Attack("a continue token of rubbish", gets(f"continue={'A' * 16_000}"), Want.REFUSED),
    Attack("a query of control characters", gets("labelSelector=%1b%5b2J%0a%00"), Want.REFUSED),
)  # fmt: skip
