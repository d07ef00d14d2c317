"""The extender API v1 on the wire (spec §9.2).

The Go types have no JSON tags: their fields go by their Go names and what is missing is ``null``.
Pods and nodes inside are spelled as everywhere else. Answers are read as Go's encoding/json does:
names in any case, unknown fields skipped, ``null`` the same as nothing.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Metadata


class _NodeList(msgspec.Struct):
    items: list[_Node]


_decode_node_list = msgspec.json.Decoder(_NodeList).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
_decode_objects = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None] | None).decode


class _GoStruct(msgspec.Struct, frozen=True, rename="pascal"):
    """A request of ours; nothing is left out."""


class NodeList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]
    metadata: dict[str, str] = {}


class Args(_GoStruct, frozen=True):
    """``ExtenderArgs``, of filter and prioritize: ``nodes`` or ``node_names``."""

    pod: msgspec.Raw
    nodes: NodeList | None
    node_names: list[str] | None


class Victims(_GoStruct, frozen=True):
    pods: list[msgspec.Raw]
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class MetaPod(_GoStruct, frozen=True):
    uid: str = msgspec.field(name="UID")


class MetaVictims(_GoStruct, frozen=True):
    pods: list[MetaPod]
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations")


class PreemptionArgs(_GoStruct, frozen=True):
    """``ExtenderPreemptionArgs``: victims by node, in one form or the other."""

    pod: msgspec.Raw
    node_name_to_victims: dict[str, Victims] | None
    node_name_to_meta_victims: dict[str, MetaVictims] | None


class BindingArgs(_GoStruct, frozen=True):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class FilterResult(NamedTuple):
    """``ExtenderFilterResult``; of ``Nodes`` only the names, and None where there is ``null``."""

    nodes: list[str] | None
    node_names: list[str] | None
    failed_nodes: dict[str, str]
    failed_and_unresolvable_nodes: dict[str, str]
    error: str


# Reading raises msgspec.DecodeError, whose text has no data in it but the path of the trouble.


def read_filter_result(body: bytes) -> FilterResult:
    said = _fields(_decode_object(body))
    nodes = said.get("nodes")
    return FilterResult(
        nodes=None if nodes is None else _node_names(nodes),
        node_names=_value(said, "nodenames", list[str] | None, None),
        failed_nodes=_value(said, "failednodes", dict[str, str] | None, {}),
        failed_and_unresolvable_nodes=_value(
            said, "failedandunresolvablenodes", dict[str, str] | None, {}
        ),
        error=_value(said, "error", str | None, ""),
    )


def read_priorities(body: bytes) -> list[tuple[str, int]]:
    """Read a ``HostPriorityList``."""
    said = [_fields(entry) for entry in _decode_objects(body) or ()]
    return [
        (_value(entry, "host", str | None, ""), _value(entry, "score", Int64 | None, 0))
        for entry in said
    ]


def read_preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """Read an ``ExtenderPreemptionResult``: the victims by node, none where there is ``null``."""
    said = _fields(_decode_object(body)).get("nodenametometavictims")
    if said is None:
        return {}
    by_node = msgspec.json.decode(said, type=dict[str, dict[str, msgspec.Raw] | None])
    return {node: _meta_victims(_fields(victims)) for node, victims in by_node.items()}


def read_binding_result(body: bytes) -> str:
    """Read an ``ExtenderBindingResult``: its error, empty if there is none."""
    return _value(_fields(_decode_object(body)), "error", str | None, "")


def _meta_victims(said: Mapping[str, msgspec.Raw]) -> MetaVictims:
    raw = said.get("pods")
    pods = [] if raw is None else _decode_objects(raw) or []
    return MetaVictims(
        [MetaPod(_value(_fields(pod), "uid", str | None, "")) for pod in pods],
        _value(said, "numpdbviolations", Int64 | None, 0),
    )


def _node_names(node_list: msgspec.Raw) -> list[str]:
    """Return the names in a NodeList: at once if it is spelled as usual, for there may be many."""
    try:
        return [node.metadata.name for node in _decode_node_list(node_list).items]
    except msgspec.ValidationError:
        return _node_names_in_any_case(node_list)


def _node_names_in_any_case(node_list: msgspec.Raw) -> list[str]:
    raw = _fields(_decode_object(node_list)).get("items")
    items = [] if raw is None else _decode_objects(raw) or []
    names = []
    for item in items:
        raw = _fields(item).get("metadata")
        metadata = {} if raw is None else _fields(_decode_object(raw))
        names.append(_value(metadata, "name", str | None, ""))
    return names


def _fields(obj: Mapping[str, msgspec.Raw] | None) -> dict[str, msgspec.Raw]:
    """Return the fields that are not ``null``, by name in lower case."""
    if obj is None:
        return {}
    return {name.lower(): raw for name, raw in obj.items() if bytes(memoryview(raw)[:5]) != b"null"}


def _value(fields: Mapping[str, msgspec.Raw], name: str, kind: Any, default: T) -> T:
    raw = fields.get(name)
    if raw is None:
        return default
    value: T = msgspec.json.decode(raw, type=kind)
    return value
