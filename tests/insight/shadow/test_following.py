"""Which pods a shadow compares, which it skips, and that nothing stops it."""

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from berth.insight.explain import comparison
from berth.insight.explain.comparison import Agreement
from berth.insight.shadow import shadow as shadows
from berth.insight.shadow.comparisons import Skipped
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from tests.builders import condition, node, pod
from tests.insight.shadow.watching import Told

replace = msgspec.structs.replace
NODES = [node("n1"), node("n2")]


def with_condition(asked: Pod, said: Condition) -> Pod:
    return replace(asked, status=replace(asked.status, conditions=(said,)))


def failing(asked: Pod, message: str = "0/2 nodes are available: 2 Insufficient cpu.") -> Pod:
    said = condition("PodScheduled", "False", reason="Unschedulable", message=message)
    return with_condition(asked, said)


def skipped(told: Told) -> dict[Skipped, int]:
    return {reason: count for reason, count in told.shadow.comparisons.skipped.items() if count}


async def followed(told: Told, *changes: tuple[Pod | None, Pod]) -> Told:
    """Tell of pods that came or changed."""
    async with told.running():
        for old, new in changes:
            if old is None:
                told.come(new)
            else:
                told.change(old, new)
        await told.until_looked_at()
    return told


async def test_a_pod_that_comes_and_is_bound_is_compared() -> None:
    told = await followed(Told(*NODES), (None, pod()), (pod(), pod().assigned_to("n1")))

    assert [each.result for each in told.found()] == [Agreement.TIE]
    assert len(told.shadow.summary().results) == len(Agreement)
    assert told.shadow.summary().waiting == 0


async def test_a_pod_is_decided_on_the_state_before_its_binding() -> None:
    """Afterwards it would fit neither beside itself nor beside the one that came next."""
    first, second = (pod(name, uid=name, cpu="3") for name in "ab")
    told = await followed(
        Told(*NODES, first, second),
        (first, first.assigned_to("n1")),
        (second, second.assigned_to("n2")),
    )

    assert [each.result for each in told.found()] == [Agreement.TIE, Agreement.AGREED]


async def test_a_failure_is_compared_when_it_says_something_else() -> None:
    asked = pod(cpu="9")
    failed, again = failing(asked), failing(asked, "0/2 nodes are available: 2 Too many pods.")
    labelled = replace(failed, metadata=replace(failed.metadata, labels={"a": "b"}))
    told = await followed(
        Told(*NODES, asked), (asked, failed), (failed, labelled), (labelled, again)
    )

    assert [each.same_reasons for each in told.found()] == [True, False]


async def test_a_pod_that_fits_here_and_failed_there() -> None:
    told = await followed(Told(*NODES, pod()), (pod(), failing(pod())))

    (found,) = told.found()
    assert found.result is Agreement.NOT_PLACED
    assert found.chosen_message == "0/2 nodes are available: 2 Insufficient cpu."


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        pytest.param(pod(gates=["x"]), Skipped.GATED, id="with a gate"),
        pytest.param(pod(scheduler="other"), None, id="of another scheduler"),
    ],
)
async def test_pods_that_are_not_compared(asked: Pod, reason: Skipped | None) -> None:
    told = await followed(Told(*NODES, asked), (asked, asked.assigned_to("n1")))

    assert told.found() == []
    assert skipped(told) == ({reason: 1} if reason else {})


async def test_pods_that_are_created_with_a_node() -> None:
    there = Told(*NODES, pod("known", node="n1"))
    told = await followed(there, (None, pod("new", uid="new", node="n1")))

    assert told.found() == []
    assert skipped(told) == {Skipped.CREATED_WITH_NODE: 1}


async def test_nothing_is_compared_that_was_missed() -> None:
    told = Told(*NODES, pod())
    told.is_relisting = True
    await followed(told, (pod(), pod().assigned_to("n1")), (None, pod("q", uid="q", node="n1")))

    assert skipped(told) == {Skipped.RELISTED: 2}


async def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadows, "MOST_BEHIND", 2)
    pods = [pod(f"p{i}", uid=f"p{i}") for i in range(5)]
    told = await followed(Told(*NODES, *pods), *((p, p.assigned_to("n1")) for p in pods))

    assert skipped(told) == {Skipped.BEHIND: 3}
    assert len(told.found()) == 2


async def test_a_pod_that_is_deleted_waits_no_more() -> None:
    told = Told(*NODES, pod(nominated="n1", priority=1), pod("other", uid="other", cpu="4"))
    assert told.shadow.summary().waiting == 2
    async with told.running():
        told.go(pod(nominated="n1", priority=1))
        told.go(NODES[1])
        other = pod("other", uid="other", cpu="4")
        told.change(other, other.assigned_to("n1"))
        await told.until_looked_at()

    assert [each.result for each in told.found()] == [Agreement.AGREED]
    assert told.shadow.summary().waiting == 0


async def test_an_object_that_cannot_be_taken_in_stops_nothing() -> None:
    nameless = pod("nameless")
    nameless = replace(nameless, metadata=replace(nameless.metadata, uid=""))
    asked = pod("asked", uid="asked")
    told = await followed(
        Told(*NODES, nameless, asked),
        (nameless, nameless.assigned_to("n1")),
        (asked, asked.assigned_to("gone/../\x1b[31m")),
    )

    assert told.shadow.handler_failures == 1
    assert told.found()[-1].result is Agreement.REFUSED


async def test_a_comparison_that_fails_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod("a", uid="a"), pod("b", uid="b")]

    def failing_once(outcome: Any, nodes: Any, chosen: Any) -> Any:
        if outcome.pod.uid == "a":
            raise ValueError("no idea")
        return comparison.compare(outcome, nodes, chosen)

    monkeypatch.setattr(shadows, "compare", failing_once)
    told = await followed(Told(*NODES, *pods), *((p, p.assigned_to("n1")) for p in pods))

    assert skipped(told) == {Skipped.ERROR: 1}
    assert [each.uid for each in told.found()] == ["b"]


async def test_metrics() -> None:
    told = await followed(
        Told(*NODES, pod(cpu="9")), (pod(cpu="9"), pod(cpu="9").assigned_to("n1"))
    )
    registry = CollectorRegistry()
    registry.register(told.shadow.collector())
    text = generate_latest(registry).decode()

    assert (
        'berth_shadow_comparisons_total{order="watch",plugin="NodeResourcesFit",'
        'profile="default-scheduler",result="refused"} 1.0' in text
    )
    assert 'berth_shadow_skipped_total{reason="relisted"} 0.0' in text
    assert "berth_shadow_changes_behind 0.0" in text
