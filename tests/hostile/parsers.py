"""The table: every parser of strangers' text, what it reads, and what should hurt it."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from berth.cli.flags import kube_scheduler
from berth.cluster.errors import StatusError
from berth.cluster.http.field_selectors import parse_field_selector
from berth.cluster.http.negotiation import media_type, representation
from berth.cluster.http.paths import Paths
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.options import flag
from berth.cluster.strategies import quantities, syntax
from berth.cluster.writes import patch
from berth.kube.cel import semver
from berth.kube.informer.identity import is_older
from berth.kube.informer.watch_event import decode_list, decode_watch_event
from berth.kube.objects import names, nesting
from berth.kube.objects.node import Node
from berth.kube.objects.partial import read_partly
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import parse
from berth.kube.objects.selector_text import parse_label_selector
from berth.kube.objects.selectors import parse_int64
from berth.runtime import log, redaction
from berth.runtime.duration import Duration
from berth.scheduler.config import decode
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import effective_gates
from berth.scheduler.config.plugin_references import references
from berth.service.server.scheduler.debug import pagination

Text = Callable[[int], Any]
"""Makes a text of about so many characters."""


@dataclass(frozen=True)
class Parser:
    """One parser, and texts for it."""

    name: str
    read: Callable[[Any], object]
    ordinary: tuple[Any, ...]
    """Texts that it accepts."""
    growing: tuple[Text, ...]
    """Texts as long as one likes, accepted or not."""
    refuses: tuple[type[BaseException], ...] = ()
    """What it raises for what it cannot read; nothing else."""


def over_and_over(part: str, *, head: str = "", tail: str = "") -> Text:
    """Return a text that repeats *part*."""
    return lambda length: head + part * max(1, length // len(part)) + tail


def _in_bytes(text: Text) -> Text:
    return lambda length: text(length).encode()


def _nested(head: str, tail: str = "") -> Text:
    return lambda length: (head * (length // len(head)) + tail * (length // len(head))).encode()


def _flags(text: str) -> object:
    with contextlib.redirect_stderr(io.StringIO()):
        return kube_scheduler.parse(_FLAG_PARSER, text.split("\n"))


_FLAG_PARSER: Final = kube_scheduler.make_parser("berth run")
_PATHS: Final = Paths(Registry(RESOURCES))
_DOCUMENT: Final = {"a": {"b/c": [1, 2]}}
_REPEATED: Final = tuple(
    map(over_and_over, ("a", "1", " ", "-", ".", "/", "=", ",", '"', "\\", "\0"))
)
"""What any parser of short texts may be given."""


def _json_patch(path: str) -> object:
    return patch.json_patch(_DOCUMENT, [{"op": "add", "path": path, "value": 1}])


def _merge_patch(text: bytes) -> object:
    return patch.merge_patch(_DOCUMENT, msgspec.json.decode(nesting.pruned(text)))


def _configuration(text: str | bytes) -> object:
    document = decode.document(text, source="x")
    return list(references(document.value))


def _yaml_aliases(length: int) -> str:
    """Nine times nine times nine..."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    for number in range(1, max(2, length // 60)):
        again = ", ".join([f"*l{number - 1}"] * 9)
        lines.append(f"l{number}: &l{number} [{again}]")
    return "\n".join(lines)


