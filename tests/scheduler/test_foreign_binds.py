"""Who sees that somebody else binds its pods says so; and nothing else is taken for that."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from berth.kube.client.errors import UnavailableError
from berth.kube.objects.pod import Pod
from berth.scheduler.foreign_binds import PERIOD, SETTLING
from tests.builders import node, pod
from tests.harness import Harness

TOLD = "somebody else binds pods of this scheduler: is a second instance active?"


def bound(waiting: Pod, node_name: str) -> Pod:
    """*waiting* as the API server has it once it is bound."""
    spec = msgspec.structs.replace(waiting.spec, node_name=node_name)
    version = str(int(waiting.metadata.resource_version or "0") + 1)
    metadata = msgspec.structs.replace(waiting.metadata, resource_version=version)
    return msgspec.structs.replace(waiting, spec=spec, metadata=metadata)


def leader() -> Harness:
    """One that has led for long enough to know that no bind is left over."""
    harness = Harness()
    harness.put(node("n1", cpu=4), node("n2", cpu=4))
    harness.core.foreign_binds.begin()
    harness.clock.advance(SETTLING)
    return harness


def seen(harness: Harness) -> int:
    value = harness.registry.get_sample_value("berth_foreign_binds_total")
    return int(value or 0)


async def test_a_pod_that_somebody_else_binds_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    harness = leader()
    waiting = pod("p", cpu=1)
    harness.put(waiting)
    harness.put(bound(waiting, "n2"))
    await harness.until_idle()

    assert seen(harness) == 1
    [record] = [each for each in caplog.records if each.getMessage() == TOLD]
    assert record.levelno == logging.WARNING
    said: Any = record
    assert (said.pod, said.node, said.our_node) == ("default/p", "n2", "none")


async def test_a_pod_that_somebody_else_binds_elsewhere_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = leader()
    waiting = pod("p", cpu=1)
    harness.put(waiting)
    (binding,) = await harness.core.schedule_next() or ()
    other = "n2" if binding.pod.node_name == "n1" else "n1"
    harness.put(bound(waiting, other))

    assert seen(harness) == 1
    said: Any = next(record for record in caplog.records if record.getMessage() == TOLD)
    assert (said.node, said.our_node) == (other, binding.pod.node_name)


async def test_it_is_told_once_in_a_while_with_their_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = leader()
    for number in range(5):
        if number == 4:
            harness.clock.advance(PERIOD)
        waiting = pod(f"p{number}", cpu=1)
        harness.put(waiting)
        harness.put(bound(waiting, "n1"))

    told: list[Any] = [record for record in caplog.records if record.getMessage() == TOLD]
    assert [(each.pod, each.since_last_told) for each in told] == [
        ("default/p0", 1), ("default/p4", 4)
    ]  # fmt: skip
    assert seen(harness) == 5


async def own_bind(harness: Harness) -> None:
    harness.put(pod("p", cpu=1))
    await harness.until_idle()
    assert harness.placements()


async def own_bind_that_comes_late(harness: Harness) -> None:
    """Its answer was lost, it was looked up in vain, and then it was carried out."""
    harness.cluster.bind_error = UnavailableError("timed out", sent=None)
    waiting = pod("p", cpu=1)
    harness.put(waiting)
    (binding,) = await harness.core.schedule_next() or ()
    await harness.scheduler.binding_cycle.run(binding)
    harness.put(bound(harness.cluster.pods["default/p"], binding.pod.node_name))


async def made_with_a_node(harness: Harness) -> None:
    harness.put(pod("p", cpu=1, node="n1"))


async def of_another_scheduler(harness: Harness) -> None:
    waiting = pod("p", cpu=1, scheduler="other")
    harness.put(waiting)
    harness.put(bound(waiting, "n1"))


async def of_a_former_leader(harness: Harness) -> None:
    harness.core.foreign_binds.begin()
    harness.clock.advance(SETTLING - 1)
    await of_anybody(harness)


async def while_another_may_lead(harness: Harness) -> None:
    harness.core.foreign_binds.is_leading = lambda: False
    await of_anybody(harness)


async def of_anybody(harness: Harness) -> None:
    waiting = pod("p", cpu=1)
    harness.put(waiting)
    harness.put(bound(waiting, "n1"))


@pytest.mark.parametrize(
    "happens",
    [
        own_bind,
        own_bind_that_comes_late,
        made_with_a_node,
        of_another_scheduler,
        of_a_former_leader,
        while_another_may_lead,
    ],
    ids=lambda each: each.__name__.replace("_", " "),
)
async def test_what_is_no_reason_to_say_so(
    happens: Callable[[Harness], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    harness = leader()
    await happens(harness)

    assert seen(harness) == 0
    assert TOLD not in [record.getMessage() for record in caplog.records]


async def test_a_scheduler_that_does_not_run_says_nothing() -> None:
    harness = Harness()
    harness.put(node("n1", cpu=4))
    harness.clock.advance(SETTLING)
    await of_anybody(harness)

    assert seen(harness) == 0
