"""Is an event worth another try? (spec §3.6)"""

from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.queue.hints import HintMap, QueueingStrategy, Registration
from tests.builders import pod
from tests.scheduler.queue.world import PROFILE, listens

SKIP, AFTER_BACKOFF, IMMEDIATELY = QueueingStrategy
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
POD_ADD = ClusterEvent(EventResource.POD, ActionType.ADD)


def no(_pod: Pod, _old: Any, _new: Any) -> QueueingHint:
    return QueueingHint.SKIP


def yes(_pod: Pod, _old: Any, _new: Any) -> QueueingHint:
    return QueueingHint.QUEUE


def broken(_pod: Pod, _old: Any, _new: Any) -> QueueingHint:
    raise ValueError("a bug in a plugin")


def evaluate(
    hints: list[Registration],
    event: ClusterEvent,
    *,
    unschedulable: set[str],
    pending: set[str],
    new: Pod | None = None,
) -> tuple[QueueingStrategy, list[tuple[str, str]]]:
    """Return the strategy for a pod named p, and which hints were called with which outcome."""
    called: list[tuple[str, str]] = []
    hint_map = HintMap(
        {PROFILE: hints},
        clock=FakeClock(),
        observe=lambda plugin, _event, outcome, _seconds: called.append((plugin, outcome)),
    )
    queued = QueuedPodInfo(
        PodInfo(pod("p")),
        timestamp=0.0,
        unschedulable_plugins=unschedulable,
        pending_plugins=pending,
    )
    return hint_map.is_pod_worth_requeuing(queued, hint_map.of(event), old=None, new=new), called


@pytest.mark.parametrize(
    ("hints", "unschedulable", "pending", "want", "called"),
    [
        pytest.param([], (), (), AFTER_BACKOFF, [], id="nobody rejected it: after backoff"),
        pytest.param([], ("A",), (), SKIP, [], id="nobody listens: skip"),
        pytest.param(
            [listens("B", NODE_ADD)], ("A",), (), SKIP, [], id="only another plugin listens: skip"
        ),
        pytest.param(
            [listens("A", NODE_ADD)], ("A",), (), AFTER_BACKOFF, [], id="without a hint: queue"
        ),
        pytest.param(
            [listens("A", NODE_ADD, no), listens("B", NODE_ADD, yes)],
            ("A", "B"),
            (),
            AFTER_BACKOFF,
            [("A", "QueueSkip"), ("B", "Queue")],
            id="one skips, the next queues",
        ),
        pytest.param(
            [listens("A", NODE_ADD, no)], ("A",), (), SKIP, [("A", "QueueSkip")], id="all skip"
        ),
        pytest.param(
            [listens("A", NODE_ADD, yes), listens("B", NODE_ADD, yes)],
            ("A", "B"),
            (),
            AFTER_BACKOFF,
            [("A", "Queue")],
            id="the first yes is enough when nobody is pending",
        ),
        pytest.param(
            [listens("A", NODE_ADD, yes), listens("B", NODE_ADD, yes), listens("C", NODE_ADD, yes)],
            ("A", "C"),
            ("B",),
            IMMEDIATELY,
            [("A", "Queue"), ("B", "Queue")],
            id="a pending plugin's yes is immediate and ends the search",
        ),
        pytest.param(
            [listens("A", NODE_ADD, yes), listens("B", NODE_ADD, no)],
            ("A",),
            ("B",),
            AFTER_BACKOFF,
            [("A", "Queue"), ("B", "QueueSkip")],
            id="a pending plugin's no leaves the other's yes",
        ),
        pytest.param(
            [listens("A", NODE_ADD, broken)],
            ("A",),
            (),
            AFTER_BACKOFF,
            [("A", "Error")],
            id="a hint that raises counts as yes",
        ),
        pytest.param(
            [listens("A", ALL_EVENTS)],
            ("A",),
            (),
            AFTER_BACKOFF,
            [],
            id="a plugin that registered nothing listens to everything",
        ),
        pytest.param(
            [listens("A", POD_ADD, yes)], ("A",), (), SKIP, [], id="another resource: skip"
        ),
    ],
)
def test_a_node_is_added(
    hints: list[Registration],
    unschedulable: tuple[str, ...],
    pending: tuple[str, ...],
    want: QueueingStrategy,
    called: list[tuple[str, str]],
) -> None:
    got = evaluate(hints, NODE_ADD, unschedulable=set(unschedulable), pending=set(pending))

    assert got == (want, called)


@pytest.mark.parametrize(
    ("event", "new", "want"),
    [
        pytest.param(UNSCHEDULABLE_TIMEOUT, None, AFTER_BACKOFF, id="for all pods"),
        pytest.param(FORCE_ACTIVATE, pod("p"), AFTER_BACKOFF, id="for this pod"),
        pytest.param(FORCE_ACTIVATE, pod("q"), SKIP, id="for another pod"),
    ],
)
def test_the_wildcard_event_asks_no_hint(
    event: ClusterEvent, new: Pod | None, want: QueueingStrategy
) -> None:
    hints = [listens("A", ALL_EVENTS, no)]

    assert evaluate(hints, event, unschedulable={"A"}, pending={"B"}, new=new) == (want, [])


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param(ASSIGNED_POD_ADD, AFTER_BACKOFF, id="an assigned pod is a pod"),
        pytest.param(
            ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD),
            AFTER_BACKOFF,
            id="an unscheduled pod is a pod",
        ),
        pytest.param(ASSIGNED_POD_DELETE, SKIP, id="another action"),
    ],
)
def test_a_pattern_for_pods_covers_both_kinds(event: ClusterEvent, want: QueueingStrategy) -> None:
    assert evaluate([listens("A", POD_ADD)], event, unschedulable={"A"}, pending=set()) == (
        want,
        [],
    )


@pytest.mark.parametrize(
    ("pattern", "want"),
    [
        pytest.param(ActionType.ADD | ActionType.UPDATE, AFTER_BACKOFF, id="every update bit"),
        pytest.param(ActionType.UPDATE_POD_LABEL, SKIP, id="one update bit"),
    ],
)
def test_a_generic_update_needs_a_pattern_with_every_update_bit(
    pattern: ActionType, want: QueueingStrategy
) -> None:
    hints = [listens("A", ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, pattern))]
    event = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE)

    assert evaluate(hints, event, unschedulable={"A"}, pending=set()) == (want, [])


@pytest.mark.parametrize(
    ("hints", "want", "called"),
    [
        pytest.param([listens("A", NODE_ADD, no)], AFTER_BACKOFF, [], id="added, without a hint"),
        pytest.param(
            [listens("A", NODE_ADD, no), listens("A", NODE_TAINT, no)],
            SKIP,
            [("A", "QueueSkip")],
            id="not added where it is registered already",
        ),
        pytest.param([listens("A", POD_ADD, yes)], SKIP, [], id="not added without Node/Add"),
    ],
)
def test_who_wants_new_nodes_gets_taint_updates(
    hints: list[Registration], want: QueueingStrategy, called: list[tuple[str, str]]
) -> None:
    assert evaluate(hints, NODE_TAINT, unschedulable={"A"}, pending=set()) == (want, called)
