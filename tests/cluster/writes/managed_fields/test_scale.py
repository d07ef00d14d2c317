"""The managers of replicas, seen from the object and from its Scale."""

from typing import Any

import pytest

from berth.cluster.writes.managed_fields.entries import Entry, Manager, entry
from berth.cluster.writes.managed_fields.scale import to_object, to_scale

REPLICAS = ("f:spec", "f:replicas")
IN_SCALE: Any = {"f:spec": {"f:replicas": {}}}
BOTH: Any = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
PAUSED: Any = {"f:spec": {"f:paused": {}}}


def of(name: str, operation: str, fields: Any, version: str = "apps/v1", **more: str) -> Entry:
    said = Manager(name, operation, version, more.get("subresource", ""))
    return entry(said, version, fields, more.get("time", "T"))


def test_a_scale_shows_the_managers_of_the_replicas() -> None:
    managed = [of("a", "Apply", BOTH), of("b", "Update", PAUSED), of("c", "Update", BOTH)]
    assert to_scale(managed, "apps/v1", REPLICAS) == [
        of("a", "Apply", IN_SCALE, "autoscaling/v1"),
        of("c", "Update", IN_SCALE, "autoscaling/v1"),
    ]


@pytest.mark.parametrize(
    ("scaled", "before", "want"),
    [
        pytest.param(
            [of("a", "Apply", IN_SCALE, "autoscaling/v1")],
            [of("a", "Apply", BOTH)],
            [of("a", "Apply", BOTH)],
            id="who still manages them keeps them",
        ),
        pytest.param(
            [of("s", "Update", IN_SCALE, "autoscaling/v1", subresource="scale")],
            [of("a", "Apply", BOTH), of("u", "Update", IN_SCALE)],
            [
                of("a", "Apply", PAUSED),
                of("s", "Update", IN_SCALE, subresource="scale", time=""),
            ],
            id="who scales takes them from others",
        ),
        pytest.param([], [of("u", "Update", BOTH)], [of("u", "Update", PAUSED)], id="nobody"),
        pytest.param(
            [of("s", "Update", {"f:status": {}}, "autoscaling/v1")], [], [], id="other fields"
        ),
    ],
)
def test_what_a_write_to_the_scale_means_for_the_object(
    scaled: list[Entry], before: list[Entry], want: list[Entry]
) -> None:
    assert to_object(scaled, before, "apps/v1", REPLICAS) == want
