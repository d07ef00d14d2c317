"""Replicas whose decisions share the answers of plugins, against those that ask about every pod."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from berth.scheduler.answer_cache import answers as cached_answers
from berth.scheduler.answer_cache.cache import AnswerCache
from berth.scheduler.answer_cache.decision import Decider
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.outcome import Placed, Unschedulable
from tests.builders import node, pod, service
from tests.harness import Harness
from tests.scheduler.pair import APPS, Pair, fields_of, node_of, relabelled, varied
from tests.scheduler.pod_group.building import group, member

Vary = Callable[[dict[str, Any], random.Random], dict[str, Any]]


def alike(fields: dict[str, Any], _rng: random.Random) -> dict[str, Any]:
    return fields


async def check_one_world(seed: int, *, vary: Vary) -> None:
    rng = random.Random(seed)
    pair = Pair(seed)
    pair.put(*(node_of(number, rng) for number in range(rng.randint(2, 14))))
    pair.put(group(min_count=rng.choice([None, 3])))
    if rng.random() < 0.3:
        pair.put(service("s", selects=APPS[0]))
    templates = [fields_of(rng) for _ in range(3)]
    created = 0
    for _ in range(rng.randint(4, 9)):
        match rng.randrange(10):
            case 0:
                pair.put(node_of(rng.randrange(16), rng))
            case 1:
                alive = [*pair.both[1].cluster.pods]
                if alive:
                    pair.delete(rng.choice(alive))
            case 2:
                pair.fail_binds(fail=True)
                await pair.until_idle()
                pair.fail_binds(fail=False)
            case _:
                some = rng.sample(templates, rng.choice([1, 1, 3]))  # one, or in turns
                make = member if rng.random() < 0.3 else pod
                for _ in range(rng.randint(1, 12)):
                    created += 1
                    fields = some[created % len(some)]
                    pair.put(make(f"p{created}", **vary(fields, rng)))
                    if rng.random() < 0.1:
                        await pair.until_idle()
                    if rng.random() < 0.1:
                        pair.delete(rng.choice([*pair.both[1].cluster.pods]))
        await pair.until_idle()
    pair.check(seed)


@pytest.mark.parametrize("few", [2, 16], ids=["ahead of single rows", "ahead of all rows"])
async def test_replicas_are_decided_about_as_if_all_plugins_were_asked(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {True: 0, False: 0}
    schedule = AnswerCache.schedule

    def counted(*args: Any, **kwargs: Any) -> Placed | Unschedulable | None:
        placed = schedule(*args, **kwargs)
        shared[placed is not None] += 1
        return placed

    monkeypatch.setattr(AnswerCache, "schedule", counted)
    monkeypatch.setattr(cached_answers, "FEW", few)
    for seed in range(15):
        await check_one_world(seed, vary=alike)
    assert shared[True] > 100


async def test_pods_that_differ_are_decided_about_as_if_all_plugins_were_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared: Counter[type] = Counter()
    decide = Decider.decide

    def counted(self: Decider, *args: Any) -> Placed | Unschedulable:
        outcome = decide(self, *args)
        shared[type(outcome)] += "NodeResourcesFit" in self.cached.asked
        return outcome

    monkeypatch.setattr(Decider, "decide", counted)
    for seed in range(100, 115):
        await check_one_world(seed, vary=varied)
    assert shared[Placed] > 100
    assert shared[Unschedulable] > 20


async def test_pods_of_many_jobs_are_decided_about_as_if_all_plugins_were_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared: list[bool] = []
    decide = Decider.decide

    def counted(self: Decider, cycle: Cycle, *args: Any) -> Any:
        placed = decide(self, cycle, *args)
        shared.append(self.cached.pod.template is not cycle.pod.template)
        return placed

    monkeypatch.setattr(Decider, "decide", counted)
    for seed in range(200, 215):
        await check_one_world(seed, vary=relabelled)
    assert shared.count(True) > 100


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(1, True, id="a nominated pod of lower priority gives way"),
        pytest.param(5, False, id="one of the same priority must be left its room"),
    ],
)
async def test_replicas_beside_a_nominated_pod(
    priority: int, want: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, shared = Harness(), list[Placed | Unschedulable | None]()
    schedule = AnswerCache.schedule

    def noted(*args: Any, **kwargs: Any) -> Placed | Unschedulable | None:
        shared.append(schedule(*args, **kwargs))
        return shared[-1]

    harness.put(node("n1", cpu="4"), node("n2", cpu="4"))
    nominee = pod("nominee", cpu="9", priority=priority)
    harness.put(nominee)
    await harness.until_idle()
    harness.queue.nominator.add_nominated_pod(PodInfo(nominee), node_name="n1")
    monkeypatch.setattr(AnswerCache, "schedule", noted)
    harness.put(*(pod(f"p{number}", cpu="100m", priority=5) for number in range(4)))
    await harness.until_idle()

    assert any(shared) == want
    assert len(harness.placements()) == 4
