"""An offer of a pod, from its writing to its end."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.shards.offers import Offers
from berth.scheduler.shards.slots import offer, offered_to, refused
from tests.builders import pod

AT = "2026-01-01T00:00:00Z"


def with_condition(of: Pod, condition: Any) -> Pod:
    status = msgspec.structs.replace(of.status, conditions=(condition,))
    return msgspec.structs.replace(of, status=status)


class Writes:
    """Takes what is written."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    async def patch_pod_status(self, _pod: Pod, status: Any) -> None:
        self.written.append(status)

    def start(self, _name: str, _work: Any) -> None:
        raise AssertionError("nothing is refused here")


@pytest.mark.parametrize(
    ("became", "answer"),
    [
        pytest.param(lambda p: p.assigned_to("n1"), None, id="bound"),
        pytest.param(
            lambda p: with_condition(p, refused("full", at=AT)),
            Status.unschedulable("full"),
            id="refused",
        ),
    ],
)
async def test_an_offer_ends_with_what_the_watch_tells(became: Any, answer: Status | None) -> None:
    writes = Writes()
    offers, waiting = Offers(writes, FakeClock()), pod("a")
    making = asyncio.create_task(offers.make(PodInfo(waiting).on_node("n1")))
    await asyncio.sleep(0)
    (status,) = writes.written
    assert status["conditions"][0]["message"] == "n1"
    offers.saw(with_condition(waiting, offer("n1", at=AT)))
    await asyncio.sleep(0)
    assert not making.done()
    offers.saw(became(waiting))
    assert await making == answer


async def test_an_offer_that_is_withdrawn_ends() -> None:
    offers, waiting = Offers(Writes(), FakeClock()), pod("a")
    making = asyncio.create_task(offers.make(PodInfo(waiting).on_node("n1")))
    await asyncio.sleep(0)
    offers.withdraw(waiting.metadata.uid)
    status = await making
    assert status is not None
    assert status.is_rejected


def test_a_refused_pod_is_offered_to_nobody() -> None:
    assert offered_to(with_condition(pod("a"), offer("n1", at=AT))) == "n1"
    assert offered_to(with_condition(pod("a"), refused("full", at=AT))) == ""
