"""How answers are read: as Go's encoding/json reads them."""

from typing import Any

import msgspec
import pytest

from berth.scheduler.extender.wire import (
    FilterResult,
    MetaPod,
    MetaVictims,
    read_binding_result,
    read_filter_result,
    read_preemption_result,
    read_priorities,
)

NOTHING = FilterResult(None, None, {}, {}, "")


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"{}", NOTHING, id="nothing said"),
        pytest.param(b"null", NOTHING, id="not even an object"),
        pytest.param(
            b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"Error":null}',
            NOTHING,
            id="null is nothing",
        ),
        pytest.param(
            b'{"NodeNames":["a"],"FailedNodes":{"b":"x"},"FailedAndUnresolvableNodes":{"c":"y"}}',
            FilterResult(None, ["a"], {"b": "x"}, {"c": "y"}, ""),
            id="names",
        ),
        pytest.param(b'{"NodeNames":[]}', NOTHING._replace(node_names=[]), id="no name is left"),
        pytest.param(
            b'{"nodenames":["a"],"FAILEDNODES":{"B":"x"},"error":"e"}',
            FilterResult(None, ["a"], {"B": "x"}, {}, "e"),
            id="fields in any case, keys as they are",
        ),
        pytest.param(b'{"Extra":{"NodeNames":1}}', NOTHING, id="unknown fields"),
        pytest.param(
            b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"},"spec":{"x":1}}]}}',
            NOTHING._replace(nodes=["a"]),
            id="whole nodes",
        ),
        pytest.param(
            b'{"nodes":{"Items":[{"Metadata":{"NAME":"a"}},null,{}]}}',
            NOTHING._replace(nodes=["a", "", ""]),
            id="whole nodes in any case, or without a name",
        ),
        pytest.param(b'{"Nodes":{"items":null}}', NOTHING._replace(nodes=[]), id="no node is left"),
    ],
)
def test_filter_result(body: bytes, want: FilterResult) -> None:
    assert read_filter_result(body) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"[]", [], id="empty"),
        pytest.param(b"null", [], id="null"),
        pytest.param(b'[{"Host":"a","Score":3},{"Host":"b"}]', [("a", 3), ("b", 0)], id="scores"),
        pytest.param(b'[{"host":"a","score":-12}]', [("a", -12)], id="any case, any number"),
    ],
)
def test_priorities(body: bytes, want: list[tuple[str, int]]) -> None:
    assert read_priorities(body) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"{}", {}, id="nothing said"),
        pytest.param(b'{"NodeNameToMetaVictims":null}', {}, id="null"),
        pytest.param(
            b'{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"u"}],"NumPDBViolations":2},"m":null}}',
            {"n": MetaVictims([MetaPod("u")], 2), "m": MetaVictims([], 0)},
            id="victims, and a node without",
        ),
        pytest.param(
            b'{"nodenametometavictims":{"N":{"pods":[{"uid":"u"}],"numpdbviolations":1}}}',
            {"N": MetaVictims([MetaPod("u")], 1)},
            id="any case",
        ),
    ],
)
def test_preemption_result(body: bytes, want: dict[str, MetaVictims]) -> None:
    assert read_preemption_result(body) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b'{"Error":""}', "", id="done"),
        pytest.param(b"{}", "", id="nothing said"),
        pytest.param(b'{"error":"full"}', "full", id="failed"),
    ],
)
def test_binding_result(body: bytes, want: str) -> None:
    assert read_binding_result(body) == want


@pytest.mark.parametrize(
    ("read", "body"),
    [
        pytest.param(read_filter_result, b"", id="an empty answer"),
        pytest.param(read_filter_result, b"<html>", id="no JSON"),
        pytest.param(read_filter_result, b'{"NodeNames":"a"}', id="a string for a list"),
        pytest.param(read_filter_result, b"[]", id="a list for an object"),
        pytest.param(read_priorities, b"{}", id="an object for a list"),
        pytest.param(read_priorities, b'[{"Score":"1"}]', id="a string for a number"),
        pytest.param(read_priorities, b'[{"Score":9223372036854775808}]', id="more than int64"),
    ],
)
def test_what_cannot_be_read(read: Any, body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(body)
