"""What ``berth up`` shows, on terminals of several sizes and in a pipe."""

from collections import Counter
from typing import Final

import pytest

from berth.runtime.tables import as_text
from berth.tools.up.progress import (
    COUNTED_AT_ONCE,
    NodeUse,
    Observer,
    Pending,
    Progress,
    ProgressNews,
    by_reason,
    count_states,
)
from berth.tools.up.view import render
from tests import builders
from tests.harness import Harness

SIZES: Final = [(80, 24), (120, 40), (40, 10)]
WHY: Final = (
    "0/20 nodes are available: 17 Insufficient cpu, 3 node(s) had untolerated taint(s). preemption:"
    " 0/20 nodes are available: 20 Preemption is not helpful for scheduling."
)
STATES: Final = {"gated": 1, "unschedulable": 1, "running": 42}


def node(name: str, *, cpu: int = 0, **more: object) -> NodeUse:
    return NodeUse(name, 3, cpu, 4000, 2, 4, **more)  # type: ignore[arg-type] # a table of options


def nodes(count: int) -> list[NodeUse]:
    """Nodes as the sample has them, the fullest first."""
    return [
        node(
            f"node-{i:02}",
            cpu=4000 - 4000 * i // count,
            zone=f"zone-{i % 3}",
            devices=(("nvidia.com/gpu", 3, 8),) if i < 2 else (),
            taints=("dedicated=gpu:NoSchedule",) if i < 2 else (),
        )
        for i in range(count)
    ]


def progress(*, count: int = 20, pending: list[Pending] | None = None) -> Progress:
    return Progress(
        states=STATES,
        scheduled=42,
        per_second=0,
        nodes=nodes(count),
        node_count=count,
        pending=[Pending("shop/too-large", 0, WHY)] if pending is None else pending,
    )


def shown(what: Progress, size: tuple[int, int]) -> list[str]:
    width, height = size
    lines = as_text(render(what, title=["berth up"], width=width, height=height), width=width)
    return lines.splitlines()


@pytest.mark.parametrize("size", [*SIZES, (20, 5), (200, 60)])
@pytest.mark.parametrize("count", [0, 1, 20, 60])
@pytest.mark.parametrize("reasons", [0, 1, 40])
def test_all_of_it_fits(size: tuple[int, int], count: int, reasons: int) -> None:
    pending = [Pending(f"shop/pod-{i}", i, f"{i} {WHY}") for i in range(reasons)]
    lines = shown(progress(count=count, pending=pending), size)
    assert len(lines) <= size[1]
    assert all(len(line) <= size[0] for line in lines)


@pytest.mark.parametrize("size", SIZES)
def test_pending_pods_come_first(size: tuple[int, int]) -> None:
    lines = shown(progress(), size)
    at = lines.index("fits nowhere")
    assert lines[at + 1].startswith("shop/too-large: 0/20 nodes")
    assert any(line.startswith("node ") for line in lines[at + 2 :])
    assert "Insufficient cpu" in " ".join(lines)


@pytest.mark.parametrize(
    ("size", "first", "more"),
    [
        pytest.param(
            (80, 24),
            "node-00     3  ████████ 100%  ████░░░░  50%  zone-0  gpu 3/8  dedicated=gpu:NoS…",
            "and 4 more nodes",
            id="80x24",
        ),
        pytest.param(
            (120, 40),
            "node-00     3  ████████████████ 100%  ████████░░░░░░░░  50%  zone-0  gpu 3/8"
            "  dedicated=gpu:NoSchedule",
            "",
            id="120x40",
        ),
        pytest.param(
            (40, 10),
            "node-00     3   100%     50%  zone-0",
            "and 19 more nodes",
            id="40x10",
        ),
    ],
)
def test_as_many_nodes_as_fit_are_shown(size: tuple[int, int], first: str, more: str) -> None:
    lines = shown(progress(), size)
    at = next(i for i, line in enumerate(lines) if line.startswith("node "))
    rows = [line for line in lines[at + 1 :] if line.startswith("node-")]
    assert rows[0] == first
    assert len(lines) == size[1] or len(rows) == 20
    assert lines[-1] == (more or rows[-1])


