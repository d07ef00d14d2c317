"""Whatever the cluster is like: a gang starts as a whole or not at all, and a trial is no deed."""

import random
from typing import Any

import pytest

from berth.kube.client.errors import ConflictError
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.release import RELEASES
from tests.builders import host_port, node, pod, pod_anti_affinity, pod_term, selector, spread
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, member

LABELS = {"app": "x"}


def nodes_of(rng: random.Random) -> list[Node]:
    return [
        node(f"n{number}", cpu=str(rng.randint(1, 4)), labels={"zone": rng.choice("ab")})
        for number in range(rng.randint(1, 5))
    ]


def running_on(nodes: list[Node], rng: random.Random) -> list[Pod]:
    """Return pods of lower priority that take some of the room."""
    return [
        pod(f"old{number}", cpu="500m", node=rng.choice(nodes).name, priority=0)
        for number in range(rng.randint(0, 6))
    ]


def fields_of(rng: random.Random) -> dict[str, Any]:
    """Return what all pods of a group ask for."""
    fields: dict[str, Any] = {"cpu": rng.choice(["200m", "500m", "1"]), "labels": LABELS}
    match rng.randrange(4):
        case 0:
            fields["ports"] = [host_port(80)]
        case 1:
            fields["affinity"] = pod_anti_affinity(required=[pod_term(LABELS)])
        case 2:
            fields["spread"] = [spread("zone", selector=selector(LABELS))]
    return fields


def state_of(harness: Harness) -> tuple[object, ...]:
    """Return what decisions are made by."""
    table = harness.cache.table
    nominated = harness.queue.nominator.nominated_pods()
    return (
        table.requested.tolist(),
        table.non_zero_requested.tolist(),
        table.pod_count.tolist(),
        [sorted(pods) for pods in table.pods],
        {name: [each.key for each in pods] for name, pods in nominated.items()},
        harness.cache.counts(),
    )


async def check_all_or_nothing(seed: int, release: str, *, faults: bool) -> None:
    rng = random.Random(seed)
    harness = group_harness(release=release)
    nodes = nodes_of(rng)
    harness.put(*nodes, *running_on(nodes, rng))
    before, ran = state_of(harness), set(harness.placements())
    size = rng.randint(1, 6)
    min_count = rng.randint(1, size)
    fields, priority = fields_of(rng), rng.choice([0, 10])
    names = {f"m{number}" for number in range(size)}
    harness.put(group(min_count=min_count, priority=priority))
    harness.put(*(member(name, priority=priority, **fields) for name in sorted(names)))
    for _ in range(3 if faults else 0):
        for _ in range(rng.randint(1, 8)):
            is_bad = rng.random() < 0.5
            harness.cluster.bind_error = (
                ConflictError(409, "Conflict", "a fault") if is_bad else None
            )
            await harness.core.step()
            harness.core.check_invariants()
        harness.clock.advance(1)
        harness.queue.flush_backoff_completed()
    harness.cluster.bind_error = None
    await harness.pass_time(30)

    placed = set(harness.placements())
    started = placed & names
    assert not started or len(started) >= min_count, f"seed {seed}: in part"
    if not started:
        assert placed == ran, f"seed {seed}: a victim for nothing"
        assert state_of(harness) == before, f"seed {seed}: a trial has left something"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("faults", [False, True], ids=["quiet", "faults between binds"])
async def test_a_gang_starts_as_a_whole_or_not_at_all(release: str, *, faults: bool) -> None:
    for seed in range(20):
        await check_all_or_nothing(seed, release, faults=faults)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("release", RELEASES)
async def test_a_gang_starts_as_a_whole_in_hundreds_of_clusters(release: str) -> None:
    for seed in range(300):
        await check_all_or_nothing(seed, release, faults=True)


@pytest.mark.parametrize("release", RELEASES)
async def test_pods_of_a_group_get_the_nodes_that_they_would_get_one_by_one(release: str) -> None:
    compared = 0
    for seed in range(60):
        rng = random.Random(seed)
        nodes = nodes_of(rng)
        others, fields = running_on(nodes, rng), fields_of(rng)
        names = [f"m{number}" for number in range(rng.randint(1, 6))]
        alone, together = group_harness(release=release), group_harness(release=release)
        for harness in (alone, together):
            harness.put(*nodes, *others, group())
        for name in names:
            alone.put(pod(name, **fields))
            together.put(member(name, **fields))
            alone.clock.advance(1)  # so that all are tried in one order
            together.clock.advance(1)
        await alone.until_idle()
        await together.until_idle()
        if together.placements().keys() >= set(names):
            compared += 1
            assert together.placements() == alone.placements(), f"seed {seed}"
    assert compared > 20
