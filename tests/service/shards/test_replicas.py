"""Several replicas on one API server: who binds what, and what happens when one ends."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from berth.insight.explain.explanation import Whereabouts
from berth.insight.explain.pod_state import pod_state
from berth.runtime.tasks import background
from berth.scheduler.shards.slots import ANTI_AFFINITY, RECORD, Slots, slot_of
from berth.service.shards.description import describe
from berth.tools.bench.shards.soak import Settings, run_soak
from berth.tools.bench.shards.truth import Truth
from berth.tools.bench.shards.workload import WEIGHTS
from berth.tools.bench.shards.world import HOSTNAME, ZONE, World, pod_of

Play = Callable[..., None]


def slots_of(world: World) -> list[list[int]]:
    return [sorted(r.service.shard_parts.ownership.active) for r in world.replicas]  # type: ignore[union-attr]


def offers_of(world: World) -> Counter[str]:
    counts: Counter[str] = Counter()
    for replica in world.replicas:
        assert replica.service.shard_parts is not None
        offers = replica.service.shard_parts.offers
        counts.update(made=offers.made, accepted=offers.accepted, refused=offers.refused)
    return counts


def sized(pod: dict[str, Any], cpu: str) -> dict[str, Any]:
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pod


def test_every_slot_has_one_replica_and_shares_are_even(play: Play) -> None:
    async def scenario(world: World) -> None:
        assert sorted(slot for slots in slots_of(world) for slot in slots) == [*range(8)]
        assert sorted(map(len, slots_of(world))) == [2, 3, 3]

    play(scenario, nodes=4, replicas=3)


def test_every_replica_binds_to_its_own_nodes(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(60):
            await world.create_pod(pod_of("plain", "plain-a", f"plain-{number}"))
        assert await world.until_all_have_nodes(10.0) < 5.0
        assert all(r.service.scheduler.binding_cycle.scheduled > 5 for r in world.replicas)
        assert not offers_of(world)["made"], "each has room of its own"

    play(scenario, nodes=12, replicas=3)


def test_a_pod_goes_to_a_node_of_another_when_no_own_node_will_do(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(24):
            pod = pod_of("plain", "plain-a", f"plain-{number}")
            pod["spec"]["nodeSelector"] = {HOSTNAME: "node-00000"}
            await world.create_pod(pod)
        assert await world.until_all_have_nodes(30.0) < 20.0
        assert offers_of(world)["accepted"] > 0
        writers = [r for r in world.replicas if r.service.scheduler.binding_cycle.scheduled]
        assert len(writers) == 1, "whoever offers a pod does not bind it"

    play(scenario, nodes=12, replicas=3)


def test_required_rules_hold_though_every_replica_places_pods(play: Play) -> None:
    async def scenario(world: World) -> None:
        zones = {n.metadata.name: n.metadata.labels[ZONE] for n in await world.nodes()}
        truth = Truth(world.api, world.clock, zones)
        async with background() as start:
            start("truth", truth.run)
            for number in range(12):
                for kind in ("apart", "spread", "together"):
                    await world.create_pod(pod_of(kind, f"{kind}-a", f"{kind}-{number}"))
            assert await world.until_all_have_nodes(30.0) < 20.0
        assert truth.bound == 36
        assert truth.broken == []

    play(scenario, nodes=16, replicas=4)


@pytest.mark.parametrize("number", [2, 6, 16])
def test_a_group_starts_together_on_the_nodes_of_one_replica_or_not_at_all(
    play: Play, number: int
) -> None:
    async def scenario(world: World) -> None:
        policy = {"schedulingPolicy": {"gang": {"minCount": number}}}
        path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
        await world.create(path, {"metadata": {"name": "g"}, "spec": policy})
        for member in range(number):
            pod = sized(pod_of("plain", "plain-a", f"g-{member}"), "3")
            pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
            await world.create_pod(pod)
        await world.clock.sleep(20.0)
        home = slot_of("default", 64)
        (room,) = [
            2 * sum(slot_of(node.metadata.name, 64) in slots for node in await world.nodes())
            for slots in slots_of(world)
            if home in slots
        ]
        bound = [pod for pod in await world.pods() if pod.spec.node_name]
        assert len(bound) == (number if number <= room else 0)

    # eight nodes with room for two pods each, which both replicas share
    play(scenario, nodes=8, replicas=2, slots=64, gates=("GenericWorkload", "GangScheduling"))


def test_a_pod_preempts_on_whichever_node(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(4):
            low = sized(pod_of("plain", "plain-a", f"low-{number}"), "7")
            low["spec"]["terminationGracePeriodSeconds"] = 0
            await world.create_pod(low)
        await world.until_all_have_nodes(30.0)
        for number in range(4):
            high = sized(pod_of("plain", "plain-a", f"high-{number}"), "7")
            high["spec"]["priorityClassName"] = "system-node-critical"
            await world.create_pod(high)
        await world.clock.sleep(60.0)
        left = {pod.metadata.name: pod.spec.node_name for pod in await world.pods()}
        assert sorted(left) == [f"high-{number}" for number in range(4)]
        assert len(set(left.values()) - {""}) == 4

    play(scenario, nodes=4, replicas=3)


def test_what_one_replica_cannot_promise_alone_is_refused(play: Play) -> None:
    async def scenario(world: World) -> None:
        pod = pod_of("apart", "apart-a", "apart")
        terms = pod["spec"]["affinity"]["podAntiAffinity"]
        terms["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] = ZONE
        await world.create_pod(pod)
        await world.clock.sleep(5.0)
        (found,) = await world.pods()
        assert not found.spec.node_name
        assert [c.message for c in found.status.conditions] == [ANTI_AFFINITY]

    play(scenario, nodes=4, replicas=2)


def test_every_replica_says_who_decides_about_a_pod(play: Play) -> None:
    async def scenario(world: World) -> None:
        await world.create_pod(sized(pod_of("plain", "plain-a", "huge"), "100"))
        await world.clock.sleep(5.0)
        (found,) = await world.pods()
        answers = [pod_state(found, replica.service.view) for replica in world.replicas]
        (here,) = [answer for answer in answers if answer.where is Whereabouts.UNSCHEDULABLE]
        (elsewhere,) = [answer for answer in answers if answer is not here]
        home = world.replicas[answers.index(here)]
        words = f"waits for default-scheduler elsewhere: {home.elector.identity} decides"
        assert elsewhere.words == f"{words} about it"
        assert home.service.keeper is not None
        assert home.service.shard_parts is not None
        shards = describe(
            home.service.keeper,
            home.service.shard_parts,
            home.service.pods.store,
            "node-00000",
            found.key,
        )
        assert [len(member.slots) for member in shards.members] == [4, 4]
        silent = {member.identity: member.silent_seconds for member in shards.members}
        assert silent.pop(shards.identity) == 0
        assert all(0 <= seconds <= 5 for seconds in silent.values())
        taken = [change.slot for change in shards.changes if change.what == "took"]
        given = [change.slot for change in shards.changes if change.what == "gave"]
        assert {*taken} - {*given} == {*shards.deciding}
        assert shards.pod is not None
        assert shards.pod.member == shards.identity == home.elector.identity

    play(scenario, nodes=4, replicas=2)


def test_nodes_of_a_zone_have_one_replica_for_as_long_as_they_are_there(play: Play) -> None:
    async def scenario(world: World) -> None:
        parts = world.replicas[0].service.shard_parts
        assert parts is not None
        slots = {
            zone: {
                parts.ownership.slot_of_node(node.metadata.name)
                for node in await world.nodes()
                if node.metadata.labels[ZONE] == zone
            }
            for zone in (f"zone-{number}" for number in range(4))
        }
        assert slots == {zone: {slot_of(zone, 8)} for zone in slots}
        relabelled = {"metadata": {"labels": {ZONE: "zone-1"}}}
        await world.api.request(
            "PATCH",
            "/api/v1/nodes/node-00000",
            body=msgspec.json.encode(relabelled),
            content_type="application/merge-patch+json",
        )
        await world.clock.sleep(30.0)
        assert parts.ownership.slot_of_node("node-00000") == slot_of("zone-0", 8)
        for number in range(60):
            await world.create_pod(pod_of("plain", "plain-a", f"plain-{number}"))
        assert await world.until_all_have_nodes(20.0) < 15.0

    play(scenario, nodes=12, replicas=3, slots=Slots(8, ZONE))


def test_a_pool_of_its_own_has_one_replica_alone(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(8):
            pod = pod_of("plain", "plain-a", f"early-{number}")
            pod["spec"]["nodeSelector"] = {ZONE: "zone-0"}
            await world.create_pod(pod)
        for number in range(60):
            await world.create_pod(sized(pod_of("plain", "plain-a", f"plain-{number}"), "1"))
        await world.clock.sleep(20.0)
        bound = [p for p in await world.pods() if p.spec.node_name]
        assert len(bound) == 48, "the other six nodes are full"
        canary = world.start_replica(pool="zone-0")
        assert await world.until_all_have_nodes(60.0) < 45.0
        assert slots_of(world)[-1] == [8]
        assert canary.service.scheduler.binding_cycle.scheduled == 20
        (node,) = [n for n in await world.nodes() if n.metadata.name == "node-00000"]
        assert node.metadata.annotations[RECORD] == f"{ZONE}=zone-0"

    play(scenario, nodes=8, replicas=2, slots=Slots(8, ZONE, ("zone-0",)))


def test_a_replica_that_ends_gives_its_slots_at_once(play: Play) -> None:
    async def scenario(world: World) -> None:
        replica = world.replicas.pop()
        replica.task.cancel()
        await world.clock.sleep(5.0)
        assert replica.task.done()
        assert sorted(slot for slots in slots_of(world) for slot in slots) == [*range(8)]

    play(scenario, nodes=4, replicas=3)


def test_a_replica_that_dies_is_replaced_after_its_lease(play: Play) -> None:
    async def scenario(world: World) -> None:
        replica = world.replicas.pop()
        own = next(iter(replica.service.shard_parts.ownership.active))  # type: ignore[union-attr]
        await replica.kill()
        node = next(n for n in await world.nodes() if slot_of(n.metadata.name, 8) == own)
        for number in range(8):  # some have their home at the dead one, some not
            pod = pod_of("plain", "plain-a", f"waits-{number}")
            pod["spec"]["nodeSelector"] = {HOSTNAME: node.metadata.name}
            await world.create_pod(pod)
        await world.clock.sleep(10.0)
        bound = [pod for pod in await world.pods() if pod.spec.node_name]
        assert not bound, "the dead may still bind to its node"
        assert await world.until_all_have_nodes(30.0) < 15.0

    play(scenario, nodes=64, replicas=2)


def test_a_process_that_stood_still_writes_nothing_when_it_wakes(play: Play) -> None:
    async def scenario(world: World) -> None:
        replica = world.replicas[0]
        replica.api.faults.goes_on.clear()
        for number in range(30):
            await world.create_pod(pod_of("plain", "plain-a", f"plain-{number}"))
        await world.clock.sleep(40.0)
        bound = replica.service.scheduler.binding_cycle.scheduled
        replica.api.faults.goes_on.set()
        await world.clock.sleep(10.0)
        assert replica.task.done(), "it was expelled"
        assert replica.service.scheduler.binding_cycle.scheduled == bound
        assert await world.until_all_have_nodes(30.0) < 25.0

    play(scenario, nodes=8, replicas=2)


def test_a_process_that_stood_still_while_another_scheduled_alone_does_not_go_on(
    play: Play,
) -> None:
    """Nobody has expelled it, and the Lease of leader election names its mode again."""

    async def scenario(world: World) -> None:
        frozen = world.replicas[0]
        frozen.api.faults.goes_on.clear()
        await world.clock.sleep(5.0)
        alone = world.start_replica(is_shared=False)
        await world.clock.sleep(30.0)
        for number in range(4):
            await world.create_pod(sized(pod_of("plain", "plain-a", f"first-{number}"), "5"))
        assert await world.until_all_have_nodes(30.0) < 20.0
        await alone.kill()
        other = world.start_replica()
        while not other.elector.is_leader:
            await world.clock.sleep(0.5)
        for number in range(4):
            await world.create_pod(sized(pod_of("plain", "plain-a", f"second-{number}"), "5"))
        frozen.api.faults.goes_on.set()
        await world.clock.sleep(60.0)
        assert frozen.task.done()
        assert len({pod.spec.node_name for pod in await world.pods()} - {""}) == 4
        assert sum(bool(pod.spec.node_name) for pod in await world.pods()) == 4

    play(scenario, nodes=4, replicas=1)


@pytest.mark.slow
def test_nothing_is_broken_whatever_fails() -> None:
    outcome = run_soak(Settings(replicas=3, slots=16, nodes=40, pods=500, faults=4, seed=2))
    assert outcome.broken == ()
    assert outcome.pending == ()
    assert outcome.waited <= 30.0
    assert outcome.kinds.keys() == WEIGHTS.keys()
