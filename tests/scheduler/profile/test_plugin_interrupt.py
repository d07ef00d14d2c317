"""A plugin's call that holds the event loop is ended, and nothing else."""

import signal

import pytest

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.guard import REST_SECONDS
from berth.scheduler.profile.plugin_interrupt import SIGNAL, interrupter
from tests.builders import node, pod
from tests.harness import Harness, with_plugins


class Looping(ScalarFilter):
    """Loops until the watchdog, whose part it takes, ends the call."""

    NAME = "Looping"
    asked = 0

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        if not pod.name.startswith("trap"):
            return None
        type(self).asked += 1
        interrupter()()
        while True:
            pass


@pytest.fixture
def harness() -> Harness:
    Looping.asked = 0
    made = with_plugins(Looping)
    made.put(node("n1"))
    return made


def messages(harness: Harness, name: str) -> list[str]:
    """Return what was told about a pod that failed."""
    failed = [e for e in harness.cluster.events if e.reason == "FailedScheduling"]
    return [event.note for event in failed if event.pod == f"default/{name}"]


async def seconds_pass(harness: Harness, seconds: float) -> None:
    harness.clock.advance(seconds)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()


async def test_the_attempt_fails_and_names_the_plugin(harness: Harness) -> None:
    harness.put(pod("trap"))

    await harness.until_idle()

    (message,) = messages(harness, "trap")
    assert message.startswith('running "Looping" filter plugin: PluginInterruptedError(')
    assert "trap" not in harness.placements()


async def test_it_is_not_asked_again_for_a_while(harness: Harness) -> None:
    """Each of its calls would stop watches, probes and the API server of ``berth up``."""
    harness.put(pod("trap"), pod("trap-2"), pod("fine"))
    await harness.until_idle()
    await seconds_pass(harness, 20)

    assert Looping.asked == 1
    assert "it is asked again after 60 s" in messages(harness, "trap-2")[-1]

    await seconds_pass(harness, REST_SECONDS)

    assert Looping.asked == 2


async def test_others_wait_no_longer_than_it_rests(harness: Harness) -> None:
    trap = pod("trap")
    harness.put(trap, pod("fine"))
    await harness.until_idle()
    harness.delete(trap)

    await seconds_pass(harness, REST_SECONDS)

    assert harness.placements() == {"fine": "n1"}


def test_what_is_no_plugin_is_not_interrupted() -> None:
    interrupter()()
    assert callable(signal.getsignal(SIGNAL))
