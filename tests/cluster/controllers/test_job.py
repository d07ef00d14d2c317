"""What the controller of Jobs plans: which pods it makes and deletes, and what it reports."""

from typing import Any

import pytest

from berth.cluster.actions import Create, Patch
from berth.cluster.controllers.job_backoff import FAILURES
from berth.cluster.controllers.job_pods import FINALIZER, INDEX
from berth.cluster.resources import Object
from tests.cluster.controllers.jobs import KEY, STAMP, World, _shown, job, pod


def test_a_pod_is_made_of_the_template() -> None:
    world = World(job())
    [status, create] = world.plan().actions

    assert isinstance(create, Create)
    metadata = create.body["metadata"]
    assert metadata["name"].startswith("j-")
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "j",
            "uid": "uid-j",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert isinstance(status, Patch)
    assert status.body["status"] == {
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {"succeeded": None, "failed": None},
        "startTime": STAMP,
    }


def test_an_indexed_pod_knows_its_index() -> None:
    world = World(job(completions=3, parallelism=3, completionMode="Indexed"), pod(index=1))
    creates = [action for action in world.plan().actions if isinstance(action, Create)]

    assert [create.body["metadata"]["generateName"] for create in creates] == ["j-0-", "j-2-"]
    body = creates[1].body
    assert body["metadata"]["annotations"] == {INDEX: "2"}
    assert body["metadata"]["labels"][INDEX] == "2"
    assert body["spec"]["hostname"] == "j-2"
    [variable] = body["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == path


ELASTIC = {"completions": 4, "parallelism": 2, "completionMode": "Indexed"}
PER_INDEX = {**ELASTIC, "backoffLimitPerIndex": 1}


@pytest.mark.parametrize(
    ("spec", "pods", "want"),
    [
        pytest.param({"parallelism": 3}, [], ["create j-"] * 3, id="a queue has its workers"),
        pytest.param(
            {"parallelism": 3},
            [pod("a", "Succeeded", held=False), pod("b")],
            ["create j-"] * 2,
            id="what was counted before and is not in the status does not count",
        ),
        pytest.param(
            {"parallelism": 2}, [pod("a", "Succeeded"), pod("b")], [], id="a queue that is empty"
        ),
        pytest.param(
            {"completions": 3, "parallelism": 2}, [pod("a")], ["create j-"], id="one more at a time"
        ),
        pytest.param(
            {"completions": 3, "parallelism": 1}, [pod("a"), pod("b", held=False)], ["delete b"],
            id="too many, of which one has lost the finalizer",
        ),
        pytest.param(
            {"completions": 3, "parallelism": 1}, [pod("a", "Pending"), pod("b")], ["release a"],
            id="too many: they do not count as failed",
        ),
        pytest.param(
            {"suspend": True}, [pod("a")], ["release a"], id="suspended: the pod has to go"
        ),
        pytest.param({"suspend": True}, [pod("a", held=False)], ["delete a"], id="and goes"),
        pytest.param(ELASTIC, [], ["create j-0-", "create j-1-"], id="the first indexes"),
        pytest.param(
            ELASTIC, [pod("a", index=0), pod("b", "Pending", index=0), pod("c", index=7)],
            ["release b", "release c"],
            id="indexes that others have, or that there are not",
        ),
        pytest.param({}, [pod("a", "Failed")], [], id="after a failure there is a pause"),
        pytest.param(
            {}, [pod("a", "Failed", ended="2025-12-31T23:59:50Z")], ["create j-"],
            id="after the pause there is another",
        ),
        pytest.param(
            {}, [pod("a", deleted=True)], [], id="a pod that is deleted has failed"
        ),
        pytest.param(
            {"podReplacementPolicy": "Failed"}, [pod("a", deleted=True)], [],
            id="unless it has to say so itself",
        ),
        pytest.param(
            PER_INDEX, [pod("a", "Failed", index=0), pod("b", index=1)], [],
            id="an index that has failed has a pause of its own",
        ),
        pytest.param(
            {**PER_INDEX, "parallelism": 3}, [pod("a", "Failed", index=0), pod("b", index=1)],
            ["create j-2-"],
            id="and the next one need not wait",
        ),
        pytest.param(
            PER_INDEX,
            [pod("a", "Failed", index=0, failures=1), pod("b", index=1)],
            ["create j-2-"],
            id="an index that has failed too often",
        ),
        pytest.param({"managedBy": "example.com/queue"}, [], [], id="of another controller"),
    ],
)  # fmt: skip
def test_which_pods_are_made_and_deleted(spec: Object, pods: list[Object], want: list[str]) -> None:
    assert World(job(**spec), *pods).writes() == want


def test_a_failed_index_carries_on_counting() -> None:
    old = pod("a", "Failed", index=0, ended="2025-12-31T23:50:00Z")
    spec: dict[str, Any] = {**PER_INDEX, "backoffLimitPerIndex": 2, "parallelism": 1}
    world = World(job(**spec), old)
    [create] = [action for action in world.plan().actions if isinstance(action, Create)]
    assert create.body["metadata"]["annotations"] == {INDEX: "0", FAILURES: "1"}


def test_pods_are_asked_for_once() -> None:
    world = World(job(parallelism=2))
    assert world.writes() == ["create j-", "create j-"]
    assert world.writes() == []


def test_a_pause_ends_by_itself() -> None:
    world = World(job(activeDeadlineSeconds=60, status={"startTime": STAMP}), pod("a", "Failed"))
    assert world.plan().again == 10.0
    world.clock.advance(10)
    assert world.writes() == ["create j-"]


@pytest.mark.parametrize(
    ("spec", "status", "pods", "want"),
    [
        pytest.param(
            {}, {}, [pod("a", "Succeeded")],
            {"uncountedTerminatedPods": {"succeeded": ["uid-a"], "failed": None}},
            id="first it is noted",
        ),
        pytest.param(
            {}, {"uncountedTerminatedPods": {"succeeded": ["uid-a"]}},
            [pod("a", "Succeeded", held=False)],
            {"uncountedTerminatedPods": {"succeeded": None, "failed": None}, "succeeded": 1},
            id="without the finalizer it is counted",
        ),
        pytest.param(
            {}, {"uncountedTerminatedPods": {"failed": ["uid-a"]}, "failed": 2}, [],
            {"uncountedTerminatedPods": {"succeeded": None, "failed": None}, "failed": 3},
            id="and also when it is gone",
        ),
        pytest.param(
            ELASTIC, {"completedIndexes": "1"}, [pod("a", "Succeeded", index=0)],
            {"completedIndexes": "0,1", "succeeded": 2},
            id="an index needs no note",
        ),
        pytest.param(
            PER_INDEX, {}, [pod("a", "Failed", index=3, failures=1)],
            {"failedIndexes": "3"},
            id="an index that has failed for good",
        ),
        pytest.param(
            {"parallelism": 2}, {}, [pod("a", conditions=("Ready",)), pod("b")],
            {"active": 2, "ready": 1},
            id="those that run",
        ),
        pytest.param(
            {"podReplacementPolicy": "Failed"}, {}, [pod("a", deleted=True)],
            {"terminating": 1},
            id="those that are leaving",
        ),
    ],
)  # fmt: skip
def test_how_pods_are_counted(
    spec: Object, status: Object, pods: list[Object], want: Object
) -> None:
    found = World(job(status=status, **spec), *pods).status()
    assert {field: found.get(field) for field in want} == want


@pytest.mark.parametrize(
    ("spec", "status", "pods", "want"),
    [
        pytest.param(
            {}, {"uncountedTerminatedPods": {"succeeded": ["uid-a"]}}, [pod("a", "Succeeded")],
            ["release a"], id="what is noted",
        ),
        pytest.param({}, {}, [pod("a", "Succeeded")], [], id="not what is not"),
        pytest.param(
            ELASTIC, {"completedIndexes": "0", "startTime": STAMP},
            [pod("a", "Succeeded", index=0), pod("b", index=1), pod("c", index=2)],
            ["release a"], id="an index that is complete",
        ),
        pytest.param(
            PER_INDEX, {"uncountedTerminatedPods": {}},
            [pod("a", "Failed", index=0), pod("b", index=1)],
            [], id="not the last failure of an index",
        ),
        pytest.param(
            {"podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
            ]}},
            {}, [pod("a", "Failed", conditions=("DisruptionTarget",))],
            ["release a"], id="a failure that is ignored",
        ),
    ],
)  # fmt: skip
def test_which_pods_lose_the_finalizer(
    spec: Object, status: Object, pods: list[Object], want: list[str]
) -> None:
    assert World(job(status=status, **spec), *pods).writes() == want


