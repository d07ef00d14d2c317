"""``--emulated-version`` and ``--feature-gates``, and what they change of a configuration."""

import argparse
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.runtime.release import LATEST, RELEASE, RELEASES, EffectiveVersion
from berth.scheduler.config.feature_gates import effective_gates, options, version_of, warnings

if TYPE_CHECKING:
    from berth.scheduler.config.types import KubeSchedulerConfiguration

log = logging.getLogger(__name__)

_GATE_COMPONENT: Final = "kube:"
_VERSION: Final = re.compile(r"(?:kube=)?v?(1\.\d+)")


def add_emulated_version(
    parser: argparse._ActionsContainer, *, flag: str = "--emulated-version", text: str = ""
) -> None:
    """Add ``--emulated-version`` to a command that decides; its value is "" if it is not given.

    *text* describes the flag.
    """
    parser.add_argument(
        flag,
        type=_known_release,
        default="",
        metavar="VERSION",
        help=text
        or f"the release of Kubernetes to decide like: {' or '.join(RELEASES)}; default: what the"
        f" configuration says, else {RELEASE}",
    )


def _known_release(text: str) -> str:
    try:
        return EffectiveVersion.of(release(text)).emulation if text else ""
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def release(text: str) -> str:
    """Read a release of Kubernetes as flags write it: ``1.36``, ``v1.36`` or ``kube=1.36``."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} must be like {RELEASE} or kube={RELEASE}")
    return match[1]


def add_feature_gates(parser: argparse.ArgumentParser, *, text: str) -> None:
    """Add the flag, described by *text* and the gates there are; its value is a mapping."""
    parser.add_argument(
        "--feature-gates",
        type=feature_gates,
        action=Merge,
        default={},
        metavar="GATE=BOOL,...",
        help=f"{text}. Options are: {options()}",
    )


class Merge(argparse.Action):
    """Collects mappings: of a key given twice the last value counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), **values})


def feature_gates(text: str) -> dict[str, bool]:
    """Read gates; a component in front, as in ``kube:Gate=true``, may only be that one."""
    gates: dict[str, bool] = {}
    for item in text.split(",") if text else ():
        name, equals, value = item.strip().partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"missing bool value for {name}")
        gates[name.removeprefix(_GATE_COMPONENT)] = boolean(value)
    return gates


def boolean(text: str) -> bool:
    """Read a boolean as Go's flags do."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"invalid boolean value: {text!r}")


def with_versions(
    config: "KubeSchedulerConfiguration",
    *,
    gates: Mapping[str, bool] = {},
    emulated: str = "",
    min_compatibility: str = "",
) -> "KubeSchedulerConfiguration":
    """Return *config* with what flags say, which wins over its own. Raises ConfigError."""
    given = {**config.feature_gates, **gates}
    config = config.model_copy(
        update={
            "feature_gates": given,
            "emulated_version": emulated or config.emulated_version,
            "min_compatibility_version": min_compatibility or config.min_compatibility_version,
        }
    )
    version = version_of(config)
    effective_gates(given, version)
    warn_of_gates(given, version)
    return config


def warn_of_gates(given: Mapping[str, bool], version: EffectiveVersion = LATEST) -> None:
    """Log the gates of *given* that are passed over."""
    for problem in warnings(given, version):
        log.warning(problem)
