"""Which occurrences become events of their own, and which count on others."""

from typing import Any

from berth.cluster.actions import STRATEGIC_MERGE, Create, Patch
from berth.cluster.events.correlator import (
    BURST,
    COMBINED,
    REFILL_SECONDS,
    REMEMBERED,
    SIMILAR,
    SIMILAR_SECONDS,
    EventCorrelator,
    Occurrence,
    Reference,
)

WEB = Reference("apps/v1", "ReplicaSet", "shop", "web", "uid-web", resource_version="7")
AT = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"


def created(pod: str, *, at: float = AT, regarding: Reference = WEB) -> Occurrence:
    message = f"Created pod: {pod}"
    return Occurrence(
        regarding, "Normal", "SuccessfulCreate", message, "replicaset-controller", "", at
    )


def test_an_event_looks_as_client_go_writes_it() -> None:
    action = EventCorrelator().correlate(created("web-1"))

    assert action == Create(
        "/api/v1/namespaces/shop/events",
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"web.{int(AT * 1e9):x}", "namespace": "shop"},
            "involvedObject": {
                "kind": "ReplicaSet",
                "namespace": "shop",
                "name": "web",
                "uid": "uid-web",
                "apiVersion": "apps/v1",
                "resourceVersion": "7",
            },
            "reason": "SuccessfulCreate",
            "message": "Created pod: web-1",
            "source": {"component": "replicaset-controller"},
            "firstTimestamp": STAMP,
            "lastTimestamp": STAMP,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": "replicaset-controller",
            "reportingInstance": "",
        },
    )


def test_events_of_nodes_are_in_the_namespace_default() -> None:
    node = Reference("v1", "Node", "", "n1", "n1")
    action = EventCorrelator().correlate(created("p", regarding=node))

    assert isinstance(action, Create)
    assert action.path == "/api/v1/namespaces/default/events"
    assert action.body["involvedObject"] == {
        "kind": "Node",
        "name": "n1",
        "uid": "n1",
        "apiVersion": "v1",
    }


def test_a_repetition_is_counted() -> None:
    correlator = EventCorrelator()
    first = correlator.correlate(created("web-1"))
    again = correlator.correlate(created("web-1", at=AT + 60))

    assert isinstance(first, Create)
    path = f"{first.path}/{first.body['metadata']['name']}"
    stamp = "2026-01-01T00:01:00Z"
    body = {"count": 2, "lastTimestamp": stamp, "message": "Created pod: web-1"}
    assert again == Patch(path, body, STRATEGIC_MERGE)


def test_events_of_one_moment_have_names_of_their_own() -> None:
    correlator = EventCorrelator()
    actions: list[Any] = [correlator.correlate(created(f"web-{number}")) for number in range(3)]

    assert len({action.body["metadata"]["name"] for action in actions}) == 3


def test_many_similar_events_become_one_that_counts() -> None:
    correlator = EventCorrelator()
    actions = [correlator.correlate(created(f"web-{number}")) for number in range(SIMILAR + 2)]

    *own, combined, eleventh, twelfth = actions
    assert [isinstance(action, Create) for action in own] == [True] * (SIMILAR - 1)
    assert isinstance(combined, Create)
    assert combined.body["message"] == f"{COMBINED}Created pod: web-{SIMILAR - 1}"
    assert isinstance(eleventh, Patch)
    assert isinstance(twelfth, Patch)
    assert (eleventh.body["count"], twelfth.body["count"]) == (2, 3)


def test_what_is_long_ago_is_not_similar() -> None:
    correlator = EventCorrelator()
    for number in range(SIMILAR - 1):
        correlator.correlate(created(f"web-{number}"))
    late = correlator.correlate(created("web-x", at=AT + SIMILAR_SECONDS + 1))

    assert isinstance(late, Create)
    assert late.body["message"] == "Created pod: web-x"


def test_an_object_has_so_many_events_and_more_after_a_while() -> None:
    correlator = EventCorrelator()
    written = [correlator.correlate(created(f"web-{number}")) for number in range(2 * BURST)]
    other = correlator.correlate(created("p", regarding=WEB._replace(uid="uid-other")))
    later = correlator.correlate(created("web-x", at=AT + REFILL_SECONDS))

    assert [action is not None for action in written] == [True] * BURST + [False] * BURST
    assert other is not None
    assert later is not None


def test_memory_is_bounded() -> None:
    correlator = EventCorrelator()
    for number in range(REMEMBERED + 100):
        correlator.correlate(created("p", regarding=WEB._replace(uid=f"uid-{number}")))

    assert len(correlator._similar) == REMEMBERED
    assert len(correlator._written) == REMEMBERED
    assert len(correlator._budgets) == REMEMBERED
