"""What-if equals reality: a simulation ends where the scheduler ends that it was asked about.

Fifty clusters are made by chance: nodes of several sizes, with zones and taints, some gone again;
running pods with priorities and disruption budgets; pods that are pending, rejected, nominated,
gated, or members of a gang. The snapshot is that of ``GET /snapshot``, and the question goes the
way of ``POST /simulate``, byte for byte. Then the scheduler itself gets the pods that were asked
about, and goes on, second by second, for longer than anything in it waits.
"""

import random
from collections import Counter
from io import BytesIO
from typing import Any, NamedTuple

import msgspec
import pytest
from examples.plugins.gang.gang_by_label import NAME_LABEL, SIZE_LABEL, GangByLabel

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.live import LiveSnapshots
from berth.kube.objects.pod import Pod
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.profile.build import Registry
from berth.service.server.scheduler.simulation_process import SIZE, WANTS_SNAPSHOT
from berth.service.simulation_worker import work
from berth_plugins.registry import IN_TREE
from tests.builders import (
    ZONE,
    disruption_budget,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
    taint,
    toleration,
)
from tests.harness import Harness
from tests.insight.whatif.asking import manifest

SEEDS = range(50)
APPS = ("web", "db", "job")
REGISTRY: Registry = {**IN_TREE, GangByLabel.NAME: GangByLabel}
LONG_ENOUGH = 700
"""Seconds: twice the longest wait of an unschedulable pod."""


class Case(NamedTuple):
    """A scheduler at work, and the pods that somebody asks it about."""

    harness: Harness
    asked: list[Pod]
    seed: int


def configuration(rng: random.Random) -> dict[str, Any]:
    enabled = [{"name": GangByLabel.NAME}]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "percentageOfNodesToScore": rng.choice([0, 50]),
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }


def some_node(rng: random.Random, name: str) -> Any:
    taints = [taint("dedicated")] if rng.random() < 0.2 else []
    return node(
        name,
        cpu=rng.choice([2, 4, 4, 8]),
        zone=rng.choice(["a", "b", "c", ""]),
        taints=taints,
        unschedulable=rng.random() < 0.1,
    )


def some_pod(rng: random.Random, name: str, **more: Any) -> Pod:
    app = rng.choice(APPS)
    like = selector({"app": app})
    near = pod_term({"app": rng.choice(APPS)}, key=ZONE)
    wants: dict[str, Any] = rng.choice(
        [
            {},
            {},
            {},
            {"spread": [spread(selector=like)]},
            {"affinity": pod_anti_affinity(required=[pod_term(like)])},
            {"affinity": pod_affinity(required=[near])},
            {"tolerations": [toleration("dedicated")]},
        ]
    )
    priority = rng.choice([0, 0, 10, 100])
    cpu = rng.choice([1, 1, 2, 3])
    return pod(name, cpu=cpu, labels={"app": app}, priority=priority, **{**wants, **more})


def gang(rng: random.Random, name: str) -> list[Pod]:
    size = rng.randint(2, 3)
    complete = rng.random() < 0.8
    return [
        pod(
            f"{name}-{i}",
            cpu=rng.choice([1, 2]),
            labels={NAME_LABEL: name, SIZE_LABEL: str(size)},
            priority=rng.choice([0, 10]),
        )
        for i in range(size if complete else size - 1)
    ]


def some_pods(rng: random.Random, prefix: str, count: int) -> list[Pod]:
    made = []
    for i in range(count):
        chance = rng.random()
        if chance < 0.1:
            made.append(some_pod(rng, f"{prefix}{i}", gates=["later"]))
        elif chance < 0.2:
            made += gang(rng, f"{prefix}{i}")
        else:
            made.append(some_pod(rng, f"{prefix}{i}"))
    return made


