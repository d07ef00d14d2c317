"""Reading a configuration: decode strictly, fill in defaults, validate."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ValidationError

from berth.kube.field_errors import join
from berth.scheduler.config import decode, errors, validation
from berth.scheduler.config.defaults import (
    POD_GROUP_POST_FILTER,
    ArgsModels,
    apply_defaults,
    args_kind,
    complete_args,
)
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.config.model_errors import model_problems
from berth.scheduler.config.plugin_references import replace_references
from berth.scheduler.config.types import (
    API_VERSION,
    GROUP,
    KIND,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)

Adjust = Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]
"""What changes a decoded configuration before it is validated: flags."""


def as_is(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    return config


def emulating(release: str) -> Adjust:
    """Return what makes a configuration like *release*; "" leaves it what it says itself."""
    if not release:
        return as_is
    return lambda config: config.model_copy(update={"emulated_version": release})


def load(
    text: str | bytes | decode.Document,
    *,
    source: str,
    args_models: ArgsModels,
    known_plugins: Collection[str] | None = None,
    aliases: Mapping[str, str] = {},
    adjust: Adjust = as_is,
) -> KubeSchedulerConfiguration:
    """Read a configuration from YAML or JSON, decoded or not; *source* names it in errors.

    The result has its defaults and is valid by itself; whether its plugins fit together is for
    :mod:`berth.scheduler.config.plugin_sets`. Args of plugins in *args_models* are checked and
    completed, those of others kept as they are. With *known_plugins*, enabling any other is an
    error. *aliases* are the names of plugins by what the text may call them: ``module:Class``.

    Raises ConfigError with all problems of the text, or, when fields have wrong types, with all
    of that kind: nothing more can be checked until they are corrected.
    """
    document = text if isinstance(text, decode.Document) else decode.document(text, source=source)
    replace_references(document.value, aliases)
    return _load(document.value, document.duplicates, source, args_models, known_plugins, adjust)


def from_object(
    obj: Mapping[str, Any],
    *,
    source: str,
    args_models: ArgsModels,
    known_plugins: Collection[str] | None = None,
    adjust: Adjust = as_is,
) -> KubeSchedulerConfiguration:
    """Read a configuration that is parsed already; otherwise as :func:`load`."""
    return _load(obj, (), source, args_models, known_plugins, adjust)


def default_configuration(
    args_models: ArgsModels, *, source: str = "default configuration", adjust: Adjust = as_is
) -> KubeSchedulerConfiguration:
    """Return the configuration of someone who configures nothing, except by *adjust*."""
    empty = {"apiVersion": API_VERSION, "kind": KIND}
    return from_object(empty, source=source, args_models=args_models, adjust=adjust)


def _load(
    value: object,
    duplicates: tuple[str, ...],
    source: str,
    args_models: ArgsModels,
    known_plugins: Collection[str] | None,
    adjust: Adjust,
) -> KubeSchedulerConfiguration:
    problems = list(duplicates)
    fields = _of_our_kind(value, source)
    config = _decoded(fields, source, problems)
    if known_plugins is not None:  # before merging, which moves what the file lists
        problems += validation.unknown_plugins(config, known_plugins)
    config = adjust(config)
    problems += _fields_of_later_releases(config)
    config = _check_args(apply_defaults(config, args_models), args_models, problems)
    problems += validation.validate(config)
    if problems:
        raise ConfigError(source, problems)
    return config


def _fields_of_later_releases(config: KubeSchedulerConfiguration) -> list[str]:
    """Return a finding for each field that the release does not have; it is passed over."""
    if POD_GROUP_POST_FILTER in features_of(config):
        return []
    return [
        errors.unknown_field(join("profiles", i, "plugins", "podGroupPostFilter"))
        for i, profile in enumerate(config.profiles)
        if profile.plugins.pod_group_post_filter is not None
    ]


def _of_our_kind(value: object, source: str) -> dict[str, Any]:
    fields = _without_nulls(value) if isinstance(value, Mapping) else {}
    api_version, kind = fields.get("apiVersion", ""), fields.get("kind", "")
    if (api_version, kind) != (API_VERSION, KIND):
        group, _, version = str(api_version).rpartition("/")
        got = f"{group}/{version}, Kind={kind}"
        raise ConfigError(source, [f"couldn't decode as {KIND}, got {got}: "])
    return fields


def _without_nulls(value: Any) -> Any:
    """Drop fields that are null: to the API they are the same as absent."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value


def _decoded(
    fields: dict[str, Any], source: str, problems: list[str]
) -> KubeSchedulerConfiguration:
    """Decode *fields*; add unknown ones to *problems* and go on without them."""
    try:
        return _validated(fields)
    except ValidationError as error:
        problems += model_problems(error)
        details = error.errors(include_url=False)
        if any(detail["type"] != "extra_forbidden" for detail in details):
            raise ConfigError(source, problems) from error
        for detail in details:
            *parents, name = detail["loc"]
            _inside(fields, parents).pop(name)
        return _validated(fields)


def _validated(fields: dict[str, Any]) -> KubeSchedulerConfiguration:
    # By way of JSON: only there do strict types take a list for a tuple.
    text = json.dumps(fields)
    return KubeSchedulerConfiguration.model_validate_json(text, by_alias=True, by_name=False)


def _inside(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _check_args(
    config: KubeSchedulerConfiguration, args_models: ArgsModels, problems: list[str]
) -> KubeSchedulerConfiguration:
    """Complete the args whose models are known, and add what is wrong with them to *problems*."""
    features = features_of(config)

    def checked(path: str, plugin_config: PluginConfig) -> PluginConfig:
        name, args = plugin_config.name, plugin_config.args
        if name not in args_models:
            return plugin_config
        kind, version = args.get("kind", args_kind(name)), args.get("apiVersion", API_VERSION)
        if kind != args_kind(name):
            want = f"{args_kind(name)}.{GROUP}"
            group = str(version).rpartition("/")[0]
            problems.append(f"args for plugin {name} were not of type {want}, got {kind}.{group}")
            return plugin_config
        if version != API_VERSION:
            detail = f'must be "{API_VERSION}"'
            problems.append(errors.invalid(f"{path}.apiVersion", version, detail))
        try:
            complete = complete_args(name, args, args_models[name], features)
        except ValidationError as error:
            problems.extend(model_problems(error, path))
            return plugin_config
        return plugin_config.model_copy(update={"args": complete})

    def with_checked(i: int, profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
        done = tuple(
            checked(join("profiles", i, "pluginConfig", j, "args"), plugin_config)
            for j, plugin_config in enumerate(profile.plugin_config)
        )
        return profile.model_copy(update={"plugin_config": done})

    profiles = tuple(with_checked(i, profile) for i, profile in enumerate(config.profiles))
    return config.model_copy(update={"profiles": profiles})
