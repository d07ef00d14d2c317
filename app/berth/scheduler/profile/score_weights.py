"""The weights of score plugins: which they are, and the same configuration with others."""

from collections.abc import Mapping
from typing import TypeAlias

from berth.scheduler.config import errors
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.plugin_sets import ALL, expand_profiles
from berth.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginEntry,
    PluginSet,
)
from berth.scheduler.profile.build import Registry, implements

Weights: TypeAlias = dict[str, dict[str, int]]
"""By scheduler name of the profile, then by plugin."""


def score_weights(config: KubeSchedulerConfiguration, registry: Registry) -> Weights:
    """Return the plugins that score in each profile, in their order, with their weights.

    Raises ConfigError as :func:`berth.scheduler.profile.build.build_profiles` does.
    """
    expanded = expand_profiles(config.profiles, implements(registry))
    return {name: dict(points[ExtensionPoint.SCORE]) for name, points in expanded.items()}


def with_score_weights(
    config: KubeSchedulerConfiguration, registry: Registry, weights: Weights, *, source: str
) -> KubeSchedulerConfiguration:
    """Return *config* with other weights for some plugins; those with a weight of 0 do not score.

    *source* names the *weights* in errors. Raises ConfigError for a profile that there is not, and
    for a plugin that does not score in its profile.
    """
    present = score_weights(config, registry)
    problems = [errors.not_found("profile", name) for name in weights if name not in present]
    for name in weights.keys() & present.keys():
        scoring = ", ".join(sorted(present[name]))
        problems += [
            errors.invalid(name, plugin, f"does not score in this profile; {scoring} do")
            for plugin in weights[name]
            if plugin not in present[name]
        ]
    if problems:
        raise ConfigError(source, problems)

    def weighed(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
        name = profile.scheduler_name
        if name not in weights:
            return profile
        scoring = _scoring({**present[name], **weights[name]})
        plugins = profile.plugins.model_copy(update={"score": scoring})
        return profile.model_copy(update={"plugins": plugins})

    return config.model_copy(update={"profiles": tuple(map(weighed, config.profiles))})


def _scoring(weights: Mapping[str, int]) -> PluginSet:
    """Return the plugin set in which these plugins score, in this order, and no other."""
    entries = (PluginEntry(name=name, weight=weight) for name, weight in weights.items() if weight)
    return PluginSet(enabled=tuple(entries), disabled=(PluginEntry(name=ALL),))
