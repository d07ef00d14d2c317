"""A plugin may want other pods to be tried once this one has a node (spec §3.3)."""

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from tests.builders import node, pod
from tests.harness import Harness, with_plugins


class WakesSleepers(ReservePlugin):
    """Asks for every pod called sleeper while room is taken for another."""

    NAME = "WakesSleepers"
    DECIDES_BY_SIGNATURE = True

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        assert self.handle is not None
        sleeper = self.handle.pod("default/sleeper")
        if sleeper is not None:
            state.pods_to_activate[sleeper.key] = sleeper
        return Status.unschedulable("not now") if pod.name == "refused" else None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was taken."""


async def with_sleeper(*others: Pod) -> Harness:
    """A harness where the sleeper was tried in vain, and then *others*."""
    harness = with_plugins(WakesSleepers)
    harness.put(node("n1", cpu=4), pod("sleeper", cpu=100))
    await harness.until_idle()
    harness.put(*others)
    await harness.until_idle()
    return harness


def attempts(harness: Harness) -> int:
    return len(harness.scheduler.decisions.of("default/sleeper"))


async def test_it_is_tried_once_more_when_the_other_has_a_node() -> None:
    harness = await with_sleeper(pod("other", cpu=1))

    assert harness.placements() == {"other": "n1"}
    assert attempts(harness) == 2
    assert harness.queue.incoming_counts()["active", "ForceActivate"] == 1


async def test_it_is_not_when_the_other_gets_none() -> None:
    harness = await with_sleeper(pod("refused", cpu=1))

    assert harness.placements() == {}
    assert attempts(harness) == 1
