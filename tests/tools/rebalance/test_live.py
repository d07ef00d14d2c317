"""``rebalance --apply`` on whole clusters: the goal is reached, and no cordon is left."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from berth.kube.client.errors import UnavailableError
from berth.tools.rebalance.cordons import ANNOTATION, uncordon_left_behind
from berth.tools.rebalance.patient_api import PatientApi, RebalanceStoppedError
from tests.tools.rebalance import live
from tests.tools.rebalance.live import PODS, World, running

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
NODE = "/api/v1/nodes/node-0"

Goals = dict[str, Any]


def spread_over(key: str, app: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint]}


async def workloads(world: World, rng: random.Random, nodes: int) -> None:
    """Fill a third of the cluster, partly with pods that have a budget."""
    left, total = nodes * 17, 0
    for i in range(rng.randint(3, 5)):
        name, cpu = f"app-{i}", rng.randint(1, 9)
        replicas = min(rng.randint(2, 7), left // cpu)
        if not replicas:
            break
        left -= cpu * replicas
        total += replicas
        await world.workload(
            name,
            replicas=replicas,
            cpu=f"{cpu}00m",
            kind=rng.choice(["deployments", "statefulsets"]),
            **(spread_over(rng.choice([ZONE, HOSTNAME]), name) if rng.random() < 0.5 else {}),
        )
        if replicas > 1 and rng.random() < 0.5:
            await world.until_running(total)
            await world.budget(name, available=replicas - rng.randint(1, 2))
    await world.until_running(total)


async def some_nodes_empty(world: World, rng: random.Random, nodes: int) -> Goals:
    await workloads(world, rng, nodes)
    return {"num_empty_nodes": rng.randint(1, nodes // 3)}


async def these_nodes_empty(world: World, rng: random.Random, nodes: int) -> Goals:
    await workloads(world, rng, nodes)
    names = sorted(await world.items("/api/v1/nodes"))
    return {"empty_nodes": rng.sample(names, rng.randint(1, nodes // 3))}


async def skew_mended(world: World, rng: random.Random, nodes: int) -> Goals:
    """All pods are in one zone at first."""
    found = await world.items("/api/v1/nodes")
    closed = [name for name, each in found.items() if each["metadata"]["labels"][ZONE] != "zone-1"]
    await world.cordon(*closed)
    replicas = rng.randint(3, 6)
    await world.workload("app", replicas=replicas, cpu="300m", **spread_over(ZONE, "app"))
    await world.until_running(replicas)
    await world.cordon(*closed, unschedulable=None)
    return {"mends_skew": True}


async def pod_fits(world: World, rng: random.Random, nodes: int) -> Goals:
    """No node has room for it, but each would have without one or two of its pods."""
    cpu = rng.choice(["800m", "700m"])
    kind = rng.choice(["deployments", "statefulsets"])
    await world.workload(
        "app", replicas=2 * nodes, cpu=cpu, kind=kind, **spread_over(HOSTNAME, "app")
    )
    await world.until_running(2 * nodes)
    await world.budget("app", available=2 * nodes - rng.randint(1, 2))
    await world.pod("big", cpu="3")
    return {"for_pods": ["default/big"]}


async def arrivals(world: World, rng: random.Random) -> None:
    """Somebody else creates pods meanwhile, which take room."""
    for i in range(3):
        await world.clock.sleep(rng.uniform(0.1, 4))
        await world.workload(f"other-{i}", replicas=1, cpu="100m")


KINDS: list[Callable[[World, random.Random, int], Coroutine[Any, Any, Goals]]] = [
    some_nodes_empty,
    these_nodes_empty,
    skew_mended,
    pod_fits,
]


@pytest.mark.parametrize("seed", range(50))
def test_goals_are_reached_and_no_cordon_is_left(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(4, 7)

    async def scenario(world: World) -> None:
        goals = await KINDS[seed % len(KINDS)](world, rng, nodes)
        before = len(running(await world.items(PODS)))
        cordoned_before = set()
        if seed % len(KINDS) < 2 and rng.random() < 0.3:
            cordoned_before = {"node-0"}
            await world.cordon("node-0")
        others = asyncio.create_task(arrivals(world, rng))
        found = await world.rebalancing(**goals).run()
        await others
        assert found.unmet == (), world.told
        assert world.told[-1].startswith("all goals are reached, with ")
        assert await world.cordoned() == cordoned_before
        assert await world.annotated() == {}
        assert len(running(await world.items(PODS))) >= before

    live.run(scenario, nodes=nodes, seed=seed)


# Every way out.


async def filled(world: World) -> None:
    await world.workload("web", replicas=6, cpu="500m", **spread_over(HOSTNAME, "web"))
    await world.until_running(6)


def test_a_run_that_is_cancelled_uncordons() -> None:
    async def scenario(world: World) -> None:
        await filled(world)
        running_ = asyncio.create_task(world.rebalancing(empty_nodes=["node-0", "node-1"]).run())
        await world.until("/api/v1/nodes", lambda found: "unschedulable" in found["node-1"]["spec"])
        assert await world.cordoned() == {"node-0", "node-1"}
        running_.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running_
        assert (await world.cordoned(), await world.annotated()) == (set(), {})

    live.run(scenario)


def test_a_server_that_is_away_is_waited_for_and_then_the_nodes_are_uncordoned() -> None:
    async def scenario(world: World) -> None:
        await filled(world)
        away_until = 0.0

        async def before(method: str, path: str) -> None:
            nonlocal away_until
            if method == "POST" and not away_until:
                away_until = world.clock.monotonic() + 60
            if away_until > world.clock.monotonic():
                raise UnavailableError("connection refused", sent=False)

        world.api.before = before
        found = await world.rebalancing(empty_nodes=["node-0"]).run()
        assert found.unmet == ()
        assert (await world.cordoned(), await world.annotated()) == (set(), {})

        away_until = 0.0
        with pytest.raises(RebalanceStoppedError, match="is not evicted: after 45 seconds"):
            await world.rebalancing(empty_nodes=["node-1"], timeout=45).run()
        assert (await world.cordoned(), await world.annotated()) == (set(), {})

        away_until = 0.0
        with pytest.raises(RebalanceStoppedError, match="is not evicted: after 20 seconds"):
            await world.rebalancing(empty_nodes=["node-1"], timeout=20).run()
        assert world.told[-1] == (
            "node-1 stays cordoned: after 20 seconds: connection refused;"
            " `berth rebalance --uncordon` uncordons it"
        )
        assert await world.cordoned() == {"node-1"}

    live.run(scenario)


def test_what_a_killed_run_has_left_is_uncordoned_by_the_next() -> None:
    async def scenario(world: World) -> None:
        await filled(world)
        await world.cordon("node-3")
        left = {
            "metadata": {"annotations": {ANNOTATION: "other/7/then"}},
            "spec": {"unschedulable": True},
        }
        await world.ask("PATCH", NODE, left)
        with pytest.raises(RebalanceStoppedError, match="node-0 is cordoned by another rebalance"):
            await world.rebalancing(num_empty_nodes=1).run()
        assert await world.cordoned() == {"node-0", "node-3"}
        await world.rebalancing(num_empty_nodes=1).run(is_left=lambda run: run == "other/7/then")
        assert world.told[0] == "uncordon node-0"
        assert await world.cordoned() == {"node-3"}

        await world.ask("PATCH", NODE, left)
        api = PatientApi(world.api, clock=world.clock, timeout=10)
        assert await uncordon_left_behind(api, world.told.append, lambda _run: True) == {}
        assert (await world.cordoned(), await world.annotated()) == ({"node-3"}, {})

    live.run(scenario)


def test_nodes_stay_cordoned_if_that_is_asked_for() -> None:
    async def scenario(world: World) -> None:
        await filled(world)
        await world.rebalancing(empty_nodes=["node-0", "node-2"], keeps_cordons=True).run()
        assert world.told[-3:-1] == ["node-0 stays cordoned", "node-2 stays cordoned"]
        assert await world.cordoned() == {"node-0", "node-2"}
        assert await world.annotated() == {}, "they are not taken for left behind"

    live.run(scenario)


def test_a_pod_that_takes_the_room_meanwhile_ends_it_without_harm() -> None:
    """The pod in the place of the evicted one goes back to its node, which is uncordoned."""

    async def scenario(world: World) -> None:
        await world.workload("web", replicas=2, cpu="1500m", **spread_over(HOSTNAME, "web"))
        await world.until_running(2)
        has_come = False

        async def before(method: str, path: str) -> None:
            nonlocal has_come
            if method == "POST" and not has_come:
                has_come = True
                await world.workload("thief", replicas=1, cpu="2")
                await world.until_running(3)

        world.api.before = before
        found = await world.rebalancing(empty_nodes=["node-0"]).run()
        [unmet] = found.unmet
        assert unmet.goal == "node-0 is empty"
        assert (await world.cordoned(), await world.annotated()) == (set(), {})
        assert len(running(await world.items(PODS))) == 3

    live.run(scenario, nodes=2)


def test_a_goal_that_comes_no_nearer_is_given_up() -> None:
    """Somebody puts each pod back where it was."""

    async def scenario(world: World) -> None:
        await skew_mended(world, random.Random(1), 4)

        async def before(method: str, path: str) -> None:
            if method == "POST":
                found = await world.items("/api/v1/nodes")
                others = [n for n, e in found.items() if e["metadata"]["labels"][ZONE] != "zone-1"]
                for name in others:
                    await world.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": [taint]}})
            elif method == "GET" and path == "/api/v1/nodes":
                found = await world.items(path)
                for name in found:
                    await world.ask("PATCH", f"{path}/{name}", {"spec": {"taints": None}})

        taint = {"key": "keep-out", "effect": "NoSchedule"}
        world.api.before = before
        with pytest.raises(RebalanceStoppedError, match="after 11 evictions the goal is no nearer"):
            await world.rebalancing(mends_skew=True).run()

    live.run(scenario)
