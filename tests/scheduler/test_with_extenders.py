"""Attempts that extenders have a say in, and what they may find changed when they have answered."""

from typing import Any

import httpx
import pytest

from berth.scheduler.extender.breaker import TRIP_AFTER
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import container, node, pod
from tests.scheduler.asking import URL, entry, everybody, harness, message

LOST = httpx.ConnectError("refused")

# Filter.


async def test_only_what_an_extender_leaves_comes_into_question() -> None:
    made, network = harness({"/filter": {"NodeNames": ["b"]}}, entry(filterVerb="filter"))
    made.put(node("a"), node("b"), node("full", cpu=0), pod("p", cpu=1))
    await made.until_idle()

    assert made.placements() == {"p": "b"}
    assert [asked["NodeNames"] for _, asked in network.requests] == [["a", "b"]]


async def test_what_several_extenders_leave_and_who_may_be_ignored_is_asked_last() -> None:
    answers = {"/x": everybody, "/y": {"NodeNames": ["a", "b"]}, "/z": {"NodeNames": ["b"]}}
    made, network = harness(
        answers,
        entry(filterVerb="x", ignorable=True),
        entry(filterVerb="y"),
        entry(filterVerb="z"),
    )
    made.put(node("a"), node("b"), node("c"), pod("p"))
    await made.until_idle()

    assert made.placements() == {"p": "b"}
    assert [(path, asked["NodeNames"]) for path, asked in network.requests] == [
        ("/y", ["a", "b", "c"]),
        ("/z", ["a", "b"]),
        ("/x", ["b"]),
    ]


async def test_nobody_is_asked_about_pods_of_no_interest_or_without_a_node_that_fits() -> None:
    made, network = harness(
        {}, entry(filterVerb="filter", managedResources=[{"name": "e.com/gpu"}])
    )
    gpu = [container(requests={"e.com/gpu": 1})]
    made.put(node("a"), pod("plain"), pod("wants", containers=gpu))
    await made.until_idle()

    assert (made.placements(), network.requests) == ({"plain": "a"}, [])


PREEMPTION = "no new claims to deallocate, preemption: 0/3 nodes are available: "


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            {"FailedNodes": {"a": "busy", "b": "busy"}, "FailedAndUnresolvableNodes": {"c": "bad"}},
            "0/3 nodes are available: 1 bad, 2 busy. " + PREEMPTION + "1 Preemption is not helpful"
            " for scheduling, 2 No preemption victims found for incoming pod.",
            id="with reasons; evictions are thought of where they may help",
        ),
        pytest.param(
            {"NodeNames": []},
            "0/3 nodes are available: " + PREEMPTION + "3 Preemption is not helpful for"
            " scheduling.",
            id="without a word",
        ),
    ],
)
async def test_what_is_told_when_no_node_is_left(answer: Any, want: str) -> None:
    made, _ = harness({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a"), node("b"), node("c"), pod("p"))
    await made.until_idle()

    assert message(made) == want
    queued = made.queue.sub_queues.get("default/p")
    assert queued is not None
    assert queued.unschedulable_plugins == {"Extender"}


async def test_nobody_else_is_asked_when_no_node_is_left() -> None:
    made, network = harness({"/x": {}, "/y": {}}, entry(filterVerb="x"), entry(filterVerb="y"))
    made.put(node("a"), pod("p"))
    await made.until_idle()
    assert network.paths == ["/x"]


async def test_any_event_is_worth_another_try_of_what_an_extender_rejected() -> None:
    left: list[str] = []
    made, _ = harness({"/filter": lambda _: {"NodeNames": left}}, entry(filterVerb="filter"))
    made.put(node("a"), pod("p"))
    await made.until_idle()
    assert made.queue.sub_queues.place_of("default/p") is SubQueue.UNSCHEDULABLE

    left.append("a")
    made.put(pod("unrelated", node="a"))
    made.clock.advance(10)
    made.queue.flush_backoff_completed()
    await made.until_idle()
    assert made.placements()["p"] == "a"


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param({"Error": "boom"}, "boom", id="it says so itself"),
        pytest.param(LOST, f'Post "{URL}/filter": refused', id="it is not there"),
    ],
)
async def test_a_filter_that_fails_is_an_error_unless_it_may_be_ignored(
    answer: Any, want: str
) -> None:
    for ignorable in (False, True):
        made, _ = harness({"/filter": answer}, entry(filterVerb="filter", ignorable=ignorable))
        made.put(node("a"), pod("p"))
        await made.until_idle()
        if ignorable:
            assert made.placements() == {"p": "a"}
        else:
            condition = made.cluster.conditions["default/p"]
            assert (condition.reason, condition.message) == ("SchedulerError", want)


