"""Tables and discovery, compared with what a real API server answered kubectl."""

from typing import Any

import pytest

from berth.cluster.http import discovery
from berth.cluster.kinds.builtin import resources
from berth.cluster.resources import Object
from tests.cluster.recording import Exchange, exchanges, full_objects
from tests.cluster.table_of import table_of

AGES = {"Age", "Last Seen", "First Seen"}
RESOURCES = resources("1.36")
"""Of the recorded server's release."""
OWN = [each for each in RESOURCES if not each.is_measured]
"""The recorded cluster has no metrics-server."""

COMPARED = ("name", "type", "format", "priority", "description")


def tables() -> list[Exchange]:
    """Return the exchanges that were answered with a table of a kind that berth serves."""
    return [
        exchange
        for exchange in exchanges()
        if exchange.body.get("kind") == "Table" and exchange.target
    ]


def whole_objects() -> dict[tuple[str, str, str], Object]:
    """Return every object that the recording shows whole, by kind, name and version."""
    return {
        (obj["kind"], obj["metadata"]["name"], obj["metadata"]["resourceVersion"]): obj
        for exchange in exchanges()
        for obj in full_objects(exchange)
    }


def shown_rows() -> list[Any]:
    """Return the rows whose object the recording shows whole somewhere, in the same version."""
    known = whole_objects()
    found = []
    for exchange in tables():
        assert exchange.target is not None
        kind = exchange.target.resource.kind
        for row in exchange.body["rows"]:
            metadata = row["object"]["metadata"]
            obj = known.get((kind, metadata["name"], metadata["resourceVersion"]))
            if obj is not None:
                case = f"{exchange}: {metadata['name']}"
                found.append(pytest.param(exchange, row, obj, id=case))
    return found


@pytest.mark.parametrize("exchange", tables(), ids=str)
def test_columns(exchange: Exchange) -> None:
    assert exchange.target is not None
    table = table_of(exchange.target.resource, list_meta={}, now=0)
    assert [
        {key: definition[key] for key in COMPARED} for definition in table["columnDefinitions"]
    ] == [
        {key: definition[key] for key in COMPARED}
        for definition in exchange.body["columnDefinitions"]
    ]


@pytest.mark.parametrize(("exchange", "row", "obj"), shown_rows())
def test_rows(exchange: Exchange, row: Object, obj: Object) -> None:
    assert exchange.target is not None
    table = table_of(exchange.target.resource, obj, now=0)
    names = [definition["name"] for definition in table["columnDefinitions"]]
    [ours] = table["rows"]
    cells = dict(zip(names, ours["cells"], strict=True))
    recorded = dict(zip(names, row["cells"], strict=True))
    assert {name: cells[name] for name in names if name not in AGES} == {
        name: recorded[name] for name in names if name not in AGES
    }
    assert ours["object"] == row["object"]


def test_the_recording_shows_enough_rows() -> None:
    assert len(shown_rows()) >= 15


def recorded_discovery() -> dict[tuple[str, str], Object]:
    """Return the entries of the aggregated form, by group and resource."""
    return {
        (group["metadata"].get("name", ""), entry["resource"]): entry
        for exchange in exchanges()
        if exchange.body.get("kind") == "APIGroupDiscoveryList"
        for group in exchange.body["items"]
        for version in group["versions"]
        if version["version"] == "v1"
        for entry in version["resources"]
    }


@pytest.mark.parametrize("resource", OWN, ids=lambda each: each.qualified_plural)
def test_discovery(resource: Any) -> None:
    theirs = recorded_discovery()[resource.group, resource.plural]
    assert discovery.aggregated_resource(resource) == theirs


def test_the_old_form_of_discovery() -> None:
    core = [each for each in RESOURCES if not each.group]
    [recorded, *_] = [exchange for exchange in exchanges() if exchange.path == "/api/v1"]
    assert discovery.resource_list(core)["resources"] == recorded.body["resources"]


def test_groups_come_in_the_order_of_the_real_server() -> None:
    [recorded, *_] = [
        exchange for exchange in exchanges() if exchange.path == "/apis" and exchange.status == 200
    ]
    grouped = [each for each in OWN if each.group]
    ours = [group["metadata"]["name"] for group in discovery.aggregated(grouped)["items"]]
    theirs = [group["metadata"]["name"] for group in recorded.body["items"]]
    assert ours == [name for name in theirs if name in ours]
