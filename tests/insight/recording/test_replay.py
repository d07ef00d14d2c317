"""What a scheduler decided is decided again, in every field and in the same order."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.insight.recording import lines
from berth.insight.recording.kinds import kind_name
from berth.insight.recording.lines import Decision
from berth.insight.recording.recorder import Recorder
from berth.kube.objects.pod import Pod
from berth.scheduler.binding import PREEMPTED
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import SimulatedCluster
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PermitPlugin, Plugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import WAIT, Status
from berth.scheduler.outcome import Placed
from berth.scheduler.pod_group import placement_search
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.insight.recording.world import EXTENDER, RecordedWorld, config, replayed
from tests.scheduler.pod_group.building import GATES
from tests.scheduler.test_deferred_resizes import low, new_harness, resized

WEIGHTED = config(
    profiles=[
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "NodeResourcesBalancedAllocation", "weight": 50}]
                }
            }
        }
    ]
)
"""One weight is another than by default."""


def decisions(recorded: list[bytes]) -> list[Decision]:
    read = map(lines.decode, recorded)
    return [
        decision for line in read if isinstance(line, lines.Attempt) for decision in line.decisions
    ]


async def recording(
    *, attempts: int, configuration: KubeSchedulerConfiguration | None = None, seed: int = 1
) -> list[bytes]:
    world = RecordedWorld(seed=seed, configuration=configuration)
    await world.live(attempts=attempts)
    return world.lines


async def test_all_decisions_are_made_again() -> None:
    recorded = await recording(attempts=350)

    replay = await replayed(recorded)

    made = decisions(recorded)
    assert replay.following.decisions == len(made) >= 350
    assert replay.following.differences == []
    # Of everything something has happened.
    assert {each.result for each in made} == {"scheduled", "unschedulable"}
    assert any(each.victims for each in made)
    assert any(each.equals for each in made)
    assert any(each.answered_by for each in made)
    read = [lines.decode(line) for line in recorded]
    assert any(isinstance(line, lines.Bound) and line.code for line in read)
    for kind in (lines.Preempt, lines.Answer, lines.Woke, lines.Flush, lines.Deleted):
        assert any(isinstance(line, kind) for line in read), kind


@pytest.mark.parametrize("gate", ["PodGroupLookBack", "CompositePodGroup"])
async def test_turns_within_an_attempt_are_replayed(
    gate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those within the choice of victims for a group."""
    monkeypatch.setattr(placement_search, "PODS_PER_TURN", 1)
    gates = ("GenericWorkload", "TopologyAwareWorkloadScheduling", gate)
    configuration = config(featureGates=dict.fromkeys(gates, True))
    recorded = await recording(attempts=150, configuration=configuration, seed=3)

    replay = await replayed(recorded)

    assert replay.following.decisions >= 150
    assert replay.following.differences == []
    read = [lines.decode(line) for line in recorded]
    woke = [isinstance(line, lines.Woke) for line in read]
    assert sum(woke) > 5
    assert {bool(each.node) for each in decisions(recorded) if each.gang} == {True, False}


@pytest.mark.slow
async def test_a_long_day_is_lived_again() -> None:
    recorded = await recording(attempts=1_200, seed=2)

    replay = await replayed(recorded)

    assert replay.following.decisions == len(decisions(recorded)) >= 1_200
    assert replay.following.differences == []


async def test_groups_are_placed_again() -> None:
    gates = config(featureGates=dict.fromkeys(GATES, True))
    recorded = await recording(attempts=80, configuration=gates)

    replay = await replayed(recorded)

    assert any(decision.gang and decision.node for decision in decisions(recorded))
    assert any(decision.gang and not decision.node for decision in decisions(recorded))
    assert replay.following.decisions == len(decisions(recorded))
    assert replay.following.differences == []


async def test_groups_of_groups_are_placed_again() -> None:
    names = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
    gates = config(featureGates=dict.fromkeys(names, True))
    recorded = await recording(attempts=120, configuration=gates)

    replay = await replayed(recorded)

    told = {decision.message for decision in decisions(recorded)}
    assert any("placements are available, first placement status" in message for message in told)
    assert any(decision.gang and decision.node for decision in decisions(recorded))
    assert replay.following.decisions == len(decisions(recorded))
    assert replay.following.differences == []


async def test_victims_of_resizes_are_chosen_again() -> None:
    """1.37 spec N12.2; also where there is room, nobody to evict, and what is resized at last."""
    recorded: list[bytes] = []
    harness = new_harness(journal=lambda clock: Recorder(recorded.append, clock=clock, seed=1))
    growing, done = resized(to=3), resized(to=3, conditions=())
    harness.put(node("n1", cpu=4), low("low", cpu=2), growing)
    harness.put(node("n2", cpu=2), resized("q", node="n2", to=2), resized("r", node="n2", to=2))
    await harness.pass_time(20)
    harness.put(done, pod("late", cpu=1))
    await harness.until_idle()

    replay = await replayed(recorded)

    made = decisions(recorded)
    assert any(each.victims for each in made)
    assert replay.following.decisions == len(made) >= 5
    assert replay.following.differences == []


