"""Other weights for the plugins of a profile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import default_configuration, from_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import args_models
from berth.scheduler.profile.score_weights import score_weights, with_score_weights
from berth_plugins.registry import IN_TREE

MODELS = args_models(IN_TREE)
DEFAULTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""Spec §1.5."""


def configured(**plugins: Any) -> KubeSchedulerConfiguration:
    """Return a configuration with these plugin sets in its one profile."""
    return from_object(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "mine", "plugins": plugins}],
        },
        source="test",
        args_models=MODELS,
    )


def test_the_default_weights() -> None:
    weights = score_weights(default_configuration(MODELS), IN_TREE)
    assert weights == {"default-scheduler": DEFAULTS}
    assert list(weights["default-scheduler"]) == list(DEFAULTS)


@given(
    st.dictionaries(st.sampled_from(sorted(DEFAULTS)), st.integers(0, 100)),
    st.sampled_from(
        [
            {},
            {"score": {"enabled": [{"name": "ImageLocality", "weight": 7}]}},
            {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}},
        ]
    ),
)
def test_what_is_given_replaces_what_was_and_the_order_stays(
    others: dict[str, int], plugins: dict[str, Any]
) -> None:
    config = configured(**plugins)
    before = score_weights(config, IN_TREE)["mine"]
    changed = with_score_weights(config, IN_TREE, {"mine": others}, source="weights")
    after = score_weights(changed, IN_TREE)["mine"]
    assert list(after.items()) == [
        (name, others.get(name, weight))
        for name, weight in before.items()
        if others.get(name, weight)
    ]
    others_points = {
        name: plugin_set
        for name, plugin_set in changed.profiles[0].plugins.sets().items()
        if name != "score"
    }
    assert others_points.items() <= config.profiles[0].plugins.sets().items()


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        pytest.param({"other": {}}, 'weights: profile: Not found: "other"', id="no such profile"),
        pytest.param(
            {"mine": {"NodeName": 1}},
            'weights: mine: Invalid value: "NodeName": does not score in this profile; '
            + ", ".join(sorted(DEFAULTS))
            + " do",
            id="a plugin that only filters",
        ),
    ],
)
def test_what_does_not_score_is_refused(weights: dict[str, dict[str, int]], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_score_weights(configured(), IN_TREE, weights, source="weights")
    assert str(caught.value) == problem
