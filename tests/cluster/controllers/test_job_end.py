"""What becomes of the pods and the status of a Job when it ends, is suspended, or is not ours."""

from typing import Any

import pytest

from berth.cluster.controllers.controller import Outcome
from berth.cluster.resources import Object
from tests.cluster.controllers.jobs import KEY, NOW, STAMP, World, job, pod

BEFORE = "2025-12-31T00:00:00Z"
INDEXED: Object = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
FIRST_WINS: Object = {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}}
FAILURE: Object = {
    "type": "FailureTarget",
    "status": "True",
    "reason": "DeadlineExceeded",
    "message": "Job was active longer than specified deadline",
}
SUCCESS: Object = {
    "type": "SuccessCriteriaMet",
    "status": "True",
    "reason": "SuccessPolicy",
    "message": "Matched rules at index 0",
}


def counts(status: Object) -> Object:
    return {field: status.get(field) for field in ("active", "ready", "terminating")}


@pytest.mark.parametrize("policy", ["TerminatingOrFailed", "Failed"])
def test_when_a_job_fails_so_do_its_pods(policy: str) -> None:
    spec: Object = {"activeDeadlineSeconds": 0, "parallelism": 3, "podReplacementPolicy": policy}
    pods = [pod("a", conditions=("Ready",)), pod("b"), pod("c", deleted=True)]
    world = World(job(status={"startTime": STAMP}, **spec), *pods)
    status = world.status()
    assert set(status["uncountedTerminatedPods"]["failed"]) == {"uid-a", "uid-b", "uid-c"}
    assert counts(status) == {"active": None, "ready": 0, "terminating": 3}
    assert World(job(status={"startTime": STAMP}, **spec), *pods).writes() == [
        "delete a",
        "delete b",
    ]


def test_they_are_let_go_once_they_are_noted() -> None:
    noted: Object = {"uncountedTerminatedPods": {"failed": ["uid-a"]}, "conditions": [FAILURE]}
    world = World(
        job(status={**noted, "startTime": STAMP}, podReplacementPolicy="Failed"),
        pod("a", deleted=True),
    )
    assert world.writes() == ["release a"]


def test_when_a_job_succeeds_the_pods_that_are_left_do_not_count() -> None:
    pods = [pod("a", "Succeeded", index=0), pod("b", index=1), pod("c", index=2)]
    world = World(job(**FIRST_WINS), *pods)
    status = world.status()
    assert [condition["reason"] for condition in status["conditions"]] == ["SuccessPolicy"]
    assert status["uncountedTerminatedPods"] == {"succeeded": None, "failed": None}
    assert counts(status) == {"active": None, "ready": 0, "terminating": 2}
    assert World(job(**FIRST_WINS), *pods).writes() == ["release b", "release c"]


def test_then_they_are_deleted() -> None:
    status = {"conditions": [SUCCESS], "completedIndexes": "0", "startTime": STAMP}
    world = World(
        job(status=status, **FIRST_WINS),
        pod("b", index=1, held=False),
        pod("c", index=2, held=False, deleted=True),
    )
    assert world.writes() == ["delete b"]


@pytest.mark.parametrize(
    ("rule", "done", "want"),
    [
        pytest.param({"succeededCount": 0}, [], [], id="nothing has succeeded yet"),
        pytest.param({"succeededCount": 0}, [1], ["SuccessPolicy"], id="anything will do"),
        pytest.param({"succeededIndexes": "2-5"}, [2], ["SuccessPolicy"],
            id="of indexes that there were before it shrank, those that there are"),
        pytest.param({"succeededIndexes": "5-9"}, [1], [], id="indexes that there are not"),
    ],
)  # fmt: skip
def test_success_policies_of_jobs_that_shrank(
    rule: Object, done: list[int], want: list[str]
) -> None:
    spec: Object = {**INDEXED, "successPolicy": {"rules": [rule]}}
    pods = [pod(f"p{each}", "Succeeded", index=each) for each in done]
    conditions = World(job(**spec), *pods).status().get("conditions") or []
    assert [condition["reason"] for condition in conditions] == want


