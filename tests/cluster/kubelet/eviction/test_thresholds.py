"""Thresholds as a kubelet reads them."""

import re
from typing import Any

import pytest

from berth.cluster.kubelet.eviction.signals import Signal
from berth.cluster.kubelet.eviction.thresholds import (
    DEFAULT_HARD,
    Filesystems,
    Threshold,
    ThresholdValue,
    in_force,
    parse_thresholds,
)
from berth.kube.objects.amounts import amount

GI = 2**30


def parsed(**given: Any) -> tuple[Threshold, ...]:
    empty: dict[str, Any] = {
        "hard": {},
        "soft": {},
        "soft_grace_periods": {},
        "minimum_reclaim": {},
        "enforces_allocatable": False,
    }
    return parse_thresholds(**{**empty, **given})


def test_a_soft_threshold_has_a_grace_period_and_any_a_minimum_reclaim() -> None:
    found = parsed(
        hard={"memory.available": "500Mi"},
        soft={"nodefs.available": "1Gi"},
        soft_grace_periods={"nodefs.available": "1m30s"},
        minimum_reclaim={"nodefs.available": "5%"},
    )

    assert found == (
        Threshold(Signal.MEMORY_AVAILABLE, ThresholdValue(amount("500Mi"))),
        Threshold(
            Signal.NODEFS_AVAILABLE,
            ThresholdValue(amount("1Gi")),
            90.0,
            ThresholdValue(percentage=pytest.approx(0.05)),  # type: ignore[arg-type] # compares
        ),
    )


def test_the_hard_threshold_of_memory_holds_for_all_pods_together_too() -> None:
    found = parsed(hard={"memory.available": "1Gi"}, enforces_allocatable=True)

    assert [each.signal for each in found] == [
        Signal.MEMORY_AVAILABLE,
        Signal.ALLOCATABLE_MEMORY_AVAILABLE,
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            {"hard": {"cpu.available": "1"}},
            "unsupported eviction signal cpu.available",
            id="no such signal",
        ),
        pytest.param(
            {"hard": {"memory.available": "0"}},
            "eviction threshold memory.available must be positive: 0",
            id="nothing",
        ),
        pytest.param(
            {"hard": {"memory.available": "-1%"}},
            "eviction percentage threshold memory.available must be >= 0%: -1%",
            id="a negative percentage",
        ),
        pytest.param(
            {"hard": {"memory.available": "101%"}},
            "eviction percentage threshold memory.available must be <= 100%: 101%",
            id="more than all",
        ),
        pytest.param(
            {"hard": {"memory.available": "ten%"}},
            'strconv.ParseFloat: parsing "ten": invalid syntax',
            id="no number",
        ),
        pytest.param(
            {"hard": {"memory.available": "lots"}},
            "memory.available: quantity 'lots': want a number with an optional suffix, as in "
            "500m, 1.5 or 2Gi",
            id="no quantity",
        ),
        pytest.param(
            {"soft": {"memory.available": "1Gi"}},
            "grace period must be specified for the soft eviction threshold memory.available",
            id="soft without a grace period",
        ),
        pytest.param(
            {"soft_grace_periods": {"memory.available": "-1s"}},
            "invalid eviction grace period specified: -1s, must be a positive value",
            id="a negative grace period",
        ),
        pytest.param(
            {"soft_grace_periods": {"memory.available": "soon"}},
            'time: invalid duration "soon"',
            id="no duration",
        ),
        pytest.param(
            {"minimum_reclaim": {"memory.available": "-1Mi"}},
            "negative eviction minimum reclaim specified for memory.available",
            id="a negative reclaim",
        ),
        pytest.param(
            {"minimum_reclaim": {"memory.available": "0%"}},
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
            id="no reclaim in percent",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_a_kubelet(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parsed(**given)


def test_0_and_100_percent_switch_a_threshold_off() -> None:
    assert parsed(hard={"memory.available": "0%", "nodefs.available": "100%"}) == ()


@pytest.mark.parametrize(
    ("text", "capacity", "want"),
    [
        pytest.param("100Mi", 16 * GI, "100Mi", id="as written"),
        pytest.param("1.5Gi", 16 * GI, "1536Mi", id="canonical"),
        pytest.param("10%", 100 * GI, "10737418400", id="a share, in float32 as in Go"),
        pytest.param("5%", 1000, "50", id="a share of inodes"),
    ],
)
def test_the_amount_of_a_threshold(text: str, capacity: int, want: str) -> None:
    [threshold] = parsed(hard={"nodefs.available": text})
    assert str(threshold.value.of(capacity)) == want


@pytest.mark.parametrize(
    ("filesystems", "followed"),
    [
        pytest.param(Filesystems.SHARED, "10%", id="one file system: as nodefs"),
        pytest.param(Filesystems.IMAGEFS, "15%", id="layers on imagefs: as imagefs"),
        pytest.param(Filesystems.SPLIT, "10%", id="only images on imagefs: as nodefs"),
    ],
)
def test_containerfs_follows_the_file_system_that_has_it(
    filesystems: Filesystems, followed: str
) -> None:
    given = parsed(hard={**DEFAULT_HARD, "containerfs.available": "50%"})

    found, ignored = in_force(given, filesystems)

    values = {each.signal: each.value for each in found}
    [want] = parsed(hard={"nodefs.available": followed})
    assert values[Signal.CONTAINERFS_AVAILABLE] == want.value
    assert ignored == [Signal.CONTAINERFS_AVAILABLE]
