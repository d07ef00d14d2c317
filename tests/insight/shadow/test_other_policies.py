"""A scheduler that decides otherwise, whose differences are worked out from the objects alone."""

import json
import random
from collections import Counter
from typing import Any

import yaml

from berth.insight.explain.comparison import Agreement
from berth.insight.offline.explain import explain
from berth.insight.shadow.comparisons import Shadowed
from berth.kube.objects.pod import Pod
from berth.scheduler.config.presets import preset
from berth_plugins.registry import IN_TREE
from tests.builders import to_json
from tests.insight.shadow.watching import World
from tests.insight.shadow.workload import nodes, pods


async def test_differences_from_a_scheduler_that_fills_nodes_are_named() -> None:
    rng = random.Random(2)
    world = World(config=yaml.safe_load(preset("binpack")))
    world.put(*nodes(rng, 12), *pods(rng, 60))

    found = await world.run()

    differed = [each for each in found if each.result is Agreement.DIFFERED]
    by_plugin = Counter(each.plugin for each in differed)
    assert len(differed) > 30
    assert by_plugin.most_common(1)[0][0] == "NodeResourcesFit"
    for each in differed[::5]:
        assert_as_worked_out(each, world, before=found[: found.index(each)])


def assert_as_worked_out(found: Shadowed, world: World, *, before: list[Shadowed]) -> None:
    """Evaluate the pod on the objects as they were: those *before* it have their nodes."""
    cluster = world.there.cluster
    scenario = {
        "objects": [
            *(raw("Node", node) for node in cluster.nodes.values()),
            *(raw("Pod", cluster.pods[each.pod]) for each in before),
        ],
        "pod": raw("Pod", cluster.pods[found.pod].assigned_to("")),
    }
    scores = explain(scenario, IN_TREE)["scores"]
    best = max(scores, key=lambda name: scores[name]["total"])
    here, there = scores[found.node], scores[found.chosen]

    assert here["total"] == scores[best]["total"] > there["total"]
    assert found.score is not None
    assert found.chosen_score is not None
    assert (found.score.total, found.chosen_score.total) == (here["total"], there["total"])
    assert found.num_better == sum(score["total"] > there["total"] for score in scores.values())
    ahead = {
        plugin: here["plugins"][plugin] - there["plugins"][plugin] for plugin in here["plugins"]
    }
    assert ahead[found.plugin] == max(ahead.values())


def raw(kind: str, obj: Any) -> dict[str, Any]:
    as_written: dict[str, Any] = json.loads(to_json(obj))
    if isinstance(obj, Pod):
        as_written["status"] = {}
    return {"kind": kind, **as_written}