RESTARTED = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]}}


def exit_rule(action: str, *values: int, operator: str = "In") -> Object:
    codes = {"operator": operator, "values": list(values)}
    return {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": codes}]}}


@pytest.mark.parametrize(
    ("spec", "pods", "want"),
    [
        pytest.param({}, [pod("a", "Succeeded")], ("SuccessCriteriaMet", "CompletionsReached"),
            id="as many as wanted"),
        pytest.param({"completions": 0}, [], ("SuccessCriteriaMet", "CompletionsReached"),
            id="none is wanted"),
        pytest.param({"completions": 2}, [pod("a", "Succeeded")], None, id="not enough"),
        pytest.param({"parallelism": 2}, [pod("a", "Succeeded")],
            ("SuccessCriteriaMet", "CompletionsReached"), id="the workers of a queue have left"),
        pytest.param({"backoffLimit": 0}, [pod("a", "Failed")],
            ("FailureTarget", "BackoffLimitExceeded"), id="too many failures"),
        pytest.param({"backoffLimit": 1}, [pod("a", "Failed")], None, id="one failure is allowed"),
        pytest.param(
            {"backoffLimit": 2, "template": RESTARTED},
            [pod("a", restarts=2)], ("FailureTarget", "BackoffLimitExceeded"),
            id="too many restarts"),
        pytest.param({"activeDeadlineSeconds": 0}, [pod("a")],
            ("FailureTarget", "DeadlineExceeded"), id="out of time"),
        pytest.param({"activeDeadlineSeconds": 0, "suspend": True}, [], None,
            id="time does not pass while it is suspended"),
        pytest.param({**PER_INDEX, "maxFailedIndexes": 0},
            [pod("a", "Failed", index=1, failures=1)],
            ("FailureTarget", "MaxFailedIndexesExceeded"), id="too many failed indexes"),
        pytest.param({**PER_INDEX, "completions": 2},
            [pod("a", "Failed", index=1, failures=1), pod("b", "Succeeded", index=0)],
            ("FailureTarget", "FailedIndexes"), id="no index is left"),
        pytest.param(exit_rule("FailJob", 1), [pod("a", "Failed")],
            ("FailureTarget", "PodFailurePolicy"), id="a failure that is final"),
        pytest.param(exit_rule("FailJob", 1, operator="NotIn"), [pod("a", "Failed")], None,
            id="another failure"),
        pytest.param({**exit_rule("Ignore", 1), "backoffLimit": 0}, [pod("a", "Failed")], None,
            id="a failure that does not count"),
        pytest.param({**ELASTIC, "successPolicy": {"rules": [{"succeededIndexes": "1-2"}]}},
            [pod("a", "Succeeded", index=1), pod("b", "Succeeded", index=2)],
            ("SuccessCriteriaMet", "SuccessPolicy"), id="the indexes that matter"),
        pytest.param({**ELASTIC, "successPolicy": {"rules": [
                {"succeededIndexes": "1-2", "succeededCount": 1}]}},
            [pod("a", "Succeeded", index=3)], None, id="an index that does not matter"),
    ],
)  # fmt: skip
def test_when_it_ends(spec: Object, pods: list[Object], want: tuple[str, str] | None) -> None:
    status = {"startTime": STAMP, "conditions": []}
    found = World(job(status=status, **spec), *pods).status().get("conditions") or []
    ends = [
        (each["type"], each["reason"])
        for each in found
        if each["type"] in ("SuccessCriteriaMet", "FailureTarget")
    ]
    assert ends == ([] if want is None else [want])


def test_what_failed_it_is_told() -> None:
    world = World(job(**exit_rule("FailJob", 1)), pod("a", "Failed"))
    [condition] = world.status()["conditions"]
    assert condition["message"] == (
        "Container c for pod default/a failed with exit code 1 matching FailJob rule at index 0"
    )


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([pod("b")], ["FailureTarget=True DeadlineExceeded"], id="while a pod is left"),
        pytest.param(
            [pod("b", "Failed", held=False)],
            ["FailureTarget=True DeadlineExceeded", "Failed=True DeadlineExceeded"],
            id="when none is left",
        ),
    ],
)
def test_the_end_comes_with_the_last_pod(pods: list[Object], want: list[str]) -> None:
    world = World(job(activeDeadlineSeconds=0, status={"startTime": STAMP}), *pods)
    assert world.conditions() == want


