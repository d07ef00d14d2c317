"""The two event APIs show the same events."""

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.events_view import CORE_NAMES, NEW_NAMES, core_strategy, from_core, to_core
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, Strategy
from berth.kube.field_errors import FieldError

CORE: Object = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "web"},
    "message": "0/2 nodes are available",
    "source": {"component": "kubelet"},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 2,
    "reportingComponent": "default-scheduler",
    "reportingInstance": "default-scheduler-0",
    "eventTime": "2026-11-20T13:06:10.000000Z",
    "reason": "FailedScheduling",
    "action": "Scheduling",
    "type": "Warning",
    "related": {"kind": "Node", "name": "n1"},
    "series": {"count": 2, "lastObservedTime": "2026-11-20T13:07:10.000000Z"},
}
NEW: Object = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "default"},
    "regarding": {"kind": "Pod", "name": "web"},
    "note": "0/2 nodes are available",
    "deprecatedSource": {"component": "kubelet"},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedCount": 2,
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-0",
    "eventTime": "2026-11-20T13:06:10.000000Z",
    "reason": "FailedScheduling",
    "action": "Scheduling",
    "type": "Warning",
    "related": {"kind": "Node", "name": "n1"},
    "series": {"count": 2, "lastObservedTime": "2026-11-20T13:07:10.000000Z"},
}

FIELDS = sorted({*NEW_NAMES, *CORE} - {"apiVersion"})


def test_every_field_has_its_name_in_the_other_api() -> None:
    assert from_core(CORE) == NEW
    assert to_core(NEW) == CORE


@given(st.dictionaries(st.sampled_from(FIELDS), st.integers()))
def test_there_and_back_again(event: Object) -> None:
    assert to_core(from_core(event)) == event
    assert not CORE_NAMES.keys() & NEW_NAMES.keys()


def test_stored_events_have_no_type_and_get_none() -> None:
    assert from_core({"message": "hello"}) == {"note": "hello"}


def test_columns_show_both_forms_alike() -> None:
    core, new = find("", "v1", "events"), find("events.k8s.io", "v1", "events")
    assert core is not None
    assert new is not None
    assert [column.value(NEW) for column in new.columns] == [
        column.value(CORE) for column in core.columns
    ]


def test_rules_are_those_of_the_core_form() -> None:
    seen: list[Object] = []

    def default(event: Object) -> None:
        event["message"] = "filled in"

    def validate(event: Object, _old: Object | None) -> list[FieldError]:
        seen.append(event)
        return []

    strategy = core_strategy(Strategy(default=default, validate=validate))
    event = {"regarding": {"kind": "Pod"}}
    strategy.default(event)
    assert event == {"regarding": {"kind": "Pod"}, "note": "filled in"}
    assert strategy.validate(event, event) == []
    assert seen == [{"involvedObject": {"kind": "Pod"}, "message": "filled in"}]


def test_times_that_are_not_known_are_null() -> None:
    """Sorting by one, as ``kubectl get events --sort-by`` does, needs the field to be there."""
    new = find("events.k8s.io", "v1", "events")
    assert new is not None
    event: Object = {"metadata": {"name": "web.1"}, "eventTime": "2026-11-20T13:06:10.000000Z"}
    new.strategy.default(event)
    assert to_core(event) == {
        "metadata": {"name": "web.1"},
        "eventTime": "2026-11-20T13:06:10.000000Z",
        "firstTimestamp": None,
        "lastTimestamp": None,
    }
