"""What replicas know of the pods of others, and when."""

from collections import defaultdict
from collections.abc import Callable

from berth.kube.informer.reflector import DUE_SECONDS
from berth.scheduler.shards.foreign import BOUND_SECONDS
from berth.scheduler.shards.slots import slot_of
from berth.tools.bench.shards.world import Replica, World, pod_of

Play = Callable[..., None]


def uids_on(replica: Replica, node: str) -> set[str]:
    table = replica.service.cache.table
    return set(table.pods[table.row_of[node]])


async def bound(world: World) -> dict[str, set[str]]:
    """Return the UIDs of the pods on each node, by the API."""
    on_nodes = defaultdict[str, set[str]](set)
    for pod in await world.pods():
        if pod.spec.node_name:
            on_nodes[pod.spec.node_name].add(pod.metadata.uid)
    return on_nodes


async def check_own_nodes(world: World) -> None:
    """A replica knows all pods on the nodes that it may bind to, at any moment."""
    on_nodes = await bound(world)
    for replica in world.replicas:
        parts = replica.service.shard_parts
        assert parts is not None
        for node, uids in on_nodes.items():
            if parts.ownership.is_active(node):
                assert uids <= uids_on(replica, node), node


def test_every_replica_knows_all_pods_a_second_later(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(40):
            await world.create_pod(pod_of("plain", "plain-a", f"plain-{number}"))
        await world.until_all_have_nodes(10.0)
        await world.clock.sleep(BOUND_SECONDS + DUE_SECONDS)
        on_nodes = await bound(world)
        for replica in world.replicas:
            assert len(replica.service.cache.pods()) == 40
            assert all(uids == uids_on(replica, node) for node, uids in on_nodes.items())
            replica.service.core.check_invariants()

    play(scenario, nodes=8, replicas=3)


def test_what_others_placed_is_known_before_their_nodes_are_bound_to(play: Play) -> None:
    async def scenario(world: World) -> None:
        for number in range(150):
            if number % 50 == 0:
                world.start_replica()
            await world.create_pod(pod_of("plain", "plain-a", f"plain-{number}"))
            await world.clock.sleep(0.1)
            await check_own_nodes(world)
        assert await world.until_all_have_nodes(30.0) < 20.0
        assert all(r.service.shard_parts.ownership.active for r in world.replicas)  # type: ignore[union-attr]

    play(scenario, nodes=20, replicas=2, slots=16)


def test_a_home_that_minds_other_nodes_knows_its_namespace_at_once(play: Play) -> None:
    async def scenario(world: World) -> None:
        await world.create_pod(pod_of("spread", "app-a", "spread-0"))
        await world.until_all_have_nodes(10.0)
        for number in range(30):
            await world.create_pod(pod_of("plain", "app-a", f"plain-{number}"))
        await world.clock.sleep(BOUND_SECONDS / 4)
        on_nodes = await bound(world)
        assert sum(map(len, on_nodes.values())) == 31
        home = slot_of("default", 8)
        (knowing,) = [
            replica
            for replica in world.replicas
            if replica.service.shard_parts is not None
            and home in replica.service.shard_parts.ownership.active
        ]
        assert all(uids == uids_on(knowing, node) for node, uids in on_nodes.items())

    play(scenario, nodes=8, replicas=3)