PARSERS: Final = (
    Parser(
        "label selectors",
        parse_label_selector,
        ("a=b,c!=d,e in (x,y),f notin (z),!g,h,i>5", ""),
        (
            *_REPEATED,
            over_and_over("+"),
            over_and_over("a=b,"),
            over_and_over("a,"),
            over_and_over("!"),
            over_and_over(" ", head="a ", tail="x"),
            over_and_over("v,", head="a in (", tail=")"),
            over_and_over("("),
        ),
        (ValueError,),
    ),
    Parser(
        "field selectors",
        parse_field_selector,
        ("metadata.name=a", r"metadata.name!=a\,b", ""),
        (
            *_REPEATED,
            over_and_over("metadata.name=a,"),
            over_and_over(r"\,", head="metadata.name="),
            over_and_over("!=", head="metadata.name"),
        ),
        (ValueError,),
    ),
    Parser(
        "quantities",
        parse,
        ("500m", "1.5", "2Gi", "1e3", 3, 0.5),
        (*_REPEATED, over_and_over("9", head="1e"), over_and_over("0", head="0.", tail="1")),
        (ValueError,),
    ),
    Parser(
        "quantities of the API",
        lambda text: [*quantities.amounts({"cpu": str(text), str(text): "1"}, "x")],
        ("500m",),
        _REPEATED,
    ),
    Parser(
        "durations",
        Duration.parse,
        ("1h2m3.5s", "0", "-1.5ms"),
        (*_REPEATED, over_and_over("1s"), over_and_over("9", head="0.", tail="h")),
        (ValueError,),
    ),
    Parser(
        "versions",
        semver.parse_version,
        ("1.2.3", "1.0.0-rc.1+build"),
        (
            *_REPEATED,
            over_and_over("1.", head="1.0.0-", tail="1"),
            over_and_over("a", head="1.0.0-", tail="!"),
            over_and_over("1", head="1.0."),
            over_and_over("-.", head="1.0.0+"),
        ),
        (ValueError,),
    ),
    Parser(
        "nearly versions",
        semver.normalized,
        ("v1.2",),
        (*_REPEATED, over_and_over("-", head="1.2")),
    ),
    Parser(
        "names",
        lambda text: (names.is_qualified_name(text), names.is_label_value(text)),
        ("example.com/name",),
        (*_REPEATED, over_and_over("a.", tail="/a"), over_and_over("a-")),
    ),
    Parser(
        "names of the API",
        lambda text: [
            rule(text)
            for rule in (
                syntax.dns1123_label,
                syntax.dns1123_subdomain,
                syntax.dns1035_label,
                syntax.label_value,
                syntax.qualified_name,
                syntax.path_segment,
                syntax.port_name,
            )
        ],
        ("name",),
        (*_REPEATED, over_and_over("a."), over_and_over("a-", tail="!")),
    ),
    Parser("numbers", parse_int64, ("-7", "x"), _REPEATED),
    Parser(
        "resource versions",
        lambda text: (is_older(text, "5"), is_older("5", text)),
        ("7",),
        _REPEATED,
    ),
    Parser(
        "the configuration",
        _configuration,
        ("profiles: [{plugins: {filter: {enabled: [{name: a.b:C}]}}}]", b'{"a": [1]}', ""),
        (
            over_and_over("a: 1\n"),
            over_and_over("- "),
            over_and_over("[1],", head="a: [", tail="]"),
            over_and_over(" "),
            over_and_over("x"),
            over_and_over('"a":1,', head="{", tail='"b":1}'),
            over_and_over("<<: {a: 1}\n"),
            _yaml_aliases,
            lambda length: f'{{"{"k" * (length // 2)}": [{"1," * (length // 4)}1]}}',
            lambda length: f"{'k' * min(length // 2, 900)}: [{'1,' * (length // 4)}1]",
        ),
        (ConfigError,),
    ),
    Parser(
        "flags",
        _flags,
        ("--v=2\n--leader-elect=false\n--vmodule=a=1",),
        (
            over_and_over("a=1,", head="--vmodule="),
            over_and_over("1", head="--vmodule=a="),
            over_and_over("A=true,", head="--feature-gates="),
            over_and_over("1s", head="--leader-elect-lease-duration="),
            over_and_over("1", head="--v="),
            over_and_over("x"),
        ),
        (SystemExit,),
    ),
    Parser(
        "feature gates",
        lambda text: effective_gates({text: True}),
        ("ComponentFlagz",),
        _REPEATED,
        (ConfigError,),
    ),
    Parser(
        "levels by module",
        lambda text: log.modules([text]),
        ("a/*=2",),
        (*_REPEATED, over_and_over("1", head="a=")),
        (ValueError,),
    ),
    Parser(
        "lines of the log",
        redaction.redacted,
        ("authorization: Bearer abcdefghijkl",),
        (
            *_REPEATED,
            over_and_over("token "),
            over_and_over("eyJaaaaaaaa."),
            over_and_over("://a:b"),
            over_and_over(" ", head="bearer", tail="!"),
            over_and_over("-----BEGIN PRIVATE KEY"),
        ),
    ),
    Parser(
        "paths of the API",
        _PATHS.target,
        ("/api/v1/namespaces/a/pods/b",),
        (*_REPEATED, over_and_over("/a", head="/api/v1"), over_and_over("//")),
        (StatusError,),
    ),
    Parser(
        "paths of JSON patches",
        _json_patch,
        ("/a/b~1c/0", "/x"),
        (over_and_over("/a"), over_and_over("~"), over_and_over("~01", head="/a/")),
        (patch.PatchError, patch.PatchMismatchError),
    ),
    Parser(
        "merge patches",
        _merge_patch,
        (b'{"a": null}',),
        (_nested('{"a":', "1}"), _in_bytes(over_and_over('"a":1,', head="{", tail='"b":{}}'))),
        (msgspec.DecodeError, UnicodeDecodeError),
    ),
    Parser(
        "Accept",
        representation,
        ("application/json;as=Table;v=v1;g=meta.k8s.io",),
        (*_REPEATED, over_and_over(";a=b"), over_and_over("a;b,")),
        (StatusError,),
    ),
    Parser("Content-Type", media_type, ("application/json",), (*_REPEATED, over_and_over(";"))),
    Parser(
        "booleans of queries",
        lambda text: flag({"watch": text}, "watch"),
        ("true",),
        _REPEATED,
        (StatusError,),
    ),
    Parser(
        "tokens of pages",
        lambda text: (pagination.decode_names(text), pagination.decode_number("NQ==")),
        (pagination.encode(("a", "b")), ""),
        _REPEATED,
        (pagination.PageError,),
    ),
    Parser(
        "lines of watches",
        decode_watch_event,
        (b'{"type":"ADDED","object":{"a":[1]}}',),
        (
            lambda length: b'{"type":"ADDED","object":%s}' % _nested("[", "]")(length // 2),
            _nested("["),
            _nested('{"object":', "}"),
            _in_bytes(over_and_over('\\"', head='{"type":"', tail='"}')),
        ),
        (msgspec.DecodeError,),
    ),
    Parser(
        "lists",
        decode_list,
        (b'{"metadata":{},"items":[{"a":1}]}',),
        (
            lambda length: b'{"items":[%s]}' % _nested("[", "]")(length // 2),
            _in_bytes(over_and_over('{"a":[]},', head='{"items":[', tail="{}]}")),
            _nested('{"items":[', "]}"),
        ),
        (msgspec.DecodeError,),
    ),
    Parser(
        "pods in part",
        lambda data: read_partly(data, Pod),
        (
            b'{"metadata":{"name":"a"},"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}',
        ),
        (
            _nested("["),
            _nested('{"spec":', "1}"),
            _in_bytes(over_and_over("7,", head='{"spec":{"containers":[', tail="7]}}")),
            _in_bytes(over_and_over('"k":{},', head='{"metadata":{"labels":{', tail='"a":1}}}')),
        ),
        (msgspec.DecodeError, UnicodeDecodeError),
    ),
    Parser(
        "nodes in part",
        lambda data: read_partly(data, Node, Node()),
        (b'{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":[]}}}',),
        (_in_bytes(over_and_over('"k":"x",', head='{"status":{"capacity":{', tail='"a":1}}}')),),
        (msgspec.DecodeError, UnicodeDecodeError),
    ),
)
