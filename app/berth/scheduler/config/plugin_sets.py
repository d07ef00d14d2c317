"""Plugins of each extension point, their order and weights (spec §1.5)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from berth.kube.field_errors import join
from berth.scheduler.config import errors
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerProfile,
    PluginEntry,
    Plugins,
    PluginSet,
)

ALL = "*"
"""In a list of disabled plugins: every one."""

Implements = Mapping[ExtensionPoint, Collection[str]]
"""The names of the plugins that implement each point. Together they are all plugins there are."""

Expanded = dict[ExtensionPoint, list[tuple[str, int]]]
"""For each point the plugins in the order in which they run, with their weights: at least 1 where
scores are weighed (``score``, ``placement_score``) unless negative, 0 elsewhere."""

_WEIGHED = frozenset({ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE})


def merge_profile(custom: Plugins, defaults: Plugins) -> Plugins:
    """Apply a profile's plugin sets to the default ones, set by set; others there are not."""
    return Plugins(
        **{
            name: _merge_set(getattr(custom, name) or PluginSet(), default)
            for name in Plugins.model_fields
            if (default := getattr(defaults, name)) is not None
        }
    )


def _merge_set(custom: PluginSet, default: PluginSet) -> PluginSet:
    disabled = [PluginEntry(name=entry.name) for entry in (*custom.disabled, *default.disabled)]
    dropped = {entry.name for entry in disabled}
    # By position: of an entry given twice only the last replaces; the other one stays, and is
    # found to be a duplicate later.
    position = {entry.name: i for i, entry in enumerate(custom.enabled)}
    enabled: list[PluginEntry] = []
    replacing: set[int] = set()
    for entry in () if ALL in dropped else default.enabled:
        if entry.name in dropped:
            continue
        if entry.name in position:
            replacing.add(position[entry.name])
            enabled.append(custom.enabled[position[entry.name]])
        else:
            enabled.append(entry)
    enabled += [entry for i, entry in enumerate(custom.enabled) if i not in replacing]
    return PluginSet(enabled=tuple(enabled), disabled=tuple(disabled))


def expand(plugins: Plugins, implements: Implements, *, path: str = "plugins") -> Expanded:
    """Resolve the merged *plugins* of one profile into what runs at each extension point.

    Raises ConfigError, about the fields below *path*, for unknown names, plugins enabled
    where they do nothing or twice, and unless there are exactly one QueueSort plugin, at least one
    Bind plugin and at most one PlacementGenerate plugin.
    """
    known = {name for names in implements.values() for name in names}
    problems = _unknown(plugins, known, path)
    expanded: Expanded = {}
    for point in ExtensionPoint:
        implementing = implements.get(point, ())
        explicit = _names(plugins.at(point).enabled)
        where = join(path, point.field, "enabled")
        problems += [
            errors.invalid(where, name, f"the plugin does not implement {point.field}")
            for name in explicit
            if name in known and name not in implementing
        ]
        problems += [errors.duplicate(where, name) for name in _repeated(explicit)]
        names, repeated = _order(plugins, point, implementing)
        problems += [
            errors.duplicate(join(path, "multiPoint", "enabled"), name) for name in repeated
        ]
        expanded[point] = [(name, _weight(name, plugins, point)) for name in names]
    problems += _count_problems(expanded, path)
    if problems:
        raise ConfigError("plugins", dict.fromkeys(problems))
    return expanded


def expand_profiles(
    profiles: Sequence[KubeSchedulerProfile], implements: Implements, *, source: str = "profiles"
) -> dict[str, Expanded]:
    """Resolve every profile, by scheduler name; all share one queue, hence one way to sort it.

    *source* names the configuration in errors. Raises ConfigError with the problems of all
    profiles, and when two sort differently.
    """
    expanded: dict[str, Expanded] = {}
    problems: list[str] = []
    sorting: tuple[str, object] | None = None
    for i, profile in enumerate(profiles):
        path = join("profiles", i, "plugins")
        try:
            points = expand(profile.plugins, implements, path=path)
        except ConfigError as error:
            problems += error.problems
            continue
        expanded[profile.scheduler_name] = points
        name = points[ExtensionPoint.QUEUE_SORT][0][0]
        mine = (name, profile.args(name))
        sorting = sorting or mine
        if mine != sorting:
            where = join(path, "queueSort")
            problems.append(errors.invalid(where, name, "must be the same for all profiles"))
    if problems:
        raise ConfigError(source, problems)
    return expanded


def _unknown(plugins: Plugins, known: Collection[str], path: str) -> list[str]:
    return [
        errors.not_found(join(path, point, "enabled"), name)
        for point, plugin_set in plugins.sets().items()
        for name in _names(plugin_set.enabled)
        if name not in known
    ]


def _order(
    plugins: Plugins, point: ExtensionPoint, implementing: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return what runs at *point* in order, and what multiPoint names twice for it."""
    explicit = _names(plugins.at(point).enabled)
    disabled = _names(plugins.at(point).disabled)
    if ALL in disabled:
        return explicit, []
    multi_point = [
        name
        for name in _names(plugins.multi_point.enabled)
        if name in implementing and name not in disabled
    ]
    # A plugin that is both disabled and enabled at the point is no override: it moves to the end.
    overrides = [name for name in explicit if name in multi_point]
    others = [name for name in multi_point if name not in explicit]
    rest = [name for name in explicit if name not in multi_point]
    return overrides + list(dict.fromkeys(others)) + rest, _repeated(others)


def _weight(name: str, plugins: Plugins, point: ExtensionPoint) -> int:
    """Return the first weight given to *name*: at the point itself, else at multiPoint.

    Weights have 32 bits, so the sum of weighted scores cannot overflow 64.
    """
    if point not in _WEIGHED:
        return 0
    entries = (*plugins.at(point).enabled, *plugins.multi_point.enabled)
    return next(entry.weight for entry in entries if entry.name == name) or 1


def _count_problems(expanded: Expanded, path: str) -> list[str]:
    problems: list[str] = []
    sorting, binding, generating = (
        [name for name, _ in expanded[point]]
        for point in (
            ExtensionPoint.QUEUE_SORT,
            ExtensionPoint.BIND,
            ExtensionPoint.PLACEMENT_GENERATE,
        )
    )
    if len(sorting) != 1:
        where = join(path, "queueSort")
        problems.append(errors.invalid(where, sorting, "exactly one queue sort plugin is needed"))
    if not binding:
        where = join(path, "bind")
        problems.append(errors.invalid(where, binding, "at least one bind plugin is needed"))
    if len(generating) > 1:
        where = join(path, "placementGenerate")
        problems.append(errors.invalid(where, generating, "only one plugin can be enabled"))
    return problems


def _names(entries: Iterable[PluginEntry]) -> list[str]:
    return [entry.name for entry in entries]


def _repeated(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for i, name in enumerate(names) if name in names[:i]))