async def test_devices_are_given_again() -> None:
    world = RecordedWorld(seed=3, devices=True)
    await world.live(attempts=150)

    replay = await replayed(world.lines)

    made = decisions(world.lines)
    assert any("DynamicResources" in each.plugins for each in made)
    assert any(claim.status.allocation for claim in world.api.listers.resource_claims)
    assert replay.following.decisions == len(made)
    assert replay.following.differences == []


async def test_what_extenders_answer_is_answered_again() -> None:
    world = RecordedWorld(seed=11, nodes=4, faults=0.02, configuration=config(extenders=[EXTENDER]))
    await world.live(attempts=250)

    replay = await replayed(world.lines)

    made = decisions(world.lines)
    assert {"filter", "prioritize", "preempt"} <= world.extender.asked.keys()
    assert any("moody" in each.message for each in made)
    assert any("code 500" in each.message for each in made)
    assert any(each.victims for each in made)
    assert replay.following.decisions == len(made)
    assert replay.following.differences == []
    assert b"sesame" not in b"".join(world.lines)


async def test_extenders_that_another_configuration_asks_otherwise() -> None:
    world = RecordedWorld(seed=12, configuration=config(extenders=[EXTENDER]), plain=True)
    await world.live(attempts=150)

    async with asyncio.timeout(20):
        replay = await replayed(world.lines, WEIGHTED)

    assert replay.following.decisions >= len(decisions(world.lines))
    assert {difference.kind for difference in replay.following.differences} <= {
        "differed",
        "tie",
        "other",
    }


class Moody(PermitPlugin):
    """Lets pods wait, refuses some, and lets some go at once; by their names."""

    NAME = "Moody"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        match (len(pod.key) + int(pod.key[-1])) % 3:
            case 0:
                return WAIT, 0.2
            case 1:
                return Status.unschedulable("not now"), 0.0
            case _:
                return None, 0.0


async def test_what_permit_says_is_lived_again() -> None:
    registry: dict[str, type[Plugin]] = {**IN_TREE, Moody.NAME: Moody}
    enabled = [{"plugins": {"permit": {"enabled": [{"name": Moody.NAME}]}}}]
    world = RecordedWorld(
        seed=4, configuration=config(registry, profiles=enabled), registry=registry
    )
    await world.live(attempts=150)

    replay = await replayed(world.lines, registry=registry)

    read = [lines.decode(line) for line in world.lines]
    refused = [each for each in read if isinstance(each, lines.Bound) and each.code]
    assert any("Moody" in each.reasons[0] for each in refused)
    assert any("not now" in decision.message for decision in decisions(world.lines))
    assert replay.following.decisions == len(decisions(world.lines))
    assert replay.following.differences == []


async def test_another_configuration_is_loaded_again() -> None:
    world = RecordedWorld(seed=6)
    reload = world.core.reconfigure
    also = {60: lambda: reload(WEIGHTED, IN_TREE), 120: lambda: reload(config(), IN_TREE)}
    await world.live(attempts=180, also=also)

    replay = await replayed(world.lines)

    read = [lines.decode(line) for line in world.lines]
    assert sum(isinstance(line, lines.Configured) for line in read) == 2
    assert replay.following.decisions == len(decisions(world.lines)) >= 180
    assert replay.following.differences == []
    without = [line for line in world.lines if not isinstance(lines.decode(line), lines.Configured)]
    assert (await replayed(without)).following.differences


async def test_a_recording_may_end_while_a_preempted_binding_waits() -> None:
    recorded = await recording(attempts=120, seed=9)
    ends = [
        number
        for number, line in enumerate(map(lines.decode, recorded))
        if isinstance(line, lines.Bound) and line.code and PREEMPTED in line.reasons[0]
    ]
    assert ends

    async with asyncio.timeout(10):
        replay = await replayed(recorded[: ends[0]])

    assert replay.following.decisions == len(decisions(recorded[: ends[0]]))
    assert replay.following.differences == []


