"""The configurations that are tried: changes of one that there is.

A change has a name and a value: ``percentageOfNodesToScore``; ``PLUGIN.weight``, of which 0 is that
the plugin does not score; ``PLUGIN.FIELD`` for an argument, and ``PLUGIN.FIELD.FIELD`` for what is
in it. It is made in all profiles.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final, TypeAlias

from berth.kube.objects.node import Node
from berth.kube.objects.resources import is_extended
from berth.scheduler.config.configz import to_object
from berth.scheduler.config.plugin_sets import ALL, expand
from berth.scheduler.config.types import ExtensionPoint, KubeSchedulerConfiguration
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.profile.build import Registry, implements
from berth_plugins.registry import IN_TREE

Space: TypeAlias = Mapping[str, Sequence[Any]]
"""By name of a change, the values that are tried."""
Changes: TypeAlias = Mapping[str, Any]

PERCENTAGE: Final = "percentageOfNodesToScore"
PERCENTAGES: Final = (0, 100, 30, 10)
MOST_NODES_SCORED: Final = 100
"""With fewer nodes the percentage changes nothing (spec §4.1)."""
WEIGHT: Final = "weight"
WEIGHTS: Final = (0, 1, 2, 5, 10, 20)
FIT: Final = "NodeResourcesFit"
STRATEGY: Final = f"{FIT}.scoringStrategy"
SHAPES: Final = {
    "fuller is better, and nearly full much better": ((0, 0), (70, 3), (100, 10)),
    "best at 80%": ((0, 0), (80, 10), (100, 4)),
    "best at half": ((0, 0), (50, 10), (100, 0)),
}
"""Of RequestedToCapacityRatio: utilization and score."""
MOST_CHANGES: Final = 4
"""Of one candidate."""
TRIES: Final = 100
"""To draw a candidate that was not drawn before."""


def default_space(
    config: KubeSchedulerConfiguration, registry: Registry, nodes: Iterable[Node]
) -> Space:
    """Return what is tried of any configuration: weights, strategies and the percentage.

    Plugins that are not in-tree and score are tried, too, whether *config* has them or not.
    """
    nodes = list(nodes)
    space: dict[str, Sequence[Any]] = {}
    points = implements(registry)
    scoring = {
        name: None
        for profile in config.profiles
        for name, _ in expand(profile.plugins, points)[ExtensionPoint.SCORE]
    }
    site = (
        name
        for name, kind in sorted(registry.items())
        if name not in IN_TREE and issubclass(kind, ScorePlugin)
    )
    for name in (*scoring, *site):
        space[f"{name}.{WEIGHT}"] = WEIGHTS
    if FIT in scoring:
        extended = sorted(
            {name for node in nodes for name in node.status.allocatable if is_extended(name)}
        )
        space[STRATEGY] = list(_strategies(extended))
    if len(nodes) > MOST_NODES_SCORED:
        space[PERCENTAGE] = PERCENTAGES
    return space


def _strategies(extended: Sequence[str]) -> Iterator[dict[str, Any]]:
    native = [{"name": name, "weight": 1} for name in ("cpu", "memory")]
    rare = [{"name": name, "weight": 5} for name in extended]
    for resources in [native, [*native, *rare], rare] if rare else [native]:
        for type_ in ("LeastAllocated", "MostAllocated"):
            yield {"type": type_, "resources": resources}
        for points in SHAPES.values():
            shape = [{"utilization": use, "score": score} for use, score in points]
            yield {
                "type": "RequestedToCapacityRatio",
                "resources": resources,
                "requestedToCapacityRatio": {"shape": shape},
            }


def draw(space: Space, number: int, random: Random) -> list[Changes]:
    """Draw *number* different sets of changes, or fewer if there are not so many; none is first."""
    drawn: dict[str, Changes] = {json.dumps({}): {}}
    names = list(space)
    for _ in range(TRIES * number):
        if len(drawn) == number or not names:
            break
        chosen = random.sample(names, random.randint(1, min(MOST_CHANGES, len(names))))
        changes = {name: random.choice(space[name]) for name in sorted(chosen)}
        drawn.setdefault(json.dumps(changes), changes)
    return list(drawn.values())


def changed(config: KubeSchedulerConfiguration, changes: Changes) -> dict[str, Any]:
    """Return *config* as an object, with *changes*; whether it is valid is not known."""
    document = to_object(config)
    for name, value in changes.items():
        if name == PERCENTAGE:
            document[PERCENTAGE] = value
            continue
        plugin, *fields = name.split(".")
        for profile in document["profiles"]:
            if fields == [WEIGHT]:
                _weigh(profile["plugins"], plugin, value)
            else:
                _set_argument(profile, plugin, fields, deepcopy(value))
    return document


def _weigh(plugins: dict[str, Any], plugin: str, weight: int) -> None:
    """Have *plugin* score with *weight*, and with 0 not at all."""
    score, everywhere = plugins.setdefault("score", {}), plugins.setdefault("multiPoint", {})
    disabled = score.get("disabled", [])
    enabled = [entry for entry in score.get("enabled", []) if entry["name"] != plugin]
    in_all = [entry for entry in everywhere.get("enabled", []) if entry["name"] == plugin]
    if weight:
        is_at_score = len(enabled) < len(score.get("enabled", []))
        if is_at_score or any(entry["name"] == ALL for entry in disabled):
            enabled.append({"name": plugin, "weight": weight})
        elif in_all:
            in_all[0]["weight"] = weight
        else:
            everywhere.setdefault("enabled", []).append({"name": plugin, "weight": weight})
        disabled = [entry for entry in disabled if entry["name"] != plugin]
    elif in_all and not any(entry["name"] in (ALL, plugin) for entry in disabled):
        disabled = [*disabled, {"name": plugin}]
    score["enabled"], score["disabled"] = enabled, disabled


def _set_argument(profile: dict[str, Any], plugin: str, fields: Sequence[str], value: Any) -> None:
    configs = profile.setdefault("pluginConfig", [])
    config = next((config for config in configs if config["name"] == plugin), None)
    if config is None:
        config = {"name": plugin, "args": {}}
        configs.append(config)
    args = config["args"]
    for field in fields[:-1]:
        args = args.setdefault(field, {})
    args[fields[-1]] = value