async def case(seed: int) -> Case:
    """Let a scheduler work for a while, and stop it in the middle of it."""
    rng = random.Random(seed)
    harness = Harness(config=configuration(rng), registry=REGISTRY)
    nodes = [some_node(rng, f"n{i}") for i in range(rng.randint(4, 12))]
    harness.put(*nodes)
    for gone in rng.sample(nodes, rng.randint(0, 2)):  # so that others get their rows
        harness.delete(gone)
    harness.put(*(some_node(rng, f"late{i}") for i in range(rng.randint(0, 3))))
    for app in rng.sample(APPS, rng.randint(0, 2)):
        budget = disruption_budget(app, selects=selector({"app": app}), allows=rng.randint(0, 2))
        harness.put(budget)
    harness.put(*some_pods(rng, "old", rng.randint(3, 15)))
    await harness.until_idle()
    harness.clock.advance(rng.randint(0, 40))
    harness.queue.flush_backoff_completed()
    bound = [each for each in harness.cluster.pods.values() if each.spec.node_name]
    harness.delete(*rng.sample(bound, min(len(bound), rng.randint(0, 2))))
    for _ in range(rng.randint(0, 3)):
        await harness.core.step()
    harness.put(*some_pods(rng, "new", rng.randint(0, 4)))
    for _ in range(rng.randint(0, 3)):
        await harness.core.step()
    while harness.core.preemptions.is_idle is False:  # a snapshot does not say who is being evicted
        await harness.core.step()
    return Case(harness, some_pods(rng, "asked", rng.randint(1, 8)), seed)


def simulate(case: Case) -> Answer:
    """Ask as ``POST /simulate`` has it asked, in this process."""
    question = {"pods": [manifest(each) for each in case.asked], "preemption": True}
    body = msgspec.json.encode({**question, "seed": case.seed})
    snapshot = b"".join(LiveSnapshots(case.harness.core).take().encode())
    target = BytesIO()
    status = work(BytesIO(SIZE.pack(len(body)) + body + snapshot), target, REGISTRY)
    said = target.getvalue()
    assert status == 0, said
    return Answer.model_validate_json(said.removeprefix(WANTS_SNAPSHOT))


class Reality(NamedTuple):
    placements: dict[str, str]
    victims: set[str]
    messages: dict[str, str]
    """Of pods that were tried and have no node: their PodScheduled condition."""
    gated: set[str]


async def live(case: Case) -> Reality:
    """Let the scheduler go on with the pods that were asked about, as long as anything waits."""
    harness = case.harness
    harness.core.outside.rng.seed(case.seed)
    pods = harness.cluster.pods
    running = {key for key, each in pods.items() if each.spec.node_name}
    assumed = {pod.key for pod in harness.cache.pods()}
    harness.put(*case.asked)
    everybody = set(pods)
    await harness.pass_time(LONG_ENOUGH)
    assert running == assumed
    gated = {key for key in pods if harness.queue.sub_queues.place_of(key) == "gated"}
    bound = {key: each.spec.node_name for key, each in pods.items() if each.spec.node_name}
    return Reality(
        {key: where for key, where in bound.items() if key not in running},
        everybody - pods.keys(),
        {
            key: harness.cluster.conditions[key].message
            for key in pods.keys() - bound.keys() - gated
        },
        gated,
    )


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_if_equals_reality(seed: int) -> None:
    made = await case(seed)

    found = simulate(made)
    real = await live(made)

    assert found.placements == real.placements
    assert {victim.pod for victim in found.victims} == real.victims
    told = {key: group.message for group in found.unplaced for key in group.pods}
    assert told.keys() - real.victims == real.messages.keys() | real.gated
    for key, message in real.messages.items():
        # Which member of a gang is the first that blocks it differs from one attempt to the next.
        assert told[key].partition("; first blocker")[0] == message.partition("; first blocker")[0]


async def test_the_clusters_are_worth_asking_about() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        made = await case(seed)
        parts = made.harness.queue.sub_queues
        seen.update(str(parts.place_of(part.key)) for part in parts)
        seen["nominated"] += len(made.harness.queue.nominator)
        seen["rows used again"] += made.harness.cache.table.order.tolist() != sorted(
            made.harness.cache.table.order.tolist()
        )
        before = len(made.harness.cluster.events)
        real = await live(made)
        refused = {
            event.pod
            for event in made.harness.cluster.events[before:]
            if event.reason == "FailedScheduling"
        }
        seen["victims"] += len(real.victims)
        seen["placed at a later attempt"] += len(refused & real.placements.keys())
        seen["placed"] += len(real.placements)
        seen["unplaced"] += len(real.messages)
    for what in (
        "active",
        "backoff",
        "unschedulable",
        "gated",
        "nominated",
        "rows used again",
        "victims",
        "placed at a later attempt",
        "placed",
        "unplaced",
    ):
        assert seen[what] >= 3, (what, seen)
