"""JSON patch and JSON merge patch."""

from typing import Any

import pytest

from berth.cluster.writes.patch import (
    MAX_COPIED,
    PatchError,
    PatchMismatchError,
    PatchTooLargeError,
    json_patch,
    merge_patch,
)
from berth.kube.documents import DEPTH_LIMIT, depth_of


@pytest.mark.parametrize(
    ("document", "patch", "want"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new key is added"),
        pytest.param({"a": 1}, {"a": None}, {}, id="null removes"),
        pytest.param({"a": 1}, {"b": None}, {"a": 1}, id="null for what is not there is nothing"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="arrays are replaced"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects merge"),
        pytest.param({"a": 1}, {"a": {"b": None}}, {"a": {}}, id="nulls inside new objects go"),
    ],
)
def test_merge_patch(document: Any, patch: Any, want: Any) -> None:
    before = repr(document)
    assert merge_patch(document, patch) == want
    assert repr(document) == before


@pytest.mark.parametrize(
    ("document", "operations", "want"),
    [
        pytest.param(
            {"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}, id="add a key"
        ),
        pytest.param(
            {"a": [1, 3]},
            [{"op": "add", "path": "/a/1", "value": 2}],
            {"a": [1, 2, 3]},
            id="add into an array",
        ),
        pytest.param(
            {"a": [1]},
            [{"op": "add", "path": "/a/-", "value": 2}],
            {"a": [1, 2]},
            id="add to the end of an array",
        ),
        pytest.param(
            {"a": [1]},
            [{"op": "add", "path": "/a/1", "value": 2}],
            {"a": [1, 2]},
            id="add at the index after the last",
        ),
        pytest.param(
            {"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove an element"
        ),
        pytest.param(
            {"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}, id="replace"
        ),
        pytest.param(
            {"a": {"b": 1}},
            [{"op": "move", "from": "/a/b", "path": "/c"}],
            {"a": {}, "c": 1},
            id="move",
        ),
        pytest.param(
            {"a": [1]},
            [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}],
            {"a": [1], "b": [1, 2]},
            id="a copy is on its own",
        ),
        pytest.param(
            {"a/b": {"~": 1}},
            [{"op": "replace", "path": "/a~1b/~0", "value": 2}],
            {"a/b": {"~": 2}},
            id="slashes and tildes are escaped",
        ),
        pytest.param({"a": 1}, [{"op": "add", "path": "", "value": 2}], 2, id="the whole document"),
        pytest.param({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}, id="nothing yet"),
        pytest.param({}, [{"op": "test", "path": "/a", "value": None}], {}, id="nothing is null"),
        pytest.param({"a": 1}, [{"op": "add", "path": "/a"}], {"a": None}, id="no value is null"),
        pytest.param(
            {"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}, id="from the end"
        ),
        pytest.param(
            {"a": 1.0},
            [{"op": "test", "path": "/a", "value": 1}],
            {"a": 1.0},
            id="a test that holds",
        ),
    ],
)
def test_json_patch(document: Any, operations: Any, want: Any) -> None:
    before = repr(document)
    assert json_patch(document, operations) == want
    assert repr(document) == before


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        pytest.param({}, PatchError, id="not an array"),
        pytest.param([1], PatchError, id="not an operation"),
        pytest.param(
            [{"op": "add", "path": "a", "value": 1}], PatchMismatchError, id="not a pointer"
        ),
        pytest.param(
            [{"op": "twist", "path": "/a"}], PatchMismatchError, id="an unknown operation"
        ),
        pytest.param([{"op": "test"}] * 10_001, PatchTooLargeError, id="too many operations"),
        pytest.param(
            [{"op": "move", "from": "/a", "path": "/a/b"}],
            PatchMismatchError,
            id="moved into itself",
        ),
        pytest.param([{"op": "remove", "path": "/x"}], PatchMismatchError, id="nothing to remove"),
        pytest.param([{"op": "remove", "path": ""}], PatchMismatchError, id="remove everything"),
        pytest.param(
            [{"op": "add", "path": "/x/y", "value": 1}], PatchMismatchError, id="no parent"
        ),
        pytest.param(
            [{"op": "add", "path": "/t/0", "value": 1}], PatchMismatchError, id="text has no parts"
        ),
        pytest.param(
            [{"op": "add", "path": "/a/7", "value": 1}], PatchMismatchError, id="beyond the end"
        ),
        pytest.param(
            [{"op": "remove", "path": "/a/x1"}], PatchMismatchError, id="an index that is none"
        ),
        pytest.param(
            [{"op": "remove", "path": "/a/-9"}], PatchMismatchError, id="before the start"
        ),
        pytest.param(
            [{"op": "test", "path": "/a/0", "value": True}], PatchMismatchError, id="true is not 1"
        ),
    ],
)
def test_bad_json_patches(operations: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        json_patch({"a": [1], "t": "text"}, operations)


def test_copies_add_no_more_than_a_request_may() -> None:
    double = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(40)]
    with pytest.raises(PatchMismatchError, match=rf"accumulated size .* limit {MAX_COPIED}"):
        json_patch({"a": {"text": "x" * 100}}, double)


def test_copies_do_not_nest_deeper_than_anybody_can_read() -> None:
    nest = [{"op": "copy", "from": "/a", "path": "/a" * depth} for depth in range(2, 300)]
    deepest = next(
        depth_of(json_patch({"a": {}}, nest[:count]))
        for count in range(len(nest), 0, -1)
        if _applies({"a": {}}, nest[:count])
    )
    assert 2 < deepest <= DEPTH_LIMIT


def _applies(document: Any, operations: Any) -> bool:
    try:
        json_patch(document, operations)
    except PatchMismatchError:
        return False
    return True


def test_values_do_not_nest_deeper_either() -> None:
    deep: Any = 1
    for _ in range(DEPTH_LIMIT - 1):
        deep = {"a": deep}
    add = {"op": "add", "path": "/b", "value": deep}
    assert depth_of(json_patch({}, [add])) == DEPTH_LIMIT
    move = {"op": "move", "from": "/b", "path": "/c/d"}
    with pytest.raises(PatchMismatchError, match="exceeded max depth"):
        json_patch({"c": {}}, [add, move])


def test_arrays_are_not_pushed_aside_for_ever() -> None:
    operations = [{"op": "add", "path": "/a/0", "value": 1}] * 10_000
    with pytest.raises(PatchMismatchError, match="push aside"):
        json_patch({"a": [0] * 10_000}, operations)