class Oracle:
    """Says which nodes are best, on a plain copy of the cluster that follows the lines alone."""

    def __init__(self, configuration: KubeSchedulerConfiguration) -> None:
        self.cluster = SimulatedCluster(configuration, IN_TREE)
        self.kinds = {kind_name(kind): kind for kind in self.cluster.core.handlers}

    def follow(self, line: lines.Line) -> None:
        match line:
            case lines.Added() | lines.Updated() | lines.Deleted():
                obj = self.kinds[line.kind].decode(bytes(line.object))
                if isinstance(obj, Pod):
                    self.cluster.api.pods.pop(obj.key, None)
                    if not obj.spec.node_name:
                        self.take_out(obj.metadata.uid)
                if isinstance(line, lines.Deleted):
                    self.remove(obj)
                elif isinstance(obj, Pod) and not obj.spec.node_name:
                    self.cluster.api.pods[obj.key] = obj
                else:
                    self.take_out(obj.metadata.uid)
                    self.cluster.put(obj)
            case lines.Attempt():
                for decision in line.decisions:
                    if decision.node:
                        self.place(decision)
            case lines.Bound() if line.code:
                self.take_out(line.uid)

    def remove(self, obj: Any) -> None:
        if isinstance(obj, Pod):
            self.take_out(obj.metadata.uid)
        else:
            self.cluster.delete(obj)

    def place(self, decision: Decision) -> None:
        pod = self.cluster.pods[decision.pod]
        self.cluster.cache.add_pod(PodInfo(pod.assigned_to(decision.node)))

    def take_out(self, uid: str) -> None:
        known = self.cluster.cache.pod(uid)
        if known is not None:
            self.cluster.cache.remove_pod(known.pod)

    def best(self, pod_key: str) -> set[str]:
        """Return the nodes with the highest total; empty: the pod fits nowhere."""
        pod = PodInfo(self.cluster.pods[pod_key])
        profile = self.cluster.profiles["default-scheduler"]
        cycle = Cycle.begin(
            profile, pod, cache=self.cluster.cache, nominator=self.cluster.core.queue.nominator
        )
        outcome = evaluate_pod(cycle, select=smallest_name(cycle.nodes))
        if not isinstance(outcome, Placed):
            return set()
        if outcome.scores is None:
            return {outcome.node_name}
        return set(cycle.nodes.names(outcome.scores.rows[outcome.best]))


async def test_the_decisions_are_listed_that_a_weight_changes() -> None:
    """Without volumes and nominations, of which the oracle knows nothing."""
    world = RecordedWorld(seed=5, faults=0.1, plain=True)
    await world.live(attempts=250)

    replay = await replayed(world.lines, WEIGHTED)

    listed = {difference.attempt: difference for difference in replay.following.differences}
    oracle, changed = Oracle(WEIGHTED), 0
    for line in map(lines.decode, world.lines[1:]):
        if isinstance(line, lines.Attempt):
            (decision,) = line.decisions
            best = oracle.best(decision.pod)
            found = listed.get(line.number)
            if found is None or found.is_tie:
                assert decision.node in best or (not decision.node and not best)
            else:
                changed += 1
                assert found.now is not None
                assert decision.node not in best
                assert found.now.node in best
                assert found.kind == "differed"
                assert found.comparison is not None
                assert found.comparison.plugin in found.words
        oracle.follow(line)
    assert changed > 10
    assert len(listed) < replay.following.decisions


async def test_the_node_is_named_that_chance_takes_of_the_best() -> None:
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    world = RecordedWorld(seed=7, nodes=30, plain=True)
    await world.live(attempts=100)

    replay = await replayed(world.lines, config(profiles=[{"plugins": {"score": score}}]))

    differed = [
        difference for difference in replay.following.differences if difference.kind == "differed"
    ]
    assert any(each.now is not None and each.now.equals for each in differed)
    for each in differed:
        assert each.now is not None
        assert f"; here {each.now.node} " in each.words


async def test_what_the_same_configuration_would_decide_is_the_same() -> None:
    world = RecordedWorld(seed=6)
    await world.live(attempts=100)

    replay = await replayed(world.lines, config())

    assert replay.following.decisions >= 100
    assert replay.following.differences == []


async def test_another_release_decides_again_what_it_changes() -> None:
    """1.37 tells of preemptions, and nothing else becomes of the pods of this world."""
    world = RecordedWorld(configuration=config(emulatedVersion="1.36"), seed=8)
    await world.live(attempts=100)

    same = await replayed(world.lines, release="1.36")
    other = await replayed(world.lines, release="1.37")

    assert same.following.differences == []
    assert same.core.live.current.emulated_version == "1.36"
    assert other.core.live.current.emulated_version == "1.37"
    assert {each.kind for each in other.following.differences} <= {"tie"}


async def test_a_recording_that_names_no_release_is_of_the_first() -> None:
    world = RecordedWorld(configuration=config(emulatedVersion="1.36"), seed=8)
    await world.live(attempts=20)
    header = msgspec.json.decode(world.lines[0])
    del header["config"]["emulatedVersion"]
    replay = await replayed([msgspec.json.encode(header), *world.lines[1:]])
    assert replay.core.live.current.emulated_version == "1.36"
    assert replay.following.differences == []
