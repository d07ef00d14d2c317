"""Tables: the frame, and what ages look like. The columns have tests of their own."""

from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.columns.cells import UNKNOWN, Since
from berth.cluster.http.tables import human_age, row
from berth.cluster.kinds.builtin import STORED, find
from berth.cluster.resources import Column, Object, ResourceType
from berth.cluster.storage.stored import Stored
from berth.cluster.views import metadata_json
from berth.runtime.duration import human_duration
from tests.cluster.table_of import table_of

CREATED = "2026-11-20T13:06:10Z"
NOW = 1795179970.0 + 217
"""3m37s later."""


def namespaces() -> ResourceType:
    found = find("", "v1", "namespaces")
    assert found is not None
    return found


def cells(resource: ResourceType, stored: Stored, now: float) -> Any:
    """Return what the columns say of an object."""
    return msgspec.json.decode(row(resource, stored, "None", now))["cells"]


def namespace(name: str = "demo") -> Object:
    return {
        "metadata": {"name": name, "resourceVersion": "7", "creationTimestamp": CREATED},
        "status": {"phase": "Active"},
    }


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(-2.5, "<invalid>", id="the future is not an age"),
        pytest.param(-1.9, "0s", id="clocks may disagree by a second"),
        pytest.param(0, "0s", id="now"),
        pytest.param(119.9, "119s", id="seconds up to two minutes"),
        pytest.param(120, "2m", id="two minutes sharp"),
        pytest.param(217, "3m37s", id="minutes with seconds up to ten minutes"),
        pytest.param(601, "10m", id="minutes alone from ten minutes on"),
        pytest.param(3 * 3600 - 1, "179m", id="minutes up to three hours"),
        pytest.param(3 * 3600, "3h", id="three hours sharp"),
        pytest.param(3 * 3600 + 360, "3h6m", id="hours with minutes up to eight hours"),
        pytest.param(8 * 3600 + 360, "8h", id="hours alone from eight hours on"),
        pytest.param(48 * 3600 - 1, "47h", id="hours up to two days"),
        pytest.param(5 * 86400 + 7200, "5d2h", id="days with hours up to eight days"),
        pytest.param(8 * 86400 + 7200, "8d", id="days alone from eight days on"),
        pytest.param(729 * 86400, "729d", id="days up to two years"),
        pytest.param(740 * 86400, "2y10d", id="years with days up to eight years"),
        pytest.param(3000 * 86400, "8y", id="years alone from eight years on"),
    ],
)
def test_durations_read_as_kubectl_writes_them(seconds: float, want: str) -> None:
    assert human_duration(seconds) == want


@given(st.floats(min_value=0, max_value=1e10))
def test_a_duration_has_at_most_two_units(seconds: float) -> None:
    text = human_duration(seconds)
    assert text[-1] in "smhdy"
    assert 1 <= sum(letter in "smhdy" for letter in text) <= 2


@pytest.mark.parametrize(
    ("timestamp", "want"),
    [
        pytest.param(CREATED, "3m37s", id="whole seconds"),
        pytest.param("2026-11-20T13:06:10.500000Z", "3m36s", id="microseconds"),
        pytest.param(None, "<unknown>", id="never told"),
        pytest.param("", "<unknown>", id="empty"),
    ],
)
def test_age_of_a_timestamp(timestamp: str | None, want: str) -> None:
    obj = namespace()
    obj["metadata"]["creationTimestamp"] = timestamp
    [found] = table_of(namespaces(), obj, now=NOW)["rows"]
    assert found["cells"] == ["demo", "Active", want]


@given(st.floats(min_value=-10, max_value=1e9))
def test_ages_are_what_they_are_when_they_are_remembered(seconds: float) -> None:
    assert human_age(seconds) == human_duration(seconds)


def test_ages_go_on_though_the_cells_are_kept() -> None:
    kept = Stored(namespace(), 7)
    ages = [cells(namespaces(), kept, NOW + later)[2] for later in (0, 1, 3600)]
    assert ages == ["3m37s", "3m38s", "63m"]


