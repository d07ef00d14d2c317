"""kube-scheduler's command line: how it is parsed, and what it overrides (spec §7.2)."""

import argparse
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from berth import log
from berth.config.defaults import ArgsModels
from berth.config.errors import ConfigError
from berth.config.feature_gates import NODE_DECLARED_FEATURES, effective_gates
from berth.config.load import default_configuration, load
from berth.config.options import CHOICES, DEPRECATED, HELP, WHOLE, Options
from berth.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile
from berth.duration import Duration
from berth.release import PREVIOUS_RELEASE, RELEASE

_LEADER_ELECTION = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_CLIENT_CONNECTION = {
    "kubeconfig": "kubeconfig",
    "kube_api_content_type": "content_type",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
}
_PROFILING = {
    "profiling": "enable_profiling",
    "contention_profiling": "enable_contention_profiling",
}
_VERSION: Final = re.compile(r"1\.\d+")
_GATE_COMPONENT = "kube:"


def make_parser(prog: str) -> argparse.ArgumentParser:
    """Return a parser for all flags of kube-scheduler; the caller may add its own.

    Give it arguments by :func:`parse`, or through :func:`spelled`: argparse alone would take the
    word after a boolean flag for its value.
    """
    parser = argparse.ArgumentParser(prog=prog, usage="%(prog)s [flags]", allow_abbrev=False)
    for option in _flags():
        default = _default(option)
        settings: dict[str, Any] = {
            "dest": option.name,
            "default": argparse.SUPPRESS,
            "help": _help(option),
            "choices": option.metadata.get(CHOICES),
        }
        match default:
            case bool():
                settings |= {"type": _boolean, "metavar": "BOOL"}
            case dict():
                settings |= {"type": _gates, "action": _Merge, "metavar": "GATE=BOOL,..."}
            case tuple():
                whole = option.metadata[WHOLE]
                settings |= {"type": _one if whole else _several, "action": _Extend}
                settings |= {"metavar": "VALUE" if whole else "VALUE,..."}
            case Duration():
                settings |= {"type": _duration, "metavar": "DURATION"}
            case _:
                settings |= {"type": type(default)}
                settings |= (
                    {} if settings["choices"] else {"metavar": type(default).__name__.upper()}
                )
        parser.add_argument(*_spellings(option.name), **settings)
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Options:
    """Parse the flags in *argv*; as argparse does, write about mistakes and exit with 2."""
    parsed = options(parser.parse_args(spelled(argv)))
    for problem in _problems(parsed):
        parser.error(problem)
    return parsed


def _problems(given: Options) -> Iterator[str]:
    """Find what is wrong with values though they are of the right type."""
    if not 0 <= given.secure_port <= 65535:
        yield f"--secure-port {given.secure_port} must be between 0 and 65535, inclusive"
    try:
        log.modules(given.vmodule)
    except ValueError as error:
        yield f"--vmodule: {error}"
    hidden = given.show_hidden_metrics_for_version
    if hidden not in ("", PREVIOUS_RELEASE):
        yield (
            f"--show-hidden-metrics-for-version {hidden!r} must be omitted or {PREVIOUS_RELEASE}:"
            " only the previous minor version is allowed"
        )
    for flag, values in (
        ("--emulated-version", given.emulated_version),
        ("--min-compatibility-version", given.min_compatibility_version),
    ):
        for value in values:
            version = value.removeprefix("kube=").removeprefix("v")
            if not _VERSION.fullmatch(version):
                yield f"{flag} {value!r} must be like {RELEASE} or kube={RELEASE}"
            elif flag == "--emulated-version" and version != RELEASE:
                yield f"{flag} {value!r}: berth is like {RELEASE} only"


def spelled(argv: Sequence[str]) -> list[str]:
    """Spell flags as :func:`make_parser` knows them: dashes inside, and ``=true`` if it is meant.

    A boolean's value must come after ``=``; the next word is never it.
    """
    bare = {_spellings(f.name)[-1] for f in _flags() if isinstance(_default(f), bool)}
    bare.add("--version")
    words: list[str] = []
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            name = name.replace("_", "-")
            words.append(f"{name}=true" if not equals and name in bare else name + equals + value)
        else:
            words.append(word)
    return words