def test_pods_with_many_reasons_leave_room_for_nodes() -> None:
    pending = [Pending(f"shop/pod-{i:02}", 1, f"{i} {WHY}") for i in range(40)]
    lines = shown(progress(pending=pending), (80, 24))
    assert "and 74 more pods, for 37 other reasons" in lines
    assert sum(line.startswith("node-") for line in lines) >= 8


def test_pods_that_wait_for_the_same_reason_are_told_of_together() -> None:
    told = by_reason({"a/0": "memory", "a/3": "cpu", "a/1": "cpu"})
    assert [(each.who, each.why) for each in told] == [
        ("a/1 and 1 more", "cpu"), ("a/0", "memory"),
    ]  # fmt: skip


def look(harness: Harness, *, most_nodes: int) -> Progress:
    observer = Observer(harness.view)
    return observer.look(Counter(), scheduled=0, reasons={"a/b": WHY}, most_nodes=most_nodes, now=0)


async def test_pods_are_counted_by_state() -> None:
    running = builders.pod("a", node="n", phase="Running")
    starting, unbound = builders.pod("b", node="n", phase="Pending"), builders.pod("c")
    pods = [*[running] * (2 * COUNTED_AT_ONCE), starting, unbound]
    assert await count_states(pods) == {
        "running": 2 * COUNTED_AT_ONCE, "starting": 1, "unbound": 1,
    }  # fmt: skip


def test_the_fullest_nodes_are_looked_at_by_what_is_scarcest_there() -> None:
    harness = Harness()
    for name, pods in (("idle", 9), ("cpu", 9), ("gpu", 9), ("pods", 1), ("also-idle", 9)):
        harness.put(builders.node(name, cpu="4", allocatable={"nvidia.com/gpu": 2}, pods=pods))
    harness.put(builders.pod("a", node="cpu", cpu="3"))
    harness.put(builders.pod("b", node="gpu", requests={"nvidia.com/gpu": 2}))
    harness.put(builders.pod("c", node="pods"))

    found = look(harness, most_nodes=4)

    assert [node.name for node in found.nodes] == ["gpu", "pods", "cpu", "also-idle"]
    assert found.nodes[0].devices == (("nvidia.com/gpu", 2, 2),)
    assert found.node_count == 5
    assert look(harness, most_nodes=0).nodes == []


def test_what_a_node_is_like() -> None:
    harness = Harness()
    taints = [builders.taint("a", "b"), builders.taint("c", effect="NoExecute")]
    harness.put(builders.node("n", zone="z", taints=taints, unschedulable=True))

    (found,) = look(harness, most_nodes=9).nodes

    assert (found.zone, found.devices) == ("z", ())
    assert found.taints == ("a=b:NoSchedule", "c:NoExecute", "SchedulingDisabled")


def test_a_cluster_without_nodes() -> None:
    assert look(Harness(), most_nodes=9).nodes == []


def test_a_pipe_is_told_of_reasons_when_they_change() -> None:
    told = ProgressNews()
    one, other = Pending("a/1", 2, WHY), Pending("a/1", 2, "0/1 nodes are available")
    line = progress().line()

    assert told.lines(progress(pending=[one])) == [line, f"fits nowhere: a/1 and 2 more: {WHY}"]
    assert told.lines(progress(pending=[one])) == []
    assert told.lines(progress(pending=[other])) == [f"fits nowhere: {other.who}: {other.why}"]
    assert told.lines(progress(pending=[])) == []
    assert told.lines(progress(pending=[one])) == [f"fits nowhere: a/1 and 2 more: {WHY}"]


def test_a_pipe_is_not_flooded_with_reasons() -> None:
    pending = [Pending(f"a/{i}", 0, f"reason {i}") for i in range(20)]
    lines = ProgressNews().lines(progress(pending=pending))
    assert len(lines) == 7
    assert lines[-1] == "fits nowhere: 15 more, for other reasons"
