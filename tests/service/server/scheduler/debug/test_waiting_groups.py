"""``/debug/queue/groups``: pending pods by reason."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.meta import Condition, OwnerReference
from berth.kube.objects.pod import Pod
from berth.service.server.scheduler.debug.reasons import REASONS_PER_TURN, reasons_in
from berth.service.server.scheduler.debug.waiting_groups import (
    LEAST_SECONDS,
    MOST_GROUPS,
    PODS_TOLD,
    SharedGroups,
)
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.loop_turns import watched_loop
from tests.service.server.scheduler.debug.world import Object, all_pages, get, permitted

FULL = "Insufficient cpu"
TAINTED = "node(s) had untolerated taint(s)"


async def groups(harness: Harness) -> list[Object]:
    told = await get(harness, "/debug/queue/groups")
    items: list[Object] = told["items"]
    assert told["numPods"] == sum(item["numPods"] for item in items)
    assert told["numGroups"] == len(items)
    return items


@pytest.fixture
async def harness() -> Harness:
    """Pods that wait for each cause but Permit, some for the same one."""
    made = Harness()
    made.put(node("n1", taints=[taint("a")]), node("n2", cpu=1))
    made.put(
        pod("huge", cpu=9),
        pod("big", cpu=2, owner="web-5d9c", labels=HASH),
        pod("gated", gates=["x"]),
    )
    await made.until_idle()
    made.put(node("n3", cpu=1, taints=[taint("a")]), pod("late", cpu=3, priority=7))
    await made.until_idle()
    made.cluster.bind_error = OSError("refused")
    made.put(pod("broken", conditions=[Condition("PodScheduled", message="refused")]))
    await made.until_idle()
    made.put(pod("low"), pod("high", ns="other", priority=4))
    return made


HASH = {"pod-template-hash": "5d9c"}


async def test_who_waits_for_the_same(harness: Harness) -> None:
    found = [
        (each["cause"], each["plugins"], each["reasons"], each["numPods"], each["words"])
        for each in await groups(harness)
    ]
    plugins = ["NodeResourcesFit", "TaintToleration"]
    assert found == [
        ("Error", [], ["refused"], 1, "default/broken could not be tried to the end: refused"),
        ("Rejected", plugins, [FULL, TAINTED], 3, f"3 pods fit on no node: {FULL}, {TAINTED}"),
        (
            "Gated",
            ["SchedulingGates"],
            ["x"],
            1,
            "default/gated is gated by SchedulingGates: x",
        ),
        ("NotTried", [], [], 2, "2 pods have not been tried yet"),
    ]


async def test_all_of_a_group(harness: Harness) -> None:
    harness.clock.advance(90)
    told = (await groups(harness))[1]

    assert told.pop("id")
    assert told.pop("message").startswith("0/3 nodes are available: 1 Insufficient cpu")
    ages = {each["pod"]: each["ageSeconds"] for each in told.pop("pods")}
    assert ages == {"default/huge": 90.0, "default/big": 90.0, "default/late": 90.0}
    assert told == {
        "cause": "Rejected",
        "plugins": ["NodeResourcesFit", "TaintToleration"],
        "reasons": [FULL, TAINTED],
        "words": f"3 pods fit on no node: {FULL}, {TAINTED}",
        "numPods": 3,
        "counts": {"unschedulable": 3},
        "highestPriority": 7,
        "oldestAgeSeconds": 90.0,
        "workloads": [
            {"namespace": "default", "workload": "deployment/web", "numPods": 1},
            {"namespace": "default", "workload": "pod/huge", "numPods": 1},
            {"namespace": "default", "workload": "pod/late", "numPods": 1},
        ],
        "numWorkloads": 3,
    }


async def test_pods_that_wait_for_permit() -> None:
    harness, _ = permitted("one", "two")
    (told,) = await groups(harness)
    assert (told["cause"], told["plugins"], told["counts"]) == (
        "Permit",
        ["Hesitant"],
        {"inFlight": 2},
    )
    assert told["words"] == "2 pods have room on a node, and wait for Permit of Hesitant"


async def test_a_pod_whose_victims_leave() -> None:
    harness = Harness()
    harness.put(node("n1", cpu=1), pod("old", cpu=1, node="n1"))
    harness.put(pod("new", cpu=1, priority=9, nominated="n1"))
    found = await groups(harness)
    assert [(each["cause"], each["numPods"]) for each in found] == [("Preempting", 1)]


async def test_the_pods_of_a_group_can_be_listed(harness: Harness) -> None:
    for told in await groups(harness):
        listed = await all_pages(harness, f"/debug/queue?group={told['id']}", limit=2)
        assert len(listed) == told["numPods"]
        assert {each["pod"] for each in told["pods"]} == {each["pod"] for each in listed}


async def test_a_name_is_the_same_in_another_process(harness: Harness) -> None:
    names = {each["id"] for each in await groups(harness)}
    assert len(names) == 4
    assert names == {each["id"] for each in await groups(harness)}


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        pytest.param("", (), id="nothing is said"),
        pytest.param(
            "0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.",
            ("Insufficient cpu", "Too many pods"),
            id="without numbers, sorted",
        ),
        pytest.param(
            "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No"
            " preemption victims found for incoming pod.",
            ("Insufficient cpu",),
            id="without what preemption says",
        ),
        pytest.param(
            "0/1 nodes are available: 1 a, b and c.", ("a, b and c",), id="a comma within a reason"
        ),
        pytest.param(
            '0/4 nodes are available: persistentvolumeclaim "x" not found. no new claims',
            ('persistentvolumeclaim "x" not found',),
            id="a reason that no node has a part in",
        ),
        pytest.param("no nodes available", ("no nodes available",), id="something else"),
    ],
)
def test_the_reasons_of_a_message(message: str, reasons: tuple[str, ...]) -> None:
    assert reasons_in(message) == reasons


@settings(deadline=None)
@given(st.dictionaries(st.text("abc ,.()'", min_size=1).map(lambda t: f"r{t}r"), st.integers(1, 9)))
def test_numbers_of_nodes_do_not_matter(counts: dict[str, int]) -> None:
    counts = {
        reason: n for reason, n in counts.items() if ". " not in reason and ", " not in reason
    }
    if not counts:
        return
    entries = sorted(f"{n} {reason}" for reason, n in counts.items())
    assert reasons_in(f"0/9 nodes are available: {', '.join(entries)}.") == tuple(sorted(counts))


async def test_more_reasons_than_anybody_reads() -> None:
    harness = Harness()
    harness.put(*(pod(f"p{i}", gates=[f"gate-{i:03}"]) for i in range(MOST_GROUPS + 50)))
    found = await groups(harness)

    assert len(found) == MOST_GROUPS + 1
    rest = [each for each in found if not each["id"]]
    assert [(each["numPods"], each["reasons"]) for each in rest] == [(50, [])]
    assert rest[0]["words"] == "50 pods are gated by SchedulingGates"


async def test_many_ask_and_one_looks() -> None:
    harness = Harness()
    harness.put(*(pod(f"p{i}") for i in range(3)))
    shared = SharedGroups(harness.view)
    first, second = await asyncio.gather(shared.get(), shared.get())
    assert first is second
    harness.put(pod("more"))
    assert await shared.get() is first, "an answer is kept for a second"
    harness.clock.advance(1)
    assert (await shared.get()).num_pods == 4


async def test_many_pods_keep_nobody_waiting() -> None:
    harness = Harness()
    num_pods = 6 * REASONS_PER_TURN
    owner = [OwnerReference(kind="Job", name=f"job-{i}", controller=True) for i in range(7)]
    pods: list[Pod] = [pod(f"p{i}", owner=owner[i % 7], priority=i % 3) for i in range(num_pods)]
    harness.put(*pods)
    shared = SharedGroups(harness.view)
    async with watched_loop() as turns:
        told = await shared.get()

    (group,) = told.items
    expected = Counter(f"job/job-{i % 7}" for i in range(num_pods)).most_common(PODS_TOLD)
    assert [(workload.workload, workload.num_pods) for workload in group.workloads] == expected
    assert (group.num_pods, group.highest_priority) == (num_pods, 2)
    assert len(group.pods) == PODS_TOLD
    assert turns.count >= num_pods // REASONS_PER_TURN
    harness.clock.advance(LEAST_SECONDS)
    assert await shared.get() is told, "with many pods it is kept for longer"


async def test_by_workload() -> None:
    harness = Harness()
    harness.put(node("n1", cpu=1))
    harness.put(
        *(pod(f"web-{i}", cpu=2, owner="web-5d9c", labels=HASH) for i in range(3)),
        *(pod(f"api-{i}", cpu=2, owner="api-5d9c", labels=HASH) for i in range(2)),
        pod("alone", cpu=2),
    )
    await harness.until_idle()
    (all_of_them,) = await groups(harness)
    told = (await get(harness, "/debug/queue/groups?byWorkload=true"))["items"]
    assert [(each["workloads"][0]["workload"], each["numPods"]) for each in told] == [
        ("deployment/web", 3),
        ("deployment/api", 2),
        ("pod/alone", 1),
    ]
    assert {each["id"] for each in told} == {all_of_them["id"]}
    assert all(each["reasons"] == [FULL] for each in told)
