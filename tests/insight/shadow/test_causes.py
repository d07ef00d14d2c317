"""Neighbours that differ for a known cause, and the cause that the report tells."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Order, Shadowed, agrees
from berth.insight.shadow.moves import LONGEST
from berth.insight.shadow.report import Found, Report, report
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.listers import ApiObject
from tests.builders import node, pod, taint
from tests.insight.shadow.test_following import failing
from tests.insight.shadow.watching import Config, Told, World
from tests.insight.shadow.workload import nodes, pods

HEAD = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
FREE, FULL = node("n1", cpu=8), node("n2", cpu=4)
BIG = pod("big", uid="big", cpu=7, node="n1")
STATIC = pod("static", uid="static", cpu=7, node="n1")
ASKED = pod(cpu=1)
TAINTED = node("n1", cpu=8, taints=[taint("a")])


async def told(
    *there: ApiObject, moves: list[tuple[Any, Any]], chosen: str, wait: float = 0.0
) -> Shadowed:
    """Tell of *there*, of what moves while the other scheduler decides, and of its decision."""
    world = Told(*there, ASKED)
    async with world.running():
        for old, new in moves:
            if old is None:
                world.come(new)
            elif new is None:
                world.go(old)
            else:
                world.change(old, new)
        await world.until_looked_at() if wait else None
        world.shadow.clock.advance(wait)  # type: ignore[attr-defined]
        world.change(ASKED, ASKED.assigned_to(chosen) if chosen else failing(ASKED))
        await world.until_looked_at()
    world.shadow._core.cache.check_invariants()
    (found,) = world.found()
    return found


@pytest.mark.parametrize(
    ("there", "moves", "chosen"),
    [
        pytest.param([FREE, FULL, BIG], [(BIG, None)], "n2", id="a pod has left"),
        pytest.param([FREE, FULL], [(None, STATIC)], "n1", id="a pod came with a node"),
        pytest.param([TAINTED, FULL], [(TAINTED, FREE)], "n2", id="a taint was removed"),
        pytest.param([FREE, FULL], [(FREE, TAINTED)], "n1", id="a taint was added"),
        pytest.param([FULL], [(None, FREE)], "n2", id="a node came"),
        pytest.param([FREE, FULL], [(FREE, None)], "n1", id="a node left"),
        pytest.param(
            [FREE, FULL, BIG], [(None, node("n3", cpu=64)), (BIG, None)], "n2", id="two moved"
        ),
        pytest.param(
            [FREE, FULL, BIG],
            [(BIG, None), (None, pod("x", uid="x", cpu="100m", node="n2"))],
            "n2",
            id="one that matters, before one that does not",
        ),
    ],
)
async def test_what_moved_between_decision_and_binding_is_no_difference(
    there: list[ApiObject], moves: list[tuple[Any, Any]], chosen: str
) -> None:
    found = await told(*there, moves=moves, chosen=chosen)
    assert (agrees(found), found.order) == (True, Order.MOVED), found.words


async def test_a_failure_holds_before_a_pod_left() -> None:
    full = node("n2", cpu="100m")
    found = await told(node("n1", cpu=7), full, BIG, moves=[(BIG, None)], chosen="")
    assert (agrees(found), found.order) == (True, Order.MOVED), found.words
    other = await told(node("n1", cpu=7), BIG, moves=[(BIG, None)], chosen="")
    assert (other.result, other.same_reasons) == (Agreement.NOWHERE, False)


async def test_what_moved_long_before_excuses_nothing() -> None:
    found = await told(FREE, FULL, BIG, moves=[(BIG, None)], chosen="n2", wait=LONGEST + 1)
    assert (found.result, found.order) == (Agreement.DIFFERED, Order.WATCH)


async def test_heartbeats_are_no_moves() -> None:
    later = node("n1", cpu=8, version="2")
    found = await told(FREE, FULL, moves=[(FREE, later)], chosen="n2")
    assert (found.result, found.order) == (Agreement.DIFFERED, Order.WATCH)


class Restless(World):
    """A cluster in which something moves between each decision and its binding."""

    async def _schedule(self, at_once: int) -> bool:
        bind = self.there.scheduler.binding_cycle.run

        async def later(binding: Any) -> None:
            self._move()
            await bind(binding)

        self.there.scheduler.binding_cycle.run = later  # type: ignore[method-assign]
        try:
            return await super()._schedule(at_once)
        finally:
            self.there.scheduler.binding_cycle.run = bind  # type: ignore[method-assign]

    def _move(self) -> None:
        bound = [each for each in self.there.cluster.pods.values() if each.spec.node_name]
        if bound and self.rng.random() < 0.5:
            self.there.delete(self.rng.choice(bound))
        if self.rng.random() < 0.2:
            cordoned = self.rng.choice([*self.there.cluster.nodes.values()])
            self.put(node(cordoned.name, cpu=self.rng.choice([4, 8, 16])))


def reported(world: World) -> Report:
    comparisons = world.shadow.comparisons
    return report(
        Found(
            summary=world.shadow.summary(),
            items=tuple(comparisons.newest_first(agreements=False)),
        )
    )


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_a_neighbour_that_decides_alike_is_never_blamed(seed: int) -> None:
    import asyncio

    async def live() -> None:
        rng = random.Random(seed)
        world = Restless(seed=seed)
        world.put(*(node(f"n{i}", cpu=rng.choice([4, 8, 16])) for i in range(8)))
        world.put(*pods(rng, 40))
        found = await world.run()
        assert [each.words for each in found if not agrees(each)] == []
        said = reported(world)
        assert said.differences == ()

    asyncio.run(live())


def only(found: list[Shadowed], result: Agreement) -> list[Shadowed]:
    return [each for each in found if each.result is result]


def packing(percentage: int | None) -> Config:
    score = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    config: Config = {**HEAD, "profiles": [{"pluginConfig": [score]}]}
    return config if percentage is None else {**config, "percentageOfNodesToScore": percentage}


async def test_another_configuration_is_told_and_no_sample() -> None:
    rng = random.Random(4)
    world = World(config=packing(None), shadow={**HEAD, "percentageOfNodesToScore": 100})
    world.put(*nodes(rng, 120), *pods(rng, 60))

    differed = only(await world.run(), Agreement.DIFFERED)

    assert differed
    assert Counter(each.may_be_sampled for each in differed) == {False: len(differed)}
    said = reported(world)
    assert not any("sample" in note for note in said.notes)
    by_plugin = {difference.plugin: difference for difference in said.differences}
    assert by_plugin["NodeResourcesFit"].advice.startswith("Compare scoringStrategy")


@pytest.mark.parametrize(
    ("percentage", "number", "sampled"),
    [
        pytest.param(None, 300, True, id="by default, of many nodes"),
        pytest.param(None, 90, False, id="by default, of few nodes"),
        pytest.param(100, 300, False, id="all are scored"),
        pytest.param(50, 300, True, id="half of them"),
    ],
)
async def test_a_sample_is_blamed_where_there_may_be_one(
    percentage: int | None, number: int, *, sampled: bool
) -> None:
    """A few nodes are better than the chosen one: a sample may have missed them."""
    config = {**HEAD, **({} if percentage is None else {"percentageOfNodesToScore": percentage})}
    asked: Pod = ASKED
    better = [node(f"better{i}", cpu=64) for i in range(5)]
    world = Told(*better, *(node(f"n{i}", cpu=4) for i in range(number)), asked, config=config)
    async with world.running():
        world.change(asked, asked.assigned_to("n7"))
        await world.until_looked_at()
    (found,) = world.found()
    assert found.result is Agreement.DIFFERED
    assert found.may_be_sampled == sampled
    said = report(Found(summary=world.shadow.summary(), items=(found,)))
    tells: Callable[[str], bool] = lambda text: "percentageOfNodesToScore" in text  # noqa: E731
    assert any(map(tells, said.notes)) == sampled
    assert [tells(difference.advice) for difference in said.differences] == [sampled]
