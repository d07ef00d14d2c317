"""--disabled-metrics and --allow-metric-labels."""

import pytest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.metrics import Counters, Histograms, metrics_text
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.metrics.families import kube
from berth.scheduler.metrics.selection import Selection


class World(Collector):
    def __init__(self) -> None:
        self.attempts = Counters(kube.SCHEDULE_ATTEMPTS)
        self.permit = Histograms(kube.PERMIT_WAIT_DURATION)
        for profile, result in (("a", "scheduled"), ("b", "scheduled"), ("c", "error")):
            self.attempts.add(profile, result)
        self.permit.observe(0.001, "Success")
        self.permit.observe(0.004, "Error")

    def collect(self) -> list[Metric]:
        return [self.attempts.collect(), self.permit.collect()]


def told(
    *, disabled: tuple[str, ...] = (), allow: tuple[str, ...] = (), manifest: bytes | None = None
) -> list[str]:
    selection = Selection.by_flags(disabled=disabled, allow_labels=allow, manifest=manifest)
    selection.register(World())
    text, _ = metrics_text(selection, "")
    return [
        line
        for line in text.decode().splitlines()
        if not line.startswith("#") and "bucket" not in line
    ]


ATTEMPTS = [
    'scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.0',
    'scheduler_schedule_attempts_total{profile="b",result="scheduled"} 1.0',
    'scheduler_schedule_attempts_total{profile="c",result="error"} 1.0',
]
PERMIT = [
    'scheduler_permit_wait_duration_seconds_count{result="Success"} 1.0',
    'scheduler_permit_wait_duration_seconds_sum{result="Success"} 0.001',
    'scheduler_permit_wait_duration_seconds_count{result="Error"} 1.0',
    'scheduler_permit_wait_duration_seconds_sum{result="Error"} 0.004',
]
NAME = "scheduler_schedule_attempts_total"


def test_everything_by_default() -> None:
    assert told() == [*ATTEMPTS, *PERMIT]


def test_a_disabled_family_is_left_out() -> None:
    assert told(disabled=(NAME,)) == PERMIT


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param({"allow": (f"{NAME},profile=a,c",)}, id="by the flag"),
        pytest.param({"allow": (f"{NAME},profile='a,c'",)}, id="in quotes"),
        pytest.param({"manifest": f"{NAME},profile: a,c".encode()}, id="by a file"),
        pytest.param(
            {"allow": (f"{NAME},profile=a,c",), "manifest": f'"{NAME},profile": b'.encode()},
            id="the flag wins",
        ),
    ],
)
def test_values_that_are_not_allowed_are_one(flags: dict[str, bytes | tuple[str, ...]]) -> None:
    assert told(**flags) == [  # type: ignore[arg-type]  # a table of keyword arguments
        ATTEMPTS[0],
        f'{NAME}{{profile="unexpected",result="scheduled"}} 1.0',
        ATTEMPTS[2],
        *PERMIT,
    ]


def test_merged_histograms_add_up() -> None:
    assert told(
        disabled=(NAME,), allow=("scheduler_permit_wait_duration_seconds,result=none",)
    ) == [
        'scheduler_permit_wait_duration_seconds_count{result="unexpected"} 2.0',
        'scheduler_permit_wait_duration_seconds_sum{result="unexpected"} 0.005',
    ]


@pytest.mark.parametrize(
    ("allow", "manifest", "message"),
    [
        pytest.param(
            ("x",), None, "--allow-metric-labels: 'x' must be like metric,label=value,value",
            id="no values",
        ),
        pytest.param(
            ("x=y",), None,
            "--allow-metric-labels: 'x' must be a metric and a label: metric,label",
            id="no label",
        ),
        pytest.param(
            (), b"[1]",
            "--allow-metric-labels-manifest: must be a mapping of metric,label to values",
            id="a list",
        ),
        pytest.param((), b"{", "--allow-metric-labels-manifest: not YAML", id="no YAML"),
    ],
)  # fmt: skip
def test_refused(allow: tuple[str, ...], manifest: bytes | None, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Selection.by_flags(disabled=(), allow_labels=allow, manifest=manifest)
    assert str(caught.value).startswith(message)