@pytest.mark.parametrize(
    ("spec", "status", "want"),
    [
        pytest.param({}, {}, STAMP, id="at the first look"),
        pytest.param({}, {"startTime": BEFORE}, None, id="which is kept"),
        pytest.param({"suspend": True}, {}, None, id="not before it is resumed"),
        pytest.param({"suspend": True}, {"startTime": BEFORE}, "gone", id="gone once suspended"),
        pytest.param(
            {}, {"startTime": BEFORE, "conditions": [{"type": "Suspended", "status": "True"}]},
            STAMP, id="resumed by somebody who had kept it",
        ),
        pytest.param(
            {"suspend": True, "completions": 0}, {}, STAMP, id="what ends has begun"
        ),
    ],
)  # fmt: skip
def test_when_a_run_began(spec: dict[str, Any], status: Object, want: str | None) -> None:
    found = World(job(status=status, **spec)).status()
    assert found.get("startTime", "gone" if "startTime" in found else None) == (
        None if want == "gone" else want
    )
    assert ("startTime" in found) == (want is not None)


def test_the_time_before_a_suspension_does_not_count() -> None:
    suspended = [{"type": "Suspended", "status": "True"}]
    status = {"startTime": BEFORE, "conditions": suspended}
    world = World(job(status=status, activeDeadlineSeconds=60))
    assert world.conditions() == ["Suspended=False JobResumed"]
    status = {"startTime": STAMP, "conditions": [{**suspended[0], "status": "False"}]}
    assert World(job(status=status, activeDeadlineSeconds=20)).plan().again == 20


def test_a_job_without_time_makes_no_pod() -> None:
    world = World(job(activeDeadlineSeconds=0))
    assert world.writes() == []
    assert World(job(activeDeadlineSeconds=0)).conditions() == [
        "FailureTarget=True DeadlineExceeded",
        "Failed=True DeadlineExceeded",
    ]


def test_a_condition_is_renewed_when_its_reason_is_another() -> None:
    told = [{"type": "Suspended", "status": "True", "reason": "Kueue", "message": "m"}]
    assert World(job(suspend=True, status={"conditions": told})).conditions() == [
        "Suspended=True JobSuspended"
    ]


def test_nothing_is_said_of_a_suspension_while_it_is_deleted() -> None:
    assert World(job(suspend=True, deleted=True)).conditions() == []


def test_more_successes_than_wanted_are_worth_a_warning() -> None:
    status = {"startTime": STAMP, "conditions": [SUCCESS], "succeeded": 2}
    world = World(job(status=status))
    for action in world.plan().actions:
        world.controller.finished(KEY, Outcome(action))
    assert [(each.type, each.reason, each.message) for each in world.recorded] == [
        (
            "Warning",
            "TooManySucceededPods",
            "Too many succeeded pods running after completion count reached",
        ),
        ("Normal", "Completed", "Job completed"),
    ]


ENDED: Object = {"conditions": [{"type": "Complete", "status": "True"}], "startTime": STAMP}


def test_the_pods_of_another_controllers_job_are_left_alone() -> None:
    obj = job(managedBy="kueue.x-k8s.io/multikueue", status=ENDED)
    assert World(obj, pod("a", "Succeeded")).writes() == []
    assert World(job(status=ENDED), pod("a", "Succeeded")).writes() == ["release a"]


def test_so_are_those_of_what_others_call_a_job() -> None:
    obj = pod("a", "Succeeded")
    obj["metadata"]["ownerReferences"][0]["apiVersion"] = "batch.volcano.sh/v1alpha1"
    world = World(None, obj)
    assert (world.enqueued, world.writes()) == ([], [])


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"batch.kubernetes.io/controller-uid": "uid-j"}, [KEY], id="it fits"),
        pytest.param({}, [], id="it does not"),
    ],
)
def test_a_job_is_told_of_pods_that_it_may_adopt(labels: Object, want: list[str]) -> None:
    obj = pod("a", held=False)
    obj["metadata"] |= {"labels": labels, "ownerReferences": []}
    world = World(job(), obj)
    assert world.enqueued == [KEY, *want]
    assert world.clock.now() == NOW
