"""What is wrong, in words."""

from dataclasses import replace
from typing import Any, Final

import pytest

from berth.scheduler.metrics.overview import NAMES, Numbers, PendingPod, Problem
from berth.service.overview.sampler import problems

HEALTHY: Final = replace(Numbers(*(0 for _ in NAMES)), leading=1)
FINE: Final[dict[str, Any]] = {
    "is_synced": True,
    "leader": "",
    "stale": "",
    "recent_errors": 0.0,
}


def pending(*seconds: float) -> list[PendingPod]:
    return [PendingPod(f"ns/p{i}", "", age) for i, age in enumerate(seconds)]


@pytest.mark.parametrize(
    ("numbers", "oldest", "state", "wanted"),
    [
        pytest.param({}, [], {}, [], id="nothing"),
        pytest.param({}, pending(299), {}, [], id="a pod that waits, not for long"),
        pytest.param(
            {"long_pending": 1},
            pending(400, 20),
            {},
            [Problem("1 pod has been pending for more than 5 minutes", ("ns/p0",))],
            id="one pod",
        ),
        pytest.param(
            {"long_pending": 40},
            pending(900, 800, 700, 600),
            {},
            [
                Problem(
                    "40 pods have been pending for more than 5 minutes", ("ns/p0", "ns/p1", "ns/p2")
                )
            ],
            id="many pods, of which three are named",
        ),
        pytest.param(
            {"leading": 0, "long_pending": 1},
            pending(400),
            {"leader": "berth-1"},
            [Problem("Not leading: standby. berth-1 leads")],
            id="a standby, which pending pods do not concern",
        ),
        pytest.param(
            {"leading": 0}, [], {}, [Problem("Not leading: standby. Nobody leads")], id="no leader"
        ),
        pytest.param(
            {},
            [],
            {"is_synced": False, "stale": "caches are stale: not watched"},
            [
                Problem("The state of the cluster is not known yet"),
                Problem("Caches are stale: not watched"),
            ],
            id="an API server that is gone",
        ),
        pytest.param(
            {},
            [],
            {"recent_errors": 1.0},
            [Problem("1 attempt failed with an error within the last minute")],
            id="an error",
        ),
        pytest.param(
            {"loop_lag_seconds": 0.25},
            [],
            {},
            [Problem("The event loop is 250 ms late; above 100 ms the process is near its limit")],
            id="a loop that is late",
        ),
    ],
)
def test_problems(
    numbers: dict[str, Any],
    oldest: list[PendingPod],
    state: dict[str, Any],
    wanted: list[Problem],
) -> None:
    found = problems(replace(HEALTHY, **numbers), oldest, **{**FINE, **state})
    assert list(found) == wanted
