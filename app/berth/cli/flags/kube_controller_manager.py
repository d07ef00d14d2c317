"""Flags of kube-controller-manager that the controllers of an embedded cluster obey."""

import argparse
from collections.abc import Callable
from typing import Final, NamedTuple

from berth.cluster.controllers.options import DEFAULTS, ControllerOptions
from berth.runtime.duration import Duration


class _Flag(NamedTuple):
    read: Callable[[str], float | int | tuple[str, ...]]
    metavar: str
    help: str


def add_controller_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each field of :class:`ControllerOptions`."""
    group = parser.add_argument_group("flags of kube-controller-manager")
    for field, flag in _FLAGS.items():
        default = getattr(DEFAULTS, field)
        shown = Duration.of(default) if flag.read is _duration else default
        if flag.read is _controllers:
            shown = ",".join(default)
        group.add_argument(
            f"--{field.replace('_', '-')}",
            type=flag.read,
            default=default,
            metavar=flag.metavar,
            help=f"{flag.help}; default: {shown}",
        )


def controller_options(given: argparse.Namespace) -> ControllerOptions:
    """Return what the flags of :func:`add_controller_flags` ask for."""
    return ControllerOptions(**{field: getattr(given, field) for field in _FLAGS})


def _controllers(text: str) -> tuple[str, ...]:
    from berth.cluster.controllers.run import read_controllers  # takes long to load

    try:
        return read_controllers(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _duration(text: str) -> float:
    try:
        seconds = Duration.parse(text).seconds
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text} must be greater than 0s")
    return seconds


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from exc
    if not 0 <= rate <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 1000000")
    return rate


def _share(text: str) -> float:
    share = _rate(text)
    if share > 1:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 1")
    return share


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from exc
    if not 0 <= count < 2**31:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and {2**31 - 1}")
    return count


_FLAGS: Final = {
    "controllers": _Flag(
        _controllers, "NAMES",
        "controllers to run: * for all, a name for one, -name for all but this one; empty for"
        " none, as beside a kube-controller-manager",
    ),
    "node_monitor_period": _Flag(
        _duration, "DURATION", "look at the heartbeats of all nodes this often"
    ),
    "node_monitor_grace_period": _Flag(
        _duration, "DURATION", "a node that is silent for longer is unreachable"
    ),
    "node_startup_grace_period": _Flag(
        _duration, "DURATION", "the same for a node that has never reported its status"
    ),
    "node_eviction_rate": _Flag(
        _rate, "RATE",
        "nodes per second of a zone that start to lose their pods, when they are unhealthy",
    ),
    "secondary_node_eviction_rate": _Flag(
        _rate, "RATE", "the same in large zones of which many nodes are unhealthy"
    ),
    "large_cluster_size_threshold": _Flag(
        _count, "N",
        "zones of more nodes are large; others keep their pods while many nodes are unhealthy",
    ),
    "unhealthy_zone_threshold": _Flag(
        _share, "SHARE", "share of a zone's nodes, at least three, that counts as many"
    ),
    "terminated_pod_gc_threshold": _Flag(
        _count, "N", "keep this number of pods that have ended; 0 keeps all"
    ),
}  # fmt: skip