def test_cells_are_of_the_columns_of_now() -> None:
    kept, renamed = Stored(namespace(), 7), Column("Upper", "string", lambda obj: obj["kind"])
    resource = namespaces()
    assert cells(resource, kept, NOW) == ["demo", "Active", "3m37s"]
    assert cells(replace(resource, columns=(renamed,)), kept, NOW) == ["Namespace"]


def test_a_list_becomes_a_table() -> None:
    table = table_of(
        namespaces(), namespace(), list_meta={"resourceVersion": "9", "continue": "x"}, now=NOW
    )
    assert [each["name"] for each in table.pop("columnDefinitions")] == ["Name", "Status", "Age"]
    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "9", "continue": "x"},
        "rows": [
            {
                "cells": ["demo", "Active", "3m37s"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": namespace()["metadata"],
                },
            }
        ],
    }


def test_an_empty_list_has_rows_none_of_them() -> None:
    assert table_of(namespaces(), list_meta={}, now=NOW)["rows"] == []


@pytest.mark.parametrize(
    ("include_object", "want"),
    [
        pytest.param("None", None, id="nothing"),
        pytest.param(
            "Object", {"kind": "Namespace", "apiVersion": "v1", **namespace()}, id="all of it"
        ),
    ],
)
def test_a_row_carries_what_was_asked_for(include_object: str, want: Object | None) -> None:
    table = table_of(namespaces(), namespace(), include_object=include_object, now=NOW)
    assert table["rows"][0]["object"] == want


def test_a_single_object_lends_the_table_its_version() -> None:
    assert table_of(namespaces(), namespace(), now=NOW)["metadata"] == {"resourceVersion": "7"}


def test_later_events_of_a_watch_leave_the_columns_out() -> None:
    table = table_of(namespaces(), namespace(), now=NOW, with_columns=False)
    assert table["columnDefinitions"] is None
    assert len(table["rows"]) == 1


@pytest.mark.parametrize("resource", STORED, ids=lambda each: each.qualified_plural)
def test_the_barest_object_fills_every_column(resource: ResourceType) -> None:
    table = table_of(resource, {"metadata": {"name": "bare"}}, now=NOW)
    [found] = table["rows"]
    assert len(found["cells"]) == len(table["columnDefinitions"]) > 0
    assert "bare" in found["cells"]


def _constant(value: Any, _obj: Object) -> Any:
    return value


shown = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=2)


@given(st.lists(shown | st.builds(Since, st.none() | st.just(CREATED), st.just("in {}"))))
def test_cells_in_pieces_are_those_of_the_columns(values: list[Any]) -> None:
    columns = tuple(
        Column(str(number), "string", partial(_constant, value))
        for number, value in enumerate(values)
    )
    want = [
        value.text.format("3m37s" if value.timestamp else UNKNOWN)
        if isinstance(value, Since)
        else value
        for value in values
    ]
    resource = replace(namespaces(), columns=columns)
    assert cells(resource, Stored(namespace(), 7), NOW) == want


def test_what_was_kept_is_shown_like_what_was_written() -> None:
    written = Stored(namespace(), 7)
    kept = Stored.of_parts(("", "demo"), "", 7, {}, written.body)
    assert row(namespaces(), kept, "None", NOW) == row(namespaces(), written, "None", NOW)


@given(st.dictionaries(st.sampled_from(["kind", "spec", "status", "data"]), st.just({"a": 1})))
def test_metadata_is_found_where_it_was_written(parts: Object) -> None:
    metadata = {"name": "demo", "labels": {"a": '"}'}}
    written = Stored({**parts, "metadata": metadata}, 7)
    kept = Stored.of_parts(("", "demo"), "", 7, {}, written.body)
    rest = {key: value for key, value in parts.items() if key != "kind"}
    assert written.decode() == {"metadata": metadata, **rest}
    assert metadata_json(namespaces(), written) == metadata_json(namespaces(), kept)
