"""CronJobs: what the server fills in, and what it refuses."""

import copy
from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

STRATEGY = find("batch", "v1", "cronjobs").strategy
POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
TEMPLATE: Object = {"spec": {"template": {"spec": POD}}}


def cron_job(*, name: str = "x", **spec: Any) -> Object:
    obj: Object = {
        "metadata": {"name": name, "uid": "u", "namespace": "default"},
        "spec": copy.deepcopy({"schedule": "@hourly", "jobTemplate": TEMPLATE, **spec}),
    }
    STRATEGY.default(obj)
    STRATEGY.prepare(obj, None)
    return obj


def refused(new: Object, old: Object | None = None) -> dict[str, str]:
    return {each.field: each.message for each in STRATEGY.validate(new, old)}


def test_defaults() -> None:
    obj = cron_job()
    fields = (
        "concurrencyPolicy",
        "suspend",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    )
    assert refused(obj) == {}
    assert [obj["spec"][field] for field in fields] == ["Allow", False, 3, 1]


def test_rules_on_failures_are_about_conditions_that_are_true() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = {**TEMPLATE["spec"], "podFailurePolicy": {"rules": [rule]}}
    obj = cron_job(jobTemplate={"spec": spec}, concurrencyPolicy="")
    assert refused(obj) == {}
    [found] = obj["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert found["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"schedule": ""}, {"spec.schedule": "Required value"}, id="no schedule"),
        pytest.param(
            {"schedule": f"{'1,' * 2048}1 * * * *"},
            {"spec.schedule": "Too long: may not be more than 4096 bytes"},
            id="a schedule that takes long to read",
        ),
        pytest.param(
            {"schedule": "* * * *"},
            {
                "spec.schedule": 'Invalid value: "* * * *": expected exactly 5 fields, '
                "found 4: [* * * *]"
            },
            id="too few fields",
        ),
        pytest.param(
            {"schedule": "TZ=UTC * * * * *"},
            {
                "spec.schedule": 'Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in '
                "schedule, use timeZone field instead"
            },
            id="a time zone in the schedule",
        ),
        pytest.param(
            {"timeZone": "Mars/Olympus"},
            {"spec.timeZone": 'Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'},
            id="a time zone of another planet",
        ),
        pytest.param(
            {"timeZone": "../../etc/passwd"},
            {
                "spec.timeZone": 'Invalid value: "../../etc/passwd": '
                "unknown time zone ../../etc/passwd"
            },
            id="a path",
        ),
        pytest.param({"timeZone": "Europe/Berlin"}, {}, id="a time zone"),
        pytest.param(
            {"failedJobsHistoryLimit": -1},
            {
                "spec.failedJobsHistoryLimit": "Invalid value: -1: "
                "must be greater than or equal to 0"
            },
            id="a negative number",
        ),
        pytest.param(
            {"jobTemplate": {"spec": {**TEMPLATE["spec"], "selector": {}, "backoffLimit": -1}}},
            {
                "spec.jobTemplate.spec.backoffLimit": "Invalid value: -1: "
                "must be greater than or equal to 0",
                "spec.jobTemplate.spec.selector": "Invalid value: {}: "
                "`selector` will be auto-generated",
            },
            id="a wrong Job",
        ),
    ],
)
def test_what_is_refused(spec: Object, want: dict[str, str]) -> None:
    assert refused(cron_job(**spec)) == want


def test_the_names_of_its_jobs_must_fit() -> None:
    obj = cron_job(name="x" * 53)
    text = f'Invalid value: "{"x" * 53}": must be no more than 52 characters'
    assert refused(obj) == {"metadata.name": text}
    assert refused(obj, obj) == {}
