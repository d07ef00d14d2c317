"""Defaults of a configuration: the default plugins, their args, a profile's name.

Defaults that do not depend on anything are the fields' own, in :mod:`berth.scheduler.config.types`.
"""

import json
from collections.abc import Container, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from berth.runtime.release import Behaviour
from berth.scheduler.config.feature_gates import (
    GANG_SCHEDULING,
    IN_PLACE_RESIZE_PREEMPTION,
    NODE_DECLARED_FEATURES,
    TOPOLOGY_AWARE,
    features_of,
)
from berth.scheduler.config.plugin_sets import merge_profile
from berth.scheduler.config.types import (
    API_VERSION,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
)

Model = TypeVar("Model", bound=BaseModel)

ArgsModels = Mapping[str, type[BaseModel]]
"""The type of the args of each plugin that has args, by the plugin's name.

Its JSON form is what /configz shows; empty lists and what is None are left out there.
"""

DEFAULT_SCHEDULER_NAME = "default-scheduler"

DEFAULT_PLUGINS = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginEntry(name="SchedulingGates"),
            PluginEntry(name="PrioritySort"),
            PluginEntry(name="NodeUnschedulable"),
            PluginEntry(name="NodeName"),
            PluginEntry(name="TaintToleration", weight=3),
            PluginEntry(name="NodeAffinity", weight=2),
            PluginEntry(name="NodePorts"),
            PluginEntry(name="NodeResourcesFit", weight=1),
            PluginEntry(name="VolumeRestrictions"),
            PluginEntry(name="NodeVolumeLimits"),
            PluginEntry(name="VolumeBinding"),
            PluginEntry(name="VolumeZone"),
            PluginEntry(name="PodTopologySpread", weight=2),
            PluginEntry(name="InterPodAffinity", weight=2),
            PluginEntry(name="DynamicResources", weight=2),
            PluginEntry(name="DefaultPreemption"),
            PluginEntry(name="NodeResourcesBalancedAllocation", weight=1),
            PluginEntry(name="ImageLocality", weight=1),
            PluginEntry(name="DefaultBinder"),
            PluginEntry(name="NodeDeclaredFeatures"),
        )
    )
)
"""The plugins with the default feature gates; the order matters (spec §1.1, 1.37 spec N6)."""


POD_GROUP_POST_FILTER: Final = Behaviour(
    "1.37",
    "N6",
    "Profiles have a plugin set `podGroupPostFilter`, for plugins that are asked when a group of"
    " pods does not fit.",
)


def default_plugins(features: Container[object]) -> Plugins:
    """Return the plugins with *features* on (spec §1.1, G1)."""
    enabled = DEFAULT_PLUGINS.multi_point.enabled
    if NODE_DECLARED_FEATURES not in features:
        enabled = tuple(entry for entry in enabled if entry.name != NODE_DECLARED_FEATURES)
    if IN_PLACE_RESIZE_PREEMPTION in features:
        at = [entry.name for entry in enabled].index("NodeResourcesFit")
        enabled = (*enabled[:at], PluginEntry(name="DeferredPodScheduling"), *enabled[at:])
    if GANG_SCHEDULING in features:
        enabled = (*enabled, PluginEntry(name=GANG_SCHEDULING))
    if TOPOLOGY_AWARE in features:
        names = ("TopologyPlacementGenerator", "PodGroupPodsCount")
        enabled = (*enabled, *(PluginEntry(name=name) for name in names))
    return Plugins(
        multi_point=PluginSet(enabled=enabled),
        pod_group_post_filter=PluginSet() if POD_GROUP_POST_FILTER in features else None,
    )


def apply_defaults(
    config: KubeSchedulerConfiguration, args_models: ArgsModels
) -> KubeSchedulerConfiguration:
    """Return *config* with at least one profile, and with all plugins and their args listed.

    The args that are added are empty: :func:`complete_args` is for the caller, who can say where
    args that cannot do without are missing. Raises ConfigError for feature gates that cannot be
    had.
    """
    features = features_of(config)
    plugins = default_plugins(features)
    profiles = config.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and "scheduler_name" not in profiles[0].model_fields_set:
        # Only one: several are to be told apart by names that someone chose.
        profiles = (profiles[0].model_copy(update={"scheduler_name": DEFAULT_SCHEDULER_NAME}),)
    complete = tuple(_complete_profile(profile, plugins, args_models) for profile in profiles)
    return config.model_copy(
        update={"profiles": complete, "emulated_version": features.version.emulation}
    )


def _complete_profile(
    profile: KubeSchedulerProfile, defaults: Plugins, args_models: ArgsModels
) -> KubeSchedulerProfile:
    """Merge in *defaults*; list the plugins that have args, added ones sorted by name."""
    plugins = merge_profile(profile.plugins, defaults)
    enabled = {entry.name for s in plugins.sets().values() for entry in s.enabled}
    configured = {config.name for config in profile.plugin_config}
    added = tuple(
        PluginConfig(name=name) for name in sorted(enabled - configured) if name in args_models
    )
    return profile.model_copy(
        update={"plugins": plugins, "plugin_config": profile.plugin_config + added}
    )


def args_kind(plugin: str) -> str:
    """Return the kind of a plugin's args."""
    return f"{plugin}Args"


def read_args(
    args: Mapping[str, Any], model: type[Model], features: Container[object] = ()
) -> Model:
    """Decode a plugin's args as strictly as the rest of a file; their kind is not looked at.

    *features* are the feature gates that are on, which validators find as ``info.context``.
    Raises pydantic's ValidationError.
    """
    fields = {k: v for k, v in args.items() if k not in ("kind", "apiVersion")}
    # By way of JSON: only there do strict types take a list for a tuple.
    text = json.dumps(fields)
    return model.model_validate_json(
        text, strict=True, by_alias=True, by_name=False, context=features
    )


def complete_args(
    plugin: str, args: Mapping[str, Any], model: type[BaseModel], features: Container[object] = ()
) -> dict[str, Any]:
    """Return *args* with their kind and what they leave to defaults, some of them by *features*.

    Raises pydantic's ValidationError.
    """
    checked = read_args(args, model, features)
    written = checked.model_dump(mode="json", by_alias=True, exclude={"kind", "api_version"})
    return {"kind": args_kind(plugin), "apiVersion": API_VERSION, **_without_empty(written)}


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_empty(v) for k, v in value.items() if v is not None and v != []}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value