def test_success_has_a_time() -> None:
    noted = {"uncountedTerminatedPods": {"succeeded": ["uid-a"]}, "startTime": STAMP}
    world = World(job(status=noted), pod("a", "Succeeded", held=False))
    world.clock.advance(5)
    status = world.status()
    assert status["completionTime"] == "2026-01-01T00:00:05Z"
    assert [condition["type"] for condition in status["conditions"]] == [
        "SuccessCriteriaMet",
        "Complete",
    ]


def test_it_is_suspended_and_resumed() -> None:
    assert World(job(suspend=True)).conditions() == ["Suspended=True JobSuspended"]
    suspended = [{"type": "Suspended", "status": "True"}]
    world = World(job(status={"conditions": suspended, "startTime": "2025-12-31T00:00:00Z"}))
    assert world.conditions() == ["Suspended=False JobResumed"]
    assert world.status()["startTime"] == STAMP


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(None, id="deleted"),
        pytest.param(
            job(status={"conditions": [{"type": "Complete", "status": "True"}]}), id="ended"
        ),
        pytest.param(job(deleted=True, managedBy="kubernetes.io/job-controller"), id="leaving"),
    ],
)
def test_a_job_that_is_no_more_lets_its_pods_go(obj: Object | None) -> None:
    world = World(obj, pod("a", "Failed"), pod("b", held=False))
    assert world.writes() == ["release a"]


def orphan(*, labelled: bool) -> Object:
    obj = pod("a")
    labels = obj["metadata"]["labels"] if labelled else {}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [], "labels": labels}}


def test_a_pod_without_controller_is_adopted_or_let_go() -> None:
    world = World(job(), orphan(labelled=False))
    assert world.enqueued == [KEY, "pod:default/a"]
    [patch] = world.controller.plan("pod:default/a").actions
    assert _shown(patch) == "release a"
    assert World(job(), orphan(labelled=True)).controller.plan("pod:default/a").actions == []


def test_an_adopted_pod_gets_the_finalizer() -> None:
    obj = orphan(labelled=True)
    obj["metadata"]["finalizers"] = ["example.com/other"]
    [adoption] = [
        action
        for action in World(job(), obj).plan().actions
        if isinstance(action, Patch) and action.path.endswith("/pods/a")
    ]
    assert adoption.body["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    [owner] = adoption.body["metadata"]["ownerReferences"]
    assert owner["name"] == "j"
