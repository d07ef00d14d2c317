"""Whatever a plugin by others does, only the pods that it is asked about feel it."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ALL_EVENTS,
    NODE_ADD,
    ClusterEventWithHint,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.interface import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter, ScalarPreFilterExtensions, ScalarScore
from berth.scheduler.framework.status import SKIP, WAIT, Code, Status
from berth.scheduler.framework.verdict import Rejection, Verdict
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness, with_plugins

HUGE = "64"
"""More cpu than there is, so that PostFilter is asked."""


class Broken(Plugin):
    """Does what a test wants when it is asked about the pod ``bad``, and nothing otherwise."""

    NAME = "Broken"


Misdeed = Callable[..., Any]


def raising(*_args: Any) -> Any:
    raise ValueError("boom")


def answering(answer: Any) -> Misdeed:
    return lambda *_args: answer


def broken(base: type[Plugin], method: str, misdeed: Misdeed, harmless: Any) -> type[Plugin]:
    """Make a plugin of *base* whose *method* commits *misdeed* on the pod ``bad``."""

    def call(_self: Plugin, *args: Any) -> Any:
        about_bad = any(getattr(arg, "name", "") == "bad" for arg in args)
        answer = misdeed(*args) if about_bad else harmless
        return answer(*args) if callable(answer) else answer

    async def call_async(self: Plugin, *args: Any) -> Any:
        return call(self, *args)

    calls: dict[str, Any] = {
        name: (lambda _self, *_args: None) for name in base.__abstractmethods__ - {method}
    }
    is_async = issubclass(base, PreBindPlugin | BindPlugin | PostBindPlugin)
    calls[method] = call_async if is_async and "flight" not in method else call
    return type("BrokenAtPoint", (Broken, base), calls)


def zeros(_state: Any, _pod: Any, nodes: Any) -> Any:
    return np.zeros(nodes.size, np.int64)


def reject(length: int, code: Code = Code.UNSCHEDULABLE) -> Misdeed:
    return answering(Verdict((Rejection("no", code, np.ones(length, bool)),)))


async def tried(harness: Harness, bad: Any) -> str:
    """Put a good pod before and after the bad one; return what was told about the bad one."""
    harness.put(node("n1"), node("n2"), pod("before"), bad, pod("after"))
    await harness.until_idle(attempts=500)

    assert {"before", "after"} <= harness.placements().keys()
    failures = [e.note for e in harness.cluster.events if e.reason == "FailedScheduling"]
    return failures[0] if failures else ""


ERRORS = [
    pytest.param(
        PreFilterPlugin, "pre_filter", raising, None,
        "running PreFilter plugin \"Broken\": ValueError('boom')",
        id="PreFilter raises",
    ),
    pytest.param(
        PreFilterPlugin, "pre_filter", answering("n1"), None,
        'running PreFilter plugin "Broken": '
        "TypeError('a Status or None is needed, got str')",
        id="PreFilter answers a string",
    ),
    pytest.param(
        PreFilterPlugin, "pre_filter", answering(PreFilterResult("n1")), None,  # type: ignore[arg-type]  # meant
        'running PreFilter plugin "Broken": '
        "TypeError('a frozenset of node names is needed, got str')",
        id="PreFilter narrows to a string",
    ),
    pytest.param(
        PreFilterPlugin, "pre_filter", lambda state, *_: setattr(state, "gang", "web"), None,
        'running PreFilter plugin "Broken": '
        "TypeError('a Gang or None as the gang of the state is needed, got str')",
        id="PreFilter writes a string where the gang should be",
    ),
    pytest.param(
        FilterPlugin, "filter", raising, Verdict(),
        "running \"Broken\" filter plugin: ValueError('boom')",
        id="Filter raises",
    ),
    pytest.param(
        FilterPlugin, "filter", answering(None), Verdict(),
        "running \"Broken\" filter plugin: TypeError('a Verdict is needed, got NoneType')",
        id="Filter answers nothing",
    ),
    pytest.param(
        FilterPlugin, "filter", reject(7), Verdict(),
        'running "Broken" filter plugin: '
        "ValueError('a mask: an array of bool, 2 long is needed, got bool of shape (7,)')",
        id="Filter answers for seven nodes where there are two",
    ),
    pytest.param(
        FilterPlugin, "filter", reject(2, Code.SKIP), Verdict(),
        "running \"Broken\" filter plugin: ValueError('<Code.SKIP: 5> is no rejection')",
        id="Filter rejects with a code that rejects nothing",
    ),
    pytest.param(
        ScalarFilter, "filter_node", raising, None,
        "running \"Broken\" filter plugin: ValueError('boom')",
        id="the simple Filter raises",
    ),
    pytest.param(
        ScalarFilter, "filter_node", answering("full"), None,
        'running "Broken" filter plugin: '
        "AttributeError(\"'str' object has no attribute 'reasons'\")",
        id="the simple Filter answers a string",
    ),
    pytest.param(
        PreScorePlugin, "pre_score", raising, None,
        "running PreScore plugin \"Broken\": ValueError('boom')",
        id="PreScore raises",
    ),
    pytest.param(
        PreScorePlugin, "pre_score", answering(1), None,
        "running PreScore plugin \"Broken\": TypeError('a Status or None is needed, got int')",
        id="PreScore answers a number",
    ),
    pytest.param(
        ScorePlugin, "score", raising, zeros,
        "running Score plugins: plugin \"Broken\" failed with: ValueError('boom')",
        id="Score raises",
    ),
    pytest.param(
        ScorePlugin, "score", answering(np.zeros(5, np.int64)), zeros,
        'running Score plugins: plugin "Broken" failed with: '
        "ValueError('scores: an array of int64, 2 long is needed, got int64 of shape (5,)')",
        id="Score answers for five nodes where there are two",
    ),
    pytest.param(
        ScorePlugin, "score", answering(np.zeros(2)), zeros,
        'running Score plugins: plugin "Broken" failed with: '
        "ValueError('scores: an array of int64, 2 long is needed, got float64 of shape (2,)')",
        id="Score answers floats",
    ),
    pytest.param(
        ScorePlugin, "score", answering(np.full(2, 101)), zeros,
        'plugin "Broken" returns an invalid score 101, it should in the range of [0, 100] after'
        " normalizing",
        id="Score answers more than a hundred",
    ),
    pytest.param(
        ScalarScore, "score_node", answering("much"), 0,
        'running Score plugins: plugin "Broken" failed with: '
        "ValueError(\"invalid literal for int() with base 10: 'much'\")",
        id="the simple Score answers a word",
    ),
    pytest.param(
        ReservePlugin, "reserve", raising, None,
        "running Reserve plugin \"Broken\": ValueError('boom')",
        id="Reserve raises",
    ),
    pytest.param(
        PermitPlugin, "permit", raising, (None, 0),
        "running Permit plugin \"Broken\": ValueError('boom')",
        id="Permit raises",
    ),
    pytest.param(
        PermitPlugin, "permit", answering(None), (None, 0),
        'running Permit plugin "Broken": '
        "TypeError('a Status or None and a number of seconds is needed, got NoneType')",
        id="Permit answers nothing",
    ),
    pytest.param(
        PermitPlugin, "permit", answering((WAIT, "long")), (None, 0),
        'running Permit plugin "Broken": '
        "TypeError('a Status or None and a number of seconds is needed, got tuple')",
        id="Permit waits for a word",
    ),
    pytest.param(
        PreBindPlugin, "pre_bind_pre_flight", raising, SKIP,
        "running PreBindPreFlight plugin \"Broken\": ValueError('boom')",
        id="PreBindPreFlight raises",
    ),
    pytest.param(
        PreBindPlugin, "pre_bind", raising, None,
        "running PreBind plugin \"Broken\": ValueError('boom')",
        id="PreBind raises",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("base", "method", "misdeed", "harmless", "want"), ERRORS)
async def test_the_attempt_fails_and_says_whose_fault_it_is(
    base: type[Plugin],
    method: str,
    misdeed: Misdeed,
    harmless: Any,
    want: str,
) -> None:
    harness = with_plugins(broken(base, method, misdeed, harmless))

    told = await tried(harness, pod("bad"))

    assert told == want
    assert "bad" not in harness.placements()
    assert harness.queue.sub_queues.pending_counts()["backoff"] == 1


class Follower(PreFilterPlugin, ScalarPreFilterExtensions, ScalarFilter):
    """Wants no pod on the node, and cannot tell what it would be without ``riddle``."""

    NAME = "Follower"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        if removed.name == "riddle":
            raise ValueError("boom")
        return None

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("taken") if node_info.pods else None


async def test_a_plugin_that_cannot_follow_a_pod_fails_on_its_node_alone() -> None:
    harness = with_plugins(Follower)
    harness.put(node("n1"), node("n2"), pod("riddle", node="n1"), pod("plain", node="n2"))
    harness.put(pod("new", priority=1))
    await harness.until_idle(attempts=500)

    assert harness.placements()["new"] == "n2"
    assert "riddle" in harness.placements()


async def test_a_bind_that_raises_leaves_the_pod_to_be_tried_again() -> None:
    kind = broken(BindPlugin, "bind", raising, SKIP)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "bind": {
                        "enabled": [{"name": "Broken"}, {"name": "DefaultBinder"}],
                        "disabled": [{"name": "*"}],
                    }
                }
            }
        ],
    }
    harness = Harness(config=config, registry={**IN_TREE, "Broken": kind})

    told = await tried(harness, pod("bad"))

    assert told == "running Bind plugin \"Broken\": ValueError('boom')"


@pytest.mark.parametrize(
    ("base", "method", "misdeed", "harmless"),
    [
        pytest.param(PostBindPlugin, "post_bind", raising, None, id="PostBind raises"),
        pytest.param(
            PreFilterPlugin, "pre_filter", answering(Status(Code.SUCCESS)), None,
            id="a Status of success is success",
        ),
        pytest.param(
            ScorePlugin, "score", answering(np.ones(2, np.int32)), zeros,
            id="scores of another integer type will do",
        ),
    ],
)  # fmt: skip
async def test_the_pod_is_bound_all_the_same(
    base: type[Plugin], method: str, misdeed: Misdeed, harmless: Any
) -> None:
    harness = with_plugins(broken(base, method, misdeed, harmless))

    assert await tried(harness, pod("bad")) == ""
    assert "bad" in harness.placements()


async def test_unreserve_that_raises_does_not_keep_others_from_it() -> None:
    gone: list[str] = []

    class Other(ReservePlugin):
        NAME = "Other"

        def reserve(self, _state: Any, pod: Any, _node_name: str) -> Status | None:
            return Status.unschedulable("no") if pod.name == "bad" else None

        def unreserve(self, _state: Any, pod: Any, _node_name: str) -> None:
            gone.append(pod.name)

    harness = with_plugins(Other, broken(ReservePlugin, "unreserve", raising, None))

    assert await tried(harness, pod("bad")) == "0/1 nodes are available: 1 no."
    assert set(gone) == {"bad"}


@pytest.mark.parametrize(
    ("misdeed", "want"),
    [
        pytest.param(raising, "ValueError('boom')", id="raises"),
        pytest.param(
            answering(None),
            "TypeError('a PostFilterResult is needed, got NoneType')",
            id="answers nothing",
        ),
        pytest.param(
            answering(PostFilterResult(None, nominated_node=7)),  # type: ignore[arg-type]  # meant
            "TypeError('the name of the nominated node, or None is needed, got int')",
            id="nominates a number",
        ),
    ],
)
async def test_a_post_filter_that_is_broken_helps_nobody(misdeed: Misdeed, want: str) -> None:
    harmless = PostFilterResult(Status.unschedulable("cannot help"))
    harness = with_plugins(broken(PostFilterPlugin, "post_filter", misdeed, harmless))

    told = await tried(harness, pod("bad", cpu=HUGE))

    assert told.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert want in told


@pytest.mark.parametrize(
    "misdeed",
    [
        pytest.param(raising, id="raises"),
        pytest.param(answering("no"), id="answers a string"),
    ],
)
async def test_a_pod_whose_gate_is_broken_waits(misdeed: Misdeed) -> None:
    harness = with_plugins(broken(PreEnqueuePlugin, "pre_enqueue", misdeed, None))

    await tried(harness, pod("bad"))

    assert harness.queue.sub_queues.pending_counts()["gated"] == 1


@pytest.mark.parametrize(
    "hint",
    [pytest.param(raising, id="raises"), pytest.param(answering(1), id="answers a number")],
)
async def test_a_hint_that_is_broken_lets_the_pod_be_tried(hint: Misdeed) -> None:
    class Refusing(ScalarFilter, EnqueueExtensions):
        NAME = "Broken"
        refuses = True

        def filter_node(self, *_args: Any) -> Status | None:
            return Status.unschedulable("not yet") if Refusing.refuses else None

        def events_to_register(self) -> Sequence[ClusterEventWithHint]:
            return [ClusterEventWithHint(ALL_EVENTS, hint)]

    harness = with_plugins(Refusing)
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()
    Refusing.refuses = False

    harness.put(node("n2"))
    harness.clock.advance(60)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()

    assert "p" in harness.placements()


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(HintIndex(raising, lambda _old, new: (new.metadata.name,)), id="of the pod"),
        pytest.param(HintIndex(lambda _pod: [("n2",)], raising), id="of the event"),
    ],
)
async def test_a_pod_is_found_where_keys_are_broken(index: HintIndex) -> None:
    asked: list[str] = []

    def hint(waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
        asked.append(waiting.metadata.name)
        return QueueingHint.SKIP

    class Refusing(ScalarFilter, EnqueueExtensions):
        NAME = "Broken"

        def filter_node(self, *_args: Any) -> Status | None:
            return Status.unschedulable("not yet")

        def events_to_register(self) -> Sequence[ClusterEventWithHint]:
            return [ClusterEventWithHint(NODE_ADD, hint, (index,))]

    harness = with_plugins(Refusing)
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()
    harness.put(node("n2"))

    assert asked == ["p"]
    labels = {
        "plugin": "Broken",
        "extension_point": "HintIndex",
        "profile": "default-scheduler",
    }
    assert harness.registry.get_sample_value("berth_plugin_errors_total", labels)


async def test_errors_and_time_are_counted_and_the_log_is_not_flooded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = with_plugins(broken(FilterPlugin, "filter", raising, Verdict()))
    harness.put(node("n1"), pod("bad"))

    for _ in range(3):
        await harness.until_idle()
        harness.clock.advance(10)
        harness.queue.flush_backoff_completed()
    await harness.until_idle()

    labels = {"plugin": "Broken", "extension_point": "Filter", "profile": "default-scheduler"}
    assert harness.registry.get_sample_value("berth_plugin_errors_total", labels) == 4
    assert harness.registry.get_sample_value("berth_plugin_seconds_total", labels) is not None
    logged = [r for r in caplog.records if r.message == "plugin failed"]
    assert [(r.levelno, vars(r)["pod"], vars(r)["not_logged"]) for r in logged] == [
        (logging.ERROR, "default/bad", 0)
    ]
    assert logged[0].exc_info is not None

    harness.clock.advance(60)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()

    logged = [r for r in caplog.records if r.message == "plugin failed"]
    assert [vars(r)["not_logged"] for r in logged] == [0, 3]