def options(namespace: argparse.Namespace) -> Options:
    """Return what *namespace* has of kube-scheduler's flags, the others at their defaults."""
    given = {f.name: getattr(namespace, f.name) for f in _flags() if hasattr(namespace, f.name)}
    return Options(explicit=frozenset(given), **given)


def configuration(
    options: Options,
    *,
    args_models: ArgsModels,
    known_plugins: Collection[str] | None = None,
    aliases: Mapping[str, str] = {},
    text: bytes | None = None,
) -> KubeSchedulerConfiguration:
    """Return the effective configuration: the file that is named, or the default; then flags.

    *known_plugins* and *aliases* are as for :func:`berth.config.load.load`. *text* is the content
    of that file if it was read already; without a file, it takes the default's place. Raises
    ConfigError, also when the file cannot be read. Flags are applied before validation, so they may
    mend a file.
    """
    adjust = partial(apply_flags, options=options)
    if not options.config and text is None:
        return default_configuration(args_models, source="command line", adjust=adjust)
    return load(
        content(options) if text is None else text,
        source=options.config or "command line",
        args_models=args_models,
        known_plugins=known_plugins,
        aliases=aliases,
        adjust=adjust,
    )


def content(options: Options) -> bytes:
    """Read the configuration file that is named. Raises ConfigError."""
    try:
        return Path(options.config).read_bytes()
    except OSError as error:
        raise ConfigError(options.config, [error.strerror or str(error)]) from error


def apply_flags(config: KubeSchedulerConfiguration, options: Options) -> KubeSchedulerConfiguration:
    """Override *config* by the flags that were given.

    Those of leader election always win; the deprecated ones only count without a file. Raises
    ConfigError for feature gates that cannot be had.
    """
    top: dict[str, Any] = {}
    client: dict[str, Any] = {}
    if not options.config:
        top = _given(options, _PROFILING)
        client = _given(options, _CLIENT_CONNECTION)
    election = _given(options, _LEADER_ELECTION)
    if not effective_gates(options.feature_gates)[NODE_DECLARED_FEATURES].enabled:
        top["profiles"] = tuple(without_plugin(p, "NodeDeclaredFeatures") for p in config.profiles)
    return config.model_copy(
        update={
            **top,
            "client_connection": config.client_connection.model_copy(update=client),
            "leader_election": config.leader_election.model_copy(update=election),
        }
    )


def without_plugin(profile: KubeSchedulerProfile, name: str) -> KubeSchedulerProfile:
    """Return *profile* as if *name* were not among the default plugins."""
    multi_point = profile.plugins.multi_point
    enabled = tuple(entry for entry in multi_point.enabled if entry.name != name)
    plugins = profile.plugins.model_copy(
        update={"multi_point": multi_point.model_copy(update={"enabled": enabled})}
    )
    return profile.model_copy(update={"plugins": plugins})


def _given(options: Options, targets: dict[str, str]) -> dict[str, Any]:
    return {
        target: getattr(options, flag)
        for flag, target in targets.items()
        if flag in options.explicit
    }


def _flags() -> list[Field[Any]]:
    return [f for f in fields(Options) if HELP in f.metadata]


def _default(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def _help(option: Field[Any]) -> str:
    note = "Deprecated: " if option.metadata.get(DEPRECATED) else ""
    default = _default(option)
    if isinstance(default, bool):
        default = str(default).lower()
    elif isinstance(default, tuple):
        default = ",".join(default)
    return f"{note}{option.metadata[HELP]}" + (f" Default: {default}" if default else "")


def _spellings(field: str) -> list[str]:
    name = "--" + field.replace("_", "-")
    return ["-v", name] if field == "v" else [name]


class _Extend(argparse.Action):
    """Collects lists: the first replaces the default, later ones are added to it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, getattr(namespace, self.dest, ()) + values)


class _Merge(argparse.Action):
    """Collects mappings: of a key given twice the last value counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), **values})


def _boolean(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"invalid boolean value: {text!r}")


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _several(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _gates(text: str) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    for item in _several(text):
        name, equals, value = item.strip().partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"missing bool value for {name}")
        gates[name.removeprefix(_GATE_COMPONENT)] = _boolean(value)
    return gates
