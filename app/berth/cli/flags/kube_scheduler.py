"""kube-scheduler's command line, and what it overrides in a configuration (spec §7.2)."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field
from typing import TYPE_CHECKING, Any, Final

from berth.cli.flags.versions import Merge, boolean, feature_gates, release, with_versions
from berth.runtime import log
from berth.runtime.duration import Duration
from berth.runtime.release import EffectiveVersion, previous
from berth.scheduler.config.options import CHOICES, DEPRECATED, HELP, WHOLE, Options, flag_fields

if TYPE_CHECKING:
    from berth.scheduler.config.types import KubeSchedulerConfiguration

_LEADER_ELECTION: Final = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_lock": "resource_lock",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}
_CLIENT_CONNECTION: Final = {
    "kubeconfig": "kubeconfig",
    "kube_api_content_type": "content_type",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
}
_PROFILING: Final = {
    "profiling": "enable_profiling",
    "contention_profiling": "enable_contention_profiling",
}


def make_parser(prog: str) -> argparse.ArgumentParser:
    """Return a parser for all flags of kube-scheduler; the caller may add its own.

    Give it arguments by :func:`parse`, or through :func:`spelled`: argparse alone would take the
    word after a boolean flag for its value.
    """
    parser = argparse.ArgumentParser(prog=prog, usage="%(prog)s [flags]", allow_abbrev=False)
    for option in flag_fields():
        default = _default(option)
        settings: dict[str, Any] = {
            "dest": option.name,
            "default": argparse.SUPPRESS,
            "help": _help(option),
            "choices": option.metadata.get(CHOICES),
        }
        match default:
            case bool():
                settings |= {"type": boolean, "metavar": "BOOL"}
            case dict():
                settings |= {"type": feature_gates, "action": Merge, "metavar": "GATE=BOOL,..."}
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
    return checked_options(parser, parser.parse_args(spelled(argv)))


def checked_options(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Options:
    """Return what *parser* has found of kube-scheduler's flags; of mistakes as :func:`parse`."""
    checked = options(given)
    for problem in _problems(checked):
        parser.error(problem)
    return checked


def apply_flags(
    config: "KubeSchedulerConfiguration", options: Options
) -> "KubeSchedulerConfiguration":
    """Override *config* by the flags that were given.

    Those of leader election and feature gates always win; the deprecated ones only count without a
    file. Raises ConfigError for feature gates that cannot be had.
    """
    top: dict[str, Any] = {}
    client: dict[str, Any] = {}
    if not options.config:
        top = _given(options, _PROFILING)
        client = _given(options, _CLIENT_CONNECTION)
    election = _given(options, _LEADER_ELECTION)
    versions = options.versions
    config = with_versions(
        config,
        gates=versions.feature_gates,
        emulated=_last(versions.emulated_version, "--emulated-version"),
        min_compatibility=_last(versions.min_compatibility_version, "--min-compatibility-version"),
    )
    return config.model_copy(
        update={
            **top,
            "client_connection": config.client_connection.model_copy(update=client),
            "leader_election": config.leader_election.model_copy(update=election),
        }
    )


def _given(options: Options, targets: dict[str, str]) -> dict[str, Any]:
    values = options.values()
    return {target: values[flag] for flag, target in targets.items() if flag in options.explicit}


def _problems(given: Options) -> Iterator[str]:
    """Find what is wrong with values though they are of the right type."""
    port = given.secure_serving.secure_port
    if not 0 <= port <= 65535:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive"
    try:
        log.modules(given.logs.vmodule)
    except ValueError as error:
        yield f"--vmodule: {error}"
    versions = given.versions
    try:
        version = EffectiveVersion.of(
            _last(versions.emulated_version, "--emulated-version"),
            _last(versions.min_compatibility_version, "--min-compatibility-version"),
        )
    except ValueError as error:
        yield str(error)
        return
    hidden, last = given.metrics.show_hidden_metrics_for_version, previous(version.emulation)
    if hidden not in ("", last):
        yield (
            f"--show-hidden-metrics-for-version {hidden!r} must be omitted or {last}:"
            " only the previous minor version is allowed"
        )


def spelled(argv: Sequence[str]) -> list[str]:
    """Spell flags as :func:`make_parser` knows them: dashes inside, and ``=true`` if it is meant.

    A boolean's value must come after ``=``; the next word is never it.
    """
    bare = {_spellings(f.name)[-1] for f in flag_fields() if isinstance(_default(f), bool)}
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
    names = {flag.name for flag in flag_fields()}
    return Options.of({name: value for name, value in vars(namespace).items() if name in names})


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


def _last(values: Sequence[str], flag: str) -> str:
    """Return the release that *flag* names last; "" if it was not given. Raises ValueError."""
    try:
        return release(values[-1]) if values else ""
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"{flag}: {error}") from error


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


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _several(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
