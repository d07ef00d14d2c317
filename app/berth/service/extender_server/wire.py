"""Questions and answers of the extender API v1, as the one who is asked (spec §9.2).

Questions are read as Go's encoding/json does: names in any case, unknown fields skipped, ``null``
the same as nothing. Answers are spelled as the Go types are, and nothing is left out. Nothing in
them is looked at that is not needed: thousands of nodes may be in one request.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from berth.kube.objects.names import MAX_SUBDOMAIN, is_subdomain
from berth.kube.objects.pod import Pod
from berth.runtime.errors import UNREADABLE
from berth.scheduler.extender.wire import MetaVictims

T = TypeVar("T")

encode = msgspec.json.Encoder().encode

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode

LARGEST_POD: Final = 3 * 2**20
"""Bytes; no API server takes more in one request."""
_NULL = b"null"
_LONGEST_ENTRY: Final = MAX_SUBDOMAIN + 16
"""Bytes of a name in an array, with quotes, a comma and some space."""


class ExtenderArgsError(Exception):
    """A question that cannot be read; the message names the field and what is wrong with it."""


class ExtenderArgs(NamedTuple):
    """``ExtenderArgs``: of the two, one is there."""

    pod: Pod
    nodes: list[msgspec.Raw] | None
    """Whole objects, as they were sent."""
    node_names: bytes | None
    """A JSON array, see :func:`read_names`: the same comes again and again."""


class ExtenderPreemptionArgs(NamedTuple):
    """``ExtenderPreemptionArgs``, in either form: the uids of the victims, by node."""

    pod: Pod
    victims: dict[str, list[str]]


class ExtenderBindingArgs(NamedTuple):
    """``ExtenderBindingArgs``."""

    namespace: str
    name: str
    uid: str
    node: str


class _GoStruct(msgspec.Struct, frozen=True, rename="pascal", gc=False):
    """Spelled as Go does where there are no JSON tags."""


class NodeList(msgspec.Struct, frozen=True, gc=False):
    items: Sequence[msgspec.Raw]
    metadata: dict[str, str] = {}


class ExtenderFilterResult(_GoStruct, frozen=True, gc=False):
    """``ExtenderFilterResult``: nodes in the form of the args."""

    nodes: NodeList | None = None
    node_names: msgspec.Raw | None = None
    failed_nodes: dict[str, str] = {}
    """Node to reason; evicting pods may help."""
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(_GoStruct, frozen=True, gc=False):
    host: str
    score: int


class ExtenderPreemptionResult(_GoStruct, frozen=True, gc=False):
    node_name_to_meta_victims: dict[str, MetaVictims]


class ExtenderBindingResult(_GoStruct, frozen=True, gc=False):
    error: str = ""


def read_args(body: bytes) -> ExtenderArgs:
    """Read what filter and prioritize are asked. Raises ExtenderArgsError."""
    said = _fields("body", body)
    nodes, names = said.get("nodes"), said.get("nodenames")
    if nodes is None and names is None:
        raise ExtenderArgsError("neither Nodes nor NodeNames is given")
    return ExtenderArgs(
        _pod(said),
        None if nodes is None else _items(nodes),
        None if names is None else bytes(names),
    )


def read_names(names: bytes, *, most: int) -> list[str]:
    """Read the node names of a question, of which there may be *most*. Raises ExtenderArgsError."""
    if len(names) > most * _LONGEST_ENTRY or names.count(b",") >= most:
        raise ExtenderArgsError(f"NodeNames: more than {most} nodes")
    return _value("NodeNames", names, list[str])


def read_preemption_args(body: bytes) -> ExtenderPreemptionArgs:
    """Read what preempt is asked. Raises ExtenderArgsError."""
    said = _fields("body", body)
    for name in ("NodeNameToMetaVictims", "NodeNameToVictims"):
        raw = said.get(name.lower())
        if raw is not None:
            of_node = _value(name, raw, dict[str, msgspec.Raw])
            victims = {
                node: _uids(f"{name}[{node!r:.100}]", victims) for node, victims in of_node.items()
            }
            return ExtenderPreemptionArgs(_pod(said), victims)
    raise ExtenderArgsError("neither NodeNameToVictims nor NodeNameToMetaVictims is given")


def read_binding_args(body: bytes) -> ExtenderBindingArgs:
    """Read what bind is asked; every field must be there. Raises ExtenderArgsError."""
    said = _fields("body", body)
    values = []
    for name in ("PodNamespace", "PodName", "PodUID", "Node"):
        value = _value(name, said[name.lower()], str) if name.lower() in said else ""
        if not value:
            raise ExtenderArgsError(f"{name} is missing")
        if name != "PodUID" and not is_subdomain(value):  # it becomes a part of a path
            raise ExtenderArgsError(f"{name}: {value!r:.100}: not a name")
        values.append(value)
    return ExtenderBindingArgs(*values)


def _pod(said: Mapping[str, msgspec.Raw]) -> Pod:
    if "pod" not in said:
        raise ExtenderArgsError("Pod is missing")
    if len(memoryview(said["pod"])) > LARGEST_POD:
        raise ExtenderArgsError(f"Pod: larger than {LARGEST_POD} bytes")
    pod = _value("Pod", said["pod"], Pod)
    if not pod.metadata.name:
        raise ExtenderArgsError("Pod.metadata.name is missing")
    return pod


def _items(nodes: msgspec.Raw) -> list[msgspec.Raw]:
    items = _fields("Nodes", nodes).get("items")
    return [] if items is None else _value("Nodes.items", items, list[msgspec.Raw])


def _uids(where: str, victims: msgspec.Raw) -> list[str]:
    """Return the uids of ``Victims`` (whole pods) or ``MetaVictims``."""
    pods = _fields(where, victims).get("pods")
    if pods is None:
        return []
    where = f"{where}.Pods"
    uids = []
    for i, raw in enumerate(_value(where, pods, list[msgspec.Raw])):
        pod = _fields(f"{where}[{i}]", raw)
        if "metadata" in pod:
            pod = _fields(f"{where}[{i}].metadata", pod["metadata"])
        if "uid" not in pod:
            raise ExtenderArgsError(f"{where}[{i}] has no uid")
        uids.append(_value(f"{where}[{i}].uid", pod["uid"], str))
    return uids


def _fields(where: str, raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the fields of an object that are not ``null``, by name in lower case."""
    try:
        said = _decode_object(raw) or {}
    except UNREADABLE as exc:
        raise ExtenderArgsError(f"{where}: {exc}") from exc
    return {name.lower(): value for name, value in said.items() if memoryview(value)[:4] != _NULL}


def _value(where: str, raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        value: T = msgspec.json.decode(raw, type=kind)
    except UNREADABLE as exc:
        raise ExtenderArgsError(f"{where}: {exc}") from exc
    return value
