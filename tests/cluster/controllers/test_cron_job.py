"""What the controller of CronJobs plans: which Jobs it creates and deletes, and when."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome, Plan
from berth.cluster.controllers.cron_job import SCHEDULED, CronJobController
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.kube.client.errors import AlreadyExistsError, ApiError, ForbiddenError, ServerError
from berth.runtime.clock import FakeClock

NOW = seconds_of("2026-01-01T12:00:30Z")
KEY = "default/c"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TEMPLATE = {"metadata": {"labels": {"app": "c"}}, "spec": {"template": {"spec": {}}}}


def job(time: str, end: str = "", *, manual: bool = False) -> JobView:
    """The Job of a time of this day; *end*: ``Complete`` or ``Failed``."""
    scheduled = f"2026-01-01T{time}:00Z"
    owner = OwnerReference("batch/v1", "CronJob", "c", "uid-c", controller=True)
    name = f"c-{int(seconds_of(scheduled)) // 60}"
    meta = Meta(
        name,
        f"uid-{time}",
        "default",
        resource_version="7",
        annotations={} if manual else {SCHEDULED: scheduled},
        owner_references=[owner],
    )
    status: Object = {"startTime": scheduled}
    if end:
        status["conditions"] = [{"type": end, "status": "True"}]
    if end == "Complete":
        status["completionTime"] = scheduled.replace(":00Z", ":20Z")
    return JobView(meta, {}, status)


class World:
    def __init__(
        self, *jobs: JobView, now: float = NOW, status: Object | None = None, **spec: Any
    ) -> None:
        self.clock = FakeClock(now)
        self.recorded: list[Occurrence] = []
        self.cron_jobs: Table[WorkloadView] = Table()
        self.jobs: Table[JobView] = Table()
        self.controller = CronJobController(
            self.cron_jobs,
            self.jobs,
            clock=self.clock,
            recorder=EventRecorder(self.recorded.append, "cronjob-controller", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        meta = Meta("c", "uid-c", "default", creation_timestamp="2026-01-01T11:00:00Z")
        spec = {"schedule": "*/10 * * * *", "jobTemplate": TEMPLATE, **spec}
        self.cron_jobs.on_add(WorkloadView(meta, spec, status or {}))
        for each in jobs:
            self.jobs.on_add(each)

    def plan(self) -> Plan:
        return self.controller.plan(KEY)

    def writes(self) -> list[str]:
        return [shown for action in self.plan().actions for shown in [_shown(action)] if shown]

    def status(self) -> Object:
        for action in self.plan().actions:
            if isinstance(action, Patch):
                found: Object = action.body["status"]
                return found
        return {}

    def reasons(self) -> list[str]:
        return [each.reason for each in self.recorded]


def _shown(action: Action) -> str:
    match action:
        case Create(_, body):
            return f"create {body['metadata']['annotations'][SCHEDULED][11:16]}"
        case Delete(path):
            minutes = int(path.rpartition("-")[2])
            return f"delete {minutes // 60 % 24:02}:{minutes % 60:02}"
    return ""


def test_a_job_is_created_for_its_time() -> None:
    world = World()
    plan = world.plan()
    assert plan.actions == [
        Create(
            JOBS,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": "c-29454480",
                    "namespace": "default",
                    "labels": {"app": "c"},
                    "annotations": {SCHEDULED: "2026-01-01T12:00:00Z"},
                    "ownerReferences": [
                        {
                            "apiVersion": "batch/v1",
                            "kind": "CronJob",
                            "name": "c",
                            "uid": "uid-c",
                            "controller": True,
                            "blockOwnerDeletion": True,
                        }
                    ],
                },
                "spec": {"template": {"spec": {}}},
            },
        )
    ]
    assert plan.again == pytest.approx(570.1)
    assert world.writes() == []  # it was asked for


@pytest.mark.parametrize(
    ("jobs", "spec", "want"),
    [
        pytest.param([], {}, ["create 12:00"], id="of those missed, the latest"),
        pytest.param([job("12:00")], {}, [], id="it has been created"),
        pytest.param([job("11:50")], {}, ["create 12:00"], id="the one before runs still"),
        pytest.param([job("11:50")], {"concurrencyPolicy": "Forbid"}, [], id="which forbids it"),
        pytest.param(
            [job("11:50", "Failed")], {"concurrencyPolicy": "Forbid"}, ["create 12:00"],
            id="not when it has ended",
        ),
        pytest.param(
            [job("11:50")], {"concurrencyPolicy": "Replace"}, ["delete 11:50", "create 12:00"],
            id="or has to go",
        ),
        pytest.param([], {"suspend": True}, [], id="it is suspended"),
        pytest.param([], {"startingDeadlineSeconds": 20}, [], id="it is too late"),
        pytest.param([], {"startingDeadlineSeconds": 60}, ["create 12:00"], id="it is not"),
        pytest.param(
            [], {"timeZone": "Asia/Kolkata", "schedule": "0 17 * * *"}, ["create 17:00"],
            id="in another time zone",
        ),
        pytest.param([], {"timeZone": "Mars/Olympus"}, [], id="in a zone that is no more"),
        pytest.param(
            [job("11:20", "Complete"), job("11:40", "Complete"), job("11:30", "Failed")],
            {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0, "suspend": True},
            ["delete 11:20", "delete 11:30"],
            id="what is history",
        ),
    ],
)  # fmt: skip
def test_which_jobs_are_created_and_deleted(
    jobs: list[JobView], spec: Object, want: list[str]
) -> None:
    assert World(*jobs, **spec).writes() == want


def test_it_waits_for_the_first_time() -> None:
    world = World(now=seconds_of("2026-01-01T11:05:00Z"))
    assert world.writes() == []
    assert world.plan().again == pytest.approx(300.1)


def test_a_job_that_could_not_be_created_is_asked_for_again() -> None:
    world = World()
    [create] = world.plan().actions
    world.controller.finished(KEY, Outcome(create, error=ServerError(500, "InternalError", "no")))
    assert world.writes() == ["create 12:00"]
    assert world.reasons() == ["FailedCreate"]


def test_a_job_of_that_name_will_do() -> None:
    world = World()
    [create] = world.plan().actions
    taken = AlreadyExistsError(409, "AlreadyExists", "")
    world.controller.finished(KEY, Outcome(create, error=taken))
    assert (world.writes(), world.reasons()) == ([], [])


def test_the_status_lists_what_runs_and_when_it_was_last_good() -> None:
    world = World(job("11:40", "Complete"), job("12:00"), job("11:55", manual=True))
    assert world.status() == {
        "active": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "c-29454480",
                "namespace": "default",
                "resourceVersion": "7",
                "uid": "uid-12:00",
            }
        ],
        "lastScheduleTime": "2026-01-01T12:00:00Z",
        "lastSuccessfulTime": "2026-01-01T11:40:20Z",
    }


def test_a_job_made_by_hand_may_be_the_last_that_was_good() -> None:
    status = World(job("11:40", "Complete"), job("11:55", "Complete", manual=True)).status()
    assert status["lastSuccessfulTime"] == "2026-01-01T11:55:20Z"


def test_a_job_made_by_hand_does_not_count() -> None:
    world = World(job("11:59", manual=True), concurrencyPolicy="Forbid")
    assert world.writes() == ["create 12:00"]


def told(world: World, *, error: ApiError | None = None) -> list[tuple[str, str]]:
    """Carry out a plan, or fail to, and return the events of it."""
    for action in world.plan().actions:
        world.controller.finished(KEY, Outcome(action, error=error))
    return [(each.reason, each.message) for each in world.recorded]


def listed(*jobs: JobView) -> Object:
    return {"active": [{"uid": each.metadata.uid, "name": each.metadata.name} for each in jobs]}


def test_events_tell_of_jobs() -> None:
    ended = job("11:50", "Complete")
    assert told(World(ended, status=listed(ended))) == [
        ("SawCompletedJob", "Saw completed job: c-29454470, condition: Complete"),
        ("SuccessfulCreate", "Created job c-29454480"),
    ]


def test_events_tell_of_a_job_that_somebody_deleted() -> None:
    assert told(World(suspend=True, status=listed(job("11:50")))) == [
        ("MissingJob", "Active job went missing: c-29454470")
    ]


def test_a_job_that_was_replaced_is_not_missed() -> None:
    old = job("11:50")
    world = World(old, status=listed(old), concurrencyPolicy="Replace")
    assert [reason for reason, _ in told(world)] == ["SuccessfulDelete", "SuccessfulCreate"]
    world.jobs.on_delete(old)
    world.jobs.on_add(job("12:00"))
    assert [reason for reason, _ in told(world)] == ["SuccessfulDelete", "SuccessfulCreate"]


def test_a_job_that_is_none_of_its_own_is_worth_one_warning() -> None:
    world = World(job("11:55", manual=True), job("11:56", "Failed", manual=True), suspend=True)
    message = "Saw a job that the controller did not create or forgot: c-29454475"
    assert told(world) == [("UnexpectedJob", message)]
    assert told(world) == [("UnexpectedJob", message)]


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(
            ServerError(500, "InternalError", "no"),
            ["FailedDelete", "FailedCreate"],
            id="for some reason",
        ),
        pytest.param(
            ForbiddenError(403, "Forbidden", "because it is being terminated"),
            ["FailedDelete"],
            id="the namespace goes",
        ),
    ],
)
def test_events_tell_of_what_could_not_be_done(error: ApiError, want: list[str]) -> None:
    world = World(job("11:50"), concurrencyPolicy="Replace")
    assert [reason for reason, _ in told(world, error=error)] == want


def test_a_new_schedule_is_for_the_future() -> None:
    world = World(schedule="0 0 * * *", now=seconds_of("2026-01-01T11:35:00Z"))
    [old] = world.cron_jobs.values()
    new = msgspec.structs.replace(old, spec={**old.spec, "schedule": "*/10 * * * *"})
    world.cron_jobs.on_update(old, new)
    plan = world.plan()
    assert plan.actions == []
    assert plan.again == pytest.approx(300.1)
    world.clock.advance(301)
    assert world.writes() == ["create 11:40"]


def test_history_begins_with_what_began_first() -> None:
    waiting, begun = job("11:20", "Failed"), job("11:30", "Failed")
    waiting.status.pop("startTime")
    world = World(waiting, begun, failedJobsHistoryLimit=1, suspend=True)
    assert world.writes() == ["delete 11:30"]


def test_a_zone_that_is_no_more_is_worth_a_warning() -> None:
    world = World(timeZone="Mars/Olympus")
    assert told(world) == [
        ("UnknownTimeZone", 'invalid timeZone: "Mars/Olympus": unknown time zone Mars/Olympus')
    ]


def test_one_that_is_deleted_starts_nothing() -> None:
    world = World(job("11:50"))
    [old] = world.cron_jobs.values()
    meta = msgspec.structs.replace(old.metadata, deletion_timestamp="2026-01-01T12:00:00Z")
    world.cron_jobs.on_update(old, msgspec.structs.replace(old, metadata=meta))
    assert (world.writes(), list(world.status())) == ([], ["active", "lastScheduleTime"])


def test_why_there_is_no_job_is_told_once() -> None:
    world = World(job("11:50"), concurrencyPolicy="Forbid")
    world.plan()
    world.plan()
    assert world.reasons() == ["JobAlreadyActive"]


def test_many_missed_times_are_worth_a_warning() -> None:
    world = World(schedule="* * * * *", now=seconds_of("2026-01-01T16:00:30Z"))
    assert world.writes() == ["create 16:00"]
    assert world.reasons() == ["TooManyMissedTimes"]


def test_a_schedule_that_never_comes_is_worth_a_warning() -> None:
    world = World(schedule="59 23 31 2 *")
    assert world.writes() == []
    world.plan()
    assert [(each.type, each.reason, each.message) for each in world.recorded] == [
        (
            "Warning",
            "InvalidSchedule",
            "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than "
            "1 second",
        )
    ]
