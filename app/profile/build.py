"""From configuration to profiles: which plugins exist, in which order, with which args."""

from collections.abc import Mapping
from functools import partial

from app.config.defaults import read_args
from app.config.plugin_sets import Implements, expand_profiles
from app.config.types import (
    ExtensionPoint,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
)
from app.framework.handle import Handle
from app.framework.interface import EXTENSION_POINTS, Plugin, PluginArgs
from app.framework.plugin_observer import PluginObserver
from app.profile.observed import ObservedProfile
from app.profile.profile import Profile

Registry = Mapping[str, type[Plugin]]
"""Plugin name to class: all plugins there are."""


def args_models(registry: Registry) -> dict[str, type[PluginArgs]]:
    """Return the args model of each plugin that takes args, for loading a configuration."""
    return {name: kind.ARGS for name, kind in registry.items() if kind.ARGS is not None}


def build_profiles(
    config: KubeSchedulerConfiguration,
    registry: Registry,
    handle: Handle,
    *,
    observers: Mapping[str, PluginObserver] | None = None,
) -> dict[str, Profile]:
    """Make every profile of *config*, by scheduler name, with plugins of its own.

    *observers* look on, each at the profile of that name; nobody does by default.
    Raises ConfigError for plugins that *registry* does not have, that are enabled where they do
    nothing, or that do not fit together.
    """
    expanded = expand_profiles(config.profiles, _implements(registry))
    profiles = {}
    for profile in config.profiles:
        points = expanded[profile.scheduler_name]
        names = dict.fromkeys(name for entries in points.values() for name, _ in entries)
        made = {name: _make(registry[name], profile, handle) for name in names}
        observer = (observers or {}).get(profile.scheduler_name)
        make = Profile if observer is None else partial(ObservedProfile, observer=observer)
        profiles[profile.scheduler_name] = make(
            profile.scheduler_name,
            {p.value: [made[n] for n, _ in points[p]] for p in points if p in EXTENSION_POINTS},
            weights=dict(points[ExtensionPoint.SCORE]),
            percentage_of_nodes_to_score=(
                config.percentage_of_nodes_to_score
                if profile.percentage_of_nodes_to_score is None
                else profile.percentage_of_nodes_to_score
            ),
        )
    return profiles


def _make(kind: type[Plugin], profile: KubeSchedulerProfile, handle: Handle) -> Plugin:
    args = None
    if kind.ARGS is not None:
        args = read_args(profile.args(kind.NAME), kind.ARGS)
    return kind(args, handle)


def _implements(registry: Registry) -> Implements:
    return {
        ExtensionPoint(point): [name for name, kind in registry.items() if issubclass(kind, base)]
        for point, base in EXTENSION_POINTS.items()
    }
