"""From configuration to profiles: which plugins exist, in which order, with which args."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from berth.scheduler.config.defaults import read_args
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import IN_PLACE_RESIZE_PREEMPTION, features_of
from berth.scheduler.config.plugin_sets import Implements, expand_profiles
from berth.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
)
from berth.scheduler.framework.explanation import SummingUp, SumsUp
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EXTENSION_POINTS,
    FilterPlugin,
    Plugin,
    PluginArgs,
    ReservePlugin,
    ScorePlugin,
)
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS, Listers, kinds_of, with_kinds
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Verdict
from berth.scheduler.metrics.plugin_observer import NOBODY, PluginObserver
from berth.scheduler.profile.guard import Complaints, Guard, is_in_tree
from berth.scheduler.profile.observed import ObservedProfile
from berth.scheduler.profile.profile import Profile

RESOURCES_PLUGIN: Final = "NodeResourcesFit"
"""Whose ``ignoredResources`` give way to what extenders manage alone, if there is any (§9.1)."""


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
    expanded = expand_profiles(config.profiles, implements(registry))
    handle = replace(handle, features=features_of(config))
    profiles = {}
    ignored = _ignored_resources(config)
    complaints = Complaints(handle.clock)
    for profile in config.profiles:
        points = expanded[profile.scheduler_name]
        names = dict.fromkeys(name for entries in points.values() for name, _ in entries)
        observer = (observers or {}).get(profile.scheduler_name)
        guard = Guard(observer or NOBODY, complaints)
        made = {n: _make(registry[n], profile, handle, ignored, guard) for n in names}
        for plugin in made.values():
            _fail_without_state(plugin, {p.value for p in points if plugin.NAME in dict(points[p])})
        make = Profile if observer is None else partial(ObservedProfile, observer=observer)
        by_point = {
            p.value: [made[n] for n, _ in points[p]] for p in points if p in EXTENSION_POINTS
        }
        built = profiles[profile.scheduler_name] = make(
            profile.scheduler_name,
            by_point,
            weights=dict(points[ExtensionPoint.SCORE]),
            placement_weights=dict(points[ExtensionPoint.PLACEMENT_SCORE]),
            percentage_of_nodes_to_score=(
                config.percentage_of_nodes_to_score
                if profile.percentage_of_nodes_to_score is None
                else profile.percentage_of_nodes_to_score
            ),
        )
        if IN_PLACE_RESIZE_PREEMPTION in handle.features:
            for_resizes = _for_deferred_resizes(built.plugins, by_point)
            if for_resizes["permit"]:
                built.decide_resizes_by(make(profile.scheduler_name, for_resizes, weights={}))
    return profiles


def _for_deferred_resizes(
    plugins: Sequence[Plugin], by_point: Mapping[str, Sequence[Plugin]]
) -> dict[str, list[Plugin]]:
    """Return by extension point what acts on pods that wait to be resized (1.37 spec N12.2).

    A plugin that is not enabled at a point has no part there. Without a Permit plugin, nothing
    would keep such pods from being bound again.
    """
    acting = [(plugin, plugin.for_deferred_resizes()) for plugin in plugins]
    points = {
        point: [
            instead
            for plugin, instead in acting
            if isinstance(instead, kind)
            and (plugin in by_point.get(point, ()) or not isinstance(plugin, kind))
        ]
        for point, kind in EXTENSION_POINTS.items()
    }
    return {**points, "queue_sort": [*by_point["queue_sort"]]}


def check_profiles(
    config: KubeSchedulerConfiguration, registry: Registry, *, source: str = "profiles"
) -> None:
    """Raise the ConfigError that :func:`build_profiles` would, without making anything.

    *source* names the configuration in it.
    """
    expand_profiles(config.profiles, implements(registry), source=source)


def kinds_read(registry: Registry, names: Iterable[str] | None = None) -> list[Kind[Any]]:
    """Return what the plugins of *registry* declare in ``READS``, or those of *names*."""
    return [
        kind for name in (registry if names is None else names) for kind in registry[name].READS
    ]


def kinds_of_plugins(config: KubeSchedulerConfiguration, registry: Registry) -> list[Kind[Any]]:
    """Return what only the plugins of *config* read. Raises ConfigError as :func:`listers_of`."""
    return [
        kind for name, kind in kinds_of(listers_of(config, registry)).items() if name not in KINDS
    ]


def listers_of(config: KubeSchedulerConfiguration, registry: Registry) -> type[Listers]:
    """Return listers with all kinds that the plugins of *config* read.

    Raises ConfigError as :func:`check_profiles` does, and for kinds of one name that differ.
    """
    expanded = expand_profiles(config.profiles, implements(registry))
    names = dict.fromkeys(
        name for points in expanded.values() for entries in points.values() for name, _ in entries
    )
    found = with_kinds(kinds_read(registry, names))
    known = kinds_of(found)
    problems = [
        f"plugin {name!r}: READS: {kind.name} at {kind.path}: is read in another way already"
        for name in names
        for kind in registry[name].READS
        if not known[kind.name].is_like(kind)
    ]
    if problems:
        raise ConfigError("profiles", problems)
    return found


def _make(
    kind: type[Plugin],
    profile: KubeSchedulerProfile,
    handle: Handle,
    ignored: list[str],
    guard: Guard,
) -> Plugin:
    args: PluginArgs | None = None
    if kind.ARGS is not None:
        given = profile.args(kind.NAME)
        if ignored and kind.NAME == RESOURCES_PLUGIN:
            given = {**given, "ignoredResources": ignored}
        args = read_args(given, kind.ARGS, handle.features)
    if is_in_tree(kind):
        return kind(args, handle)
    try:
        plugin = kind(args, handle)
        guard.hold(plugin)
    except Exception as exc:
        problem = f"plugin {kind.NAME!r} cannot be made: {exc!r}"
        raise ConfigError(f"profile {profile.scheduler_name}", [problem]) from exc
    return plugin


def _fail_without_state(plugin: Plugin, points: set[str]) -> None:
    """Have *plugin* fail where it needs what it is not asked for at *points*, the enabled ones."""
    if (
        isinstance(plugin, FilterPlugin)
        and plugin.WITHOUT_PRE_FILTER
        and "pre_filter" not in points
    ):
        error = Status.error(plugin.WITHOUT_PRE_FILTER)
        _shadow(plugin, "filter", lambda _state, _pod, nodes: Verdict.reject(error, nodes.exists))
        if isinstance(plugin, ReservePlugin):
            _shadow(plugin, "reserve", lambda *_: error)
        for method in ("explain", "objections"):
            if hasattr(plugin, method):
                _shadow(plugin, method, lambda *_: ())
        if isinstance(plugin, SumsUp):
            _shadow(plugin, "sum_up", _nothing_more)
    if isinstance(plugin, ScorePlugin) and plugin.WITHOUT_PRE_SCORE and "pre_score" not in points:
        without = Status.error(plugin.WITHOUT_PRE_SCORE)
        _shadow(plugin, "score", lambda *_: without)


def _nothing_more(*_: object) -> SummingUp:
    yield from ()
    return ""


def _shadow(plugin: Plugin, method: str, answer: Callable[..., object]) -> None:
    setattr(plugin, method, answer)


def _ignored_resources(config: KubeSchedulerConfiguration) -> list[str]:
    """Return the resources that extenders alone look after."""
    return [
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]


def implements(registry: Registry) -> Implements:
    """Return the names of the plugins of *registry* at each extension point."""
    return {
        ExtensionPoint(point): [name for name, kind in registry.items() if issubclass(kind, base)]
        for point, base in EXTENSION_POINTS.items()
    }