async def test_one_that_is_left_alone_costs_no_call_and_fails_the_attempt_as_if_it_had_failed() -> (
    None
):
    made, network = harness({"/filter": LOST}, entry(filterVerb="filter"))
    made.put(node("a"), *(pod(f"p{i}") for i in range(TRIP_AFTER + 1)))
    await made.until_idle()

    assert len(network.requests) == TRIP_AFTER
    assert {c.reason for c in made.cluster.conditions.values()} == {"SchedulerError"}
    assert "is left alone for a while" in message(made, f"p{TRIP_AFTER}")


# The nominated node.


@pytest.mark.parametrize(
    ("likes", "want", "asked"),
    [
        pytest.param({"a", "b"}, "b", [["b"]], id="wanted: nobody looks further"),
        pytest.param({"a"}, "a", [["b"], ["a", "b"]], id="unwanted: all are asked about"),
        pytest.param(None, "a", [["b"], ["a", "b"]], id="an error there is no error"),
    ],
)
async def test_the_nominated_node(likes: set[str] | None, want: str, asked: Any) -> None:
    def answer(request: Any) -> Any:
        if likes is None:
            return 500 if request["NodeNames"] == ["b"] else {"NodeNames": ["a"]}
        return {"NodeNames": [name for name in request["NodeNames"] if name in likes]}

    made, network = harness({"/filter": answer}, entry(filterVerb="filter"))
    made.put(node("a"), node("b"), pod("p", nominated="b"))
    await made.until_idle()

    assert made.placements() == {"p": want}
    assert [request["NodeNames"] for _, request in network.requests] == asked


# Prioritize.


@pytest.mark.parametrize(
    ("scores", "want"),
    [
        pytest.param([{"Host": "b", "Score": 10}], "b", id="10 points outdo what plugins think"),
        pytest.param([{"Host": "x", "Score": 10}], "a", id="unknown hosts"),
        pytest.param(500, "a", id="failures"),
        pytest.param([{"Host": "b", "Score": -10}], "a", id="scores are not checked"),
        pytest.param([{"Host": "b", "Score": 2**62}], "a", id="too large ones wrap around"),
    ],
)
async def test_prioritize(scores: Any, want: str) -> None:
    made, _ = harness({"/prioritize": scores}, entry(prioritizeVerb="prioritize", weight=4))
    made.put(node("a", cpu=8), node("b", cpu=4), pod("p", cpu=2))
    await made.until_idle()
    assert made.placements() == {"p": want}


async def test_the_points_of_all_extenders_add_up_and_are_told() -> None:
    answers = {
        "/x": [{"Host": "a", "Score": 1}, {"Host": "b", "Score": 3}],
        "/y": [{"Host": "a", "Score": 10}],
    }
    made, _ = harness(
        answers, entry(prioritizeVerb="x", weight=5), entry(prioritizeVerb="y", weight=1)
    )
    made.put(node("a"), node("b"), pod("p"))
    await made.until_idle()

    (record,) = made.scheduler.decisions.of("default/p")
    points = {ranked.name: ranked.extenders for ranked in record.top}
    assert points == {"a": 1 * 5 * 10 + 10 * 10, "b": 3 * 5 * 10}
    of_plugins = {r.name: r.total - r.extenders for r in record.top}
    assert of_plugins == {r.name: sum(r.weighted.values()) for r in record.top}


async def test_a_single_node_is_not_scored() -> None:
    made, network = harness({}, entry(prioritizeVerb="prioritize", weight=1))
    made.put(node("a"), pod("p"))
    await made.until_idle()
    assert (made.placements(), network.requests) == ({"p": "a"}, [])


# Sampling.


async def test_a_sample_is_taken_once_however_often_nodes_are_filtered() -> None:
    made, network = harness(
        {"/filter": everybody}, entry(filterVerb="filter"), percentageOfNodesToScore=50
    )
    made.put(*(node(f"n{i:03}") for i in range(200)), pod("p"), pod("q"))
    await made.until_idle()

    first, second = (asked["NodeNames"] for _, asked in network.requests)
    assert (first[0], first[-1], len(first)) == ("n000", "n099", 100)
    assert (second[0], second[-1], len(second)) == ("n100", "n199", 100)


async def test_each_pod_is_tried_since_extenders_may_change_their_minds_without_an_event() -> None:
    made, _ = harness({"/filter": everybody}, entry(filterVerb="filter"))
    made.put(node("n1", cpu=1), *(pod(f"p{n}", cpu=100) for n in range(3)))
    await made.until_idle()

    records = made.scheduler.decisions.all()
    assert [record.answered_by for record in records] == ["", "", ""]
