"""Whatever a tree of groups is like: each level has what it needs, or nothing (1.37 spec N11)."""

import random

import pytest

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import CompositePodGroup, GroupKey, PodGroup, group_of
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, group, member
from tests.scheduler.pod_group.test_composites import harness_of_composites

TOPOLOGIES = ("", "", "zone", "rack")


def put_tree(harness: Harness, rng: random.Random, priority: int) -> CompositePodGroup:
    """Create groups of up to three levels, in any order, with pods of one CPU each."""
    root = composite(
        min_count=rng.choice([None, 1, 2]), topology=rng.choice(TOPOLOGIES), priority=priority
    )
    groups: list[PodGroup] = [root]
    parents = ["root"]
    if rng.random() < 0.5:
        parents.append("mid")
        groups.append(
            composite(
                "mid",
                parent="root",
                min_count=rng.choice([None, 1, 2]),
                topology=rng.choice(TOPOLOGIES),
            )
        )
    pods = []
    for number in range(rng.randint(1, 4)):
        size, name = rng.randint(1, 3), f"g{number}"
        groups.append(
            group(
                name,
                parent=rng.choice(parents),
                min_count=rng.choice([None, rng.randint(1, size)]),
                topology=rng.choice(TOPOLOGIES),
                created=f"2026-01-0{number + 1}T00:00:00Z",
            )
        )
        pods += [member(f"{name}-{i}", name, cpu="1", priority=priority) for i in range(size)]
    objects: list[PodGroup | Pod] = [*groups, *pods]
    rng.shuffle(objects)
    harness.put(*objects)
    return root


def check_tree(harness: Harness, root: CompositePodGroup) -> int:
    """Check what holds of the pods that have nodes; return how many there are."""
    groups = harness.core.handle.pod_groups
    hierarchy = groups.hierarchy
    placed: dict[GroupKey | None, list[str]] = {}
    for name, where in harness.placements().items():
        of = group_of(harness.cluster.pods[f"default/{name}"])
        placed.setdefault(of, []).append(where)

    def nodes_of(each: PodGroup) -> list[str]:
        return [where for leaf in hierarchy.leaves(each) for where in placed.get(leaf, ())]

    for each in hierarchy.tree(root):
        on = nodes_of(each)
        if on and each.spec.scheduling_constraints is not None:
            [constraint] = each.spec.scheduling_constraints.topology
            listed = harness.cluster.nodes
            values = {listed[where].labels[constraint.key] for where in on}
            assert len(values) == 1, (each.key, values)
        if on:
            assert hierarchy.has_enough(each, lambda leaf: len(placed.get(leaf, ()))), each.key
    return len(nodes_of(root))


async def check(seed: int) -> None:
    rng = random.Random(seed)
    harness = harness_of_composites()
    for number in range(rng.randint(1, 6)):
        labels = {"zone": rng.choice("ab"), "rack": rng.choice("xyz")}
        harness.put(node(f"n{number}", cpu=str(rng.randint(1, 3)), labels=labels))
    for number in range(rng.randint(0, 3)):
        harness.put(pod(f"old{number}", cpu="1", priority=0))
    await harness.until_idle()
    root = put_tree(harness, rng, priority=rng.choice([0, 10]))
    await harness.until_idle()
    before = check_tree(harness, root)
    harness.core.check_invariants()
    harness.put(node("late", cpu="3", labels={"zone": "a", "rack": "x"}))
    await harness.until_idle()
    assert check_tree(harness, root) >= before
    harness.core.check_invariants()


@pytest.mark.parametrize("seed", range(60))
async def test_each_level_has_what_it_needs_or_nothing(seed: int) -> None:
    await check(seed)
