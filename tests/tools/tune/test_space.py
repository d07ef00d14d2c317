"""Changes of a configuration, and what is drawn of them."""

from random import Random
from typing import Any

import pytest

from berth.scheduler.config.load import from_object
from berth.scheduler.config.plugin_sets import expand
from berth.scheduler.config.types import API_VERSION, KIND, ExtensionPoint
from berth.scheduler.framework.interface import FilterPlugin, Plugin, ScorePlugin
from berth.scheduler.profile.build import args_models, implements
from berth.tools.tune.space import PERCENTAGE, STRATEGY, changed, default_space, draw
from berth_plugins.registry import IN_TREE
from tests.builders import node


class SiteFilter(FilterPlugin):
    NAME = "SiteFilter"


class SiteScore(ScorePlugin):
    NAME = "SiteScore"


REGISTRY: dict[str, type[Plugin]] = {**IN_TREE, "SiteScore": SiteScore, "SiteFilter": SiteFilter}
MODELS = args_models(REGISTRY)


def configuration(**fields: Any) -> Any:
    document = {"apiVersion": API_VERSION, "kind": KIND, **fields}
    return from_object(document, source="test", args_models=MODELS)


def weights(document: dict[str, Any]) -> dict[str, int]:
    (profile,) = from_object(document, source="test", args_models=MODELS).profiles
    return dict(expand(profile.plugins, implements(REGISTRY))[ExtensionPoint.SCORE])


AT_SCORE = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 7}]}}
ONLY_AT_SCORE = {
    "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity", "weight": 7}]}
}


@pytest.mark.parametrize(
    ("plugins", "change", "want"),
    [
        pytest.param({}, {"ImageLocality.weight": 5}, {"ImageLocality": 5}, id="another weight"),
        pytest.param({}, {"ImageLocality.weight": 0}, {"ImageLocality": None}, id="turned off"),
        pytest.param({}, {"SiteScore.weight": 3}, {"SiteScore": 3}, id="turned on"),
        pytest.param({}, {"SiteScore.weight": 0}, {"SiteScore": None}, id="off as it was"),
        pytest.param(AT_SCORE, {"NodeAffinity.weight": 2}, {"NodeAffinity": 2}, id="set at score"),
        pytest.param(AT_SCORE, {"NodeAffinity.weight": 0}, {"NodeAffinity": None}, id="off there"),
        pytest.param(
            ONLY_AT_SCORE,
            {"ImageLocality.weight": 4},
            {"NodeAffinity": 7, "ImageLocality": 4},
            id="on where all others are off",
        ),
        pytest.param(
            ONLY_AT_SCORE, {"NodeAffinity.weight": 0}, {"NodeAffinity": None}, id="off, as others"
        ),
    ],
)
def test_weights_are_set(
    plugins: dict[str, Any], change: dict[str, int], want: dict[str, int | None]
) -> None:
    config = configuration(profiles=[{"plugins": plugins}])
    got = weights(changed(config, change))

    assert {name: got.get(name) for name in want} == want


def test_arguments_and_the_percentage_are_set_in_all_profiles() -> None:
    config = configuration(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}])
    changes = {"NodeResourcesFit.scoringStrategy.type": "MostAllocated", PERCENTAGE: 30}
    document = changed(config, changes)

    assert document[PERCENTAGE] == 30
    args = [
        one["args"]["scoringStrategy"]["type"]
        for profile in document["profiles"]
        for one in profile["pluginConfig"]
        if one["name"] == "NodeResourcesFit"
    ]
    assert args == ["MostAllocated"] * 2


def test_what_is_tried_follows_from_plugins_and_nodes() -> None:
    few = default_space(configuration(), REGISTRY, [node("n", cpu=1000)])
    many = default_space(configuration(), IN_TREE, [node(f"n{i}", cpu=1000) for i in range(101)])

    assert "SiteScore.weight" in few
    assert "SiteFilter.weight" not in few
    assert (PERCENTAGE in few, PERCENTAGE in many) == (False, True)


def test_every_change_of_the_usual_space_is_valid() -> None:
    space = default_space(configuration(), REGISTRY, [node("n", cpu=1000)])
    for name, values in space.items():
        for value in values:
            weights(changed(configuration(), {name: value}))


def test_candidates_differ_and_the_first_changes_nothing() -> None:
    space: dict[str, list[Any]] = {"A.weight": [1, 2], STRATEGY: [{"type": "LeastAllocated"}]}
    drawn = draw(space, 50, Random(1))

    assert drawn[0] == {}
    assert len(drawn) == 6  # each of both, none, and all combinations
    assert draw(space, 50, Random(1)) == drawn
