"""When Jobs that have ended are deleted."""

from typing import Any

import pytest

from berth.cluster.actions import Delete
from berth.cluster.controllers.controller import NOTHING, Plan
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.ttl_after_finished import TTLAfterFinishedController
from berth.cluster.object_views import Meta
from berth.runtime.clock import FakeClock

NOW = 1_767_225_600.0
COMPLETE = {"type": "Complete", "status": "True", "lastTransitionTime": "2025-12-31T23:59:50Z"}
PATH = "/apis/batch/v1/namespaces/default/jobs/j"
GONE = Plan([Delete(PATH, "u", propagation="Foreground", resource_version="7")])


@pytest.mark.parametrize(
    ("seconds", "conditions", "deleted", "want"),
    [
        pytest.param(10, [COMPLETE], None, GONE, id="its time is up"),
        pytest.param(60, [COMPLETE], None, Plan(again=50.0), id="some time is left"),
        pytest.param(0, [{**COMPLETE, "type": "Failed"}], None, GONE, id="it has failed"),
        pytest.param(0, [{**COMPLETE, "type": "FailureTarget"}], None, NOTHING, id="it is to fail"),
        pytest.param(None, [COMPLETE], None, NOTHING, id="it is kept"),
        pytest.param(0, [], None, NOTHING, id="it runs"),
        pytest.param(0, [COMPLETE], "2026-01-01T00:00:00Z", NOTHING, id="it goes already"),
    ],
)
def test_when_a_job_is_deleted(
    seconds: int | None, conditions: list[Any], deleted: str | None, want: Plan
) -> None:
    jobs: Table[JobView] = Table()
    controller = TTLAfterFinishedController(jobs, clock=FakeClock(NOW))
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)
    spec = {} if seconds is None else {"ttlSecondsAfterFinished": seconds}
    meta = Meta("j", "u", "default", "7", deletion_timestamp=deleted)
    jobs.on_add(JobView(meta, spec, {"conditions": conditions}))

    assert controller.plan("default/j") == want
    assert enqueued == (["default/j"] if want != NOTHING or deleted else [])
    assert controller.plan("default/other") == NOTHING
