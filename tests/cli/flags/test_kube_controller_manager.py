"""What the controllers of an embedded cluster can be told on the command line."""

import argparse
import dataclasses

import pytest

from berth.cli.flags.kube_controller_manager import add_controller_flags, controller_options
from berth.cluster.controllers.options import DEFAULTS, ControllerOptions


def parsed(*argv: str) -> ControllerOptions:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_controller_flags(parser)
    return controller_options(parser.parse_args(argv))


def test_the_defaults_are_those_of_the_controllers() -> None:
    assert parsed() == DEFAULTS


@pytest.mark.parametrize(
    ("argv", "want"),
    [
        (["--node-monitor-grace-period=1m30s"], {"node_monitor_grace_period": 90.0}),
        (["--node-eviction-rate=0"], {"node_eviction_rate": 0.0}),
        (["--terminated-pod-gc-threshold", "0"], {"terminated_pod_gc_threshold": 0}),
        (["--unhealthy-zone-threshold", "1"], {"unhealthy_zone_threshold": 1.0}),
    ],
    ids=" ".join,
)
def test_what_is_asked_for(argv: list[str], want: dict[str, float]) -> None:
    assert parsed(*argv) == dataclasses.replace(DEFAULTS, **want)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--node-monitor-period", "5"], "argument --node-monitor-period: time: missing unit"),
        (["--node-monitor-period", "0s"], "0s must be greater than 0s"),
        (["--node-eviction-rate", "nan"], "nan must be between 0 and 1000000"),
        (["--node-eviction-rate", "fast"], "'fast' is not a number"),
        (["--unhealthy-zone-threshold", "1.1"], "1.1 must be between 0 and 1"),
        (["--terminated-pod-gc-threshold", "-1"], "-1 must be between 0 and"),
        (["--large-cluster-size-threshold", "a"], "'a' is not a whole number"),
    ],
    ids=" ".join,
)
def test_what_is_refused(argv: list[str], why: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=why):
        parsed(*argv)
