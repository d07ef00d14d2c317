"""``--feature-gates Gate=true,Other=false``, and what it changes of a configuration."""

import argparse
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.scheduler.config.feature_gates import effective_gates, options, without_effect

if TYPE_CHECKING:
    from berth.scheduler.config.types import KubeSchedulerConfiguration

log = logging.getLogger(__name__)

_GATE_COMPONENT: Final = "kube:"


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


def with_gates(
    config: "KubeSchedulerConfiguration", *, gates: Mapping[str, bool]
) -> "KubeSchedulerConfiguration":
    """Return *config* with *gates*, which win over its own. Raises ConfigError."""
    given = {**config.feature_gates, **gates}
    effective_gates(given)
    warn_of_gates_without_effect(given)
    return config.model_copy(update={"feature_gates": given})


def warn_of_gates_without_effect(given: Mapping[str, bool]) -> None:
    """Log the gates of other components, if *given* turns any."""
    if names := without_effect(given):
        log.warning("feature gates that have no effect in berth", extra={"gates": names})
