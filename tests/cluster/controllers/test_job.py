"""What the controller of Jobs plans: which pods it makes and deletes, and what it reports."""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.client.errors import ConflictError
from berth.clock import FakeClock
from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome, Plan
from berth.cluster.controllers.job import JobController
from berth.cluster.controllers.job_pods import FAILURES, FINALIZER, INDEX, JobView
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import PodView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.writes.patch import merge_patch

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
STRATEGY = find("batch", "v1", "jobs").strategy
KEY = "default/j"
decode_pod = PodView.decoder()


def job(*, status: Object | None = None, deleted: bool = False, **spec: Any) -> Object:
    """A Job as the server has it."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    metadata: Object = {"name": "j", "namespace": "default", "uid": "uid-j", "resourceVersion": "1"}
    if deleted:
        metadata["deletionTimestamp"] = STAMP
    obj: Object = {"metadata": metadata, "spec": {"template": template, **spec}}
    STRATEGY.default(obj)
    STRATEGY.prepare(obj, None)
    return {**obj, "status": status or {}}


def pod(
    name: str = "p",
    phase: str = "Running",
    *,
    index: int | None = None,
    held: bool = True,
    deleted: bool = False,
    ended: str = STAMP,
    exit_code: int = 1,
    restarts: int = 0,
    conditions: tuple[str, ...] = (),
    failures: int = 0,
) -> Object:
    """A pod of the Job; *held*: it has the finalizer still."""
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {"batch.kubernetes.io/controller-uid": "uid-j"},
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j"}
            | {"controller": True}
        ],
        "finalizers": [FINALIZER] if held else [],
    }
    if index is not None:
        metadata["annotations"] = {INDEX: str(index), FAILURES: str(failures)}
    if deleted:
        metadata["deletionTimestamp"] = STAMP
    container: Object = {"name": "c", "restartCount": restarts, "state": {"running": {}}}
    if phase in ("Succeeded", "Failed"):
        code = exit_code if phase == "Failed" else 0
        container["state"] = {"terminated": {"exitCode": code, "finishedAt": ended}}
    status = {
        "phase": phase,
        "containerStatuses": [container],
        "conditions": [{"type": each, "status": "True"} for each in conditions],
    }
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}


class World:
    def __init__(self, obj: Object | None = None, *pods: Object) -> None:
        self.clock = FakeClock(NOW)
        self.jobs: Table[JobView] = Table()
        self.pods: Table[PodView] = Table()
        self.recorded: list[Occurrence] = []
        self.controller = JobController(
            self.jobs,
            self.pods,
            clock=self.clock,
            rng=random.Random(1),
            recorder=EventRecorder(self.recorded.append, "job-controller", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        if obj is not None:
            self.jobs.on_add(msgspec.convert(obj, JobView))
        for each in pods:
            self.pods.on_add(decode_pod(msgspec.json.encode(each)))

    def plan(self) -> Plan:
        return self.controller.plan(KEY)

    def writes(self) -> list[str]:
        """What is done beside telling the status, in short."""
        return [shown for action in self.plan().actions for shown in [_shown(action)] if shown]

    def status(self) -> Object:
        """What changes of the status."""
        for action in self.plan().actions:
            if isinstance(action, Patch) and action.path.endswith("/status"):
                assert action.body["metadata"] == {"uid": "uid-j", "resourceVersion": "1"}
                found: Object = action.body["status"]
                return found
        return {}

    def conditions(self) -> list[str]:
        return [
            f"{each['type']}={each['status']} {each['reason']}"
            for each in self.status().get("conditions") or ()
        ]


def _shown(action: Action) -> str:
    name = action.path.rpartition("/")[2] if not isinstance(action, Create) else ""
    match action:
        case Create(_, body):
            return f"create {body['metadata']['generateName']}"
        case Delete():
            return f"delete {name}"
        case Patch(_, {"metadata": {"$deleteFromPrimitiveList/finalizers": [_]}}):
            return f"release {name}"
    return ""


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
    creates = [each for each in world.plan().actions if isinstance(each, Create)]

    assert [each.body["metadata"]["generateName"] for each in creates] == ["j-0-", "j-2-"]
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
    [create] = [each for each in world.plan().actions if isinstance(each, Create)]
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
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]


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
        each
        for each in World(job(), obj).plan().actions
        if isinstance(each, Patch) and each.path.endswith("/pods/a")
    ]
    assert adoption.body["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    [owner] = adoption.body["metadata"]["ownerReferences"]
    assert owner["name"] == "j"


class Cluster(World):
    """The controller with an API that does as it is told, and pods that end as they are told."""

    def __init__(self, obj: Object) -> None:
        super().__init__()
        self.objects: dict[str, Object] = {}
        self.created = 0
        self.version = 1
        self.put(obj, "jobs")

    def put(self, obj: Object, kind: str) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        name = obj["metadata"]["name"]
        old = self.objects.get(name)
        self.objects[name] = obj
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            del self.objects[name]
            self.pods.on_delete(decode_pod(msgspec.json.encode(old)))
            return
        table: Table[Any] = self.jobs if kind == "jobs" else self.pods
        data = msgspec.json.encode(obj)
        view = msgspec.json.decode(data, type=JobView) if kind == "jobs" else decode_pod(data)
        before = table.get(view.metadata.key)
        if before is None:
            table.on_add(view)
        else:
            table.on_update(before, view)

    def reconcile(self) -> bool:
        """Carry out one plan; return whether there was anything to do."""
        actions = self.plan().actions
        for action in actions:
            self.apply(action)
            self.controller.finished(KEY, Outcome(action))
            self.check_invariants()
        return bool(actions)

    def apply(self, action: Action) -> None:
        match action:
            case Create(_, body):
                self.created += 1
                body["metadata"]["uid"] = f"uid-{body['metadata']['name']}"
                self.put({**body, "status": {"phase": "Running"}}, "pods")
            case Delete(path):
                obj = self.objects[path.rpartition("/")[2]]
                metadata = {**obj["metadata"], "deletionTimestamp": STAMP}
                self.put({**obj, "metadata": metadata}, "pods")
            case Patch(path, body):
                parts = path.removesuffix("/status").split("/")
                obj = self.objects[parts[-1]]
                if path.endswith("/status"):
                    version = body["metadata"].get("resourceVersion")
                    assert version == obj["metadata"]["resourceVersion"]
                    self.put({**obj, "status": merged(obj["status"], body["status"])}, "jobs")
                else:
                    finalizers = body["metadata"]["$deleteFromPrimitiveList/finalizers"]
                    kept = [
                        each for each in obj["metadata"]["finalizers"] if each not in finalizers
                    ]
                    self.put({**obj, "metadata": {**obj["metadata"], "finalizers": kept}}, "pods")

    def end_pods(self, outcomes: Mapping[str, str]) -> None:
        """End the pods that run, by *outcomes*: letters of their names to phases."""
        for name, obj in list(self.objects.items()):
            if name == "j" or obj["status"]["phase"] != "Running":
                continue
            phase = outcomes.get(name[-1], "Succeeded")
            if obj["metadata"].get("deletionTimestamp"):
                phase = "Failed"
            state = {"terminated": {"exitCode": 0 if phase == "Succeeded" else 1}}
            status = {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]}
            self.put({**obj, "status": status}, "pods")

    def check_invariants(self) -> None:
        spec, status = self.objects["j"]["spec"], self.objects["j"]["status"]
        active = [pod for pod in self.pods.values() if pod.is_active]
        assert len(active) <= spec["parallelism"]
        noted = status.get("uncountedTerminatedPods") or {}
        known = [uid for uids in noted.values() for uid in uids]
        assert len(known) == len(set(known))
        counted = (status.get("succeeded") or 0) + (status.get("failed") or 0)
        assert counted + len(known) <= self.created


def merged(old: Object, patch: Object) -> Object:
    found: Object = merge_patch(old, patch)
    return found


def test_events_tell_of_pods_and_of_the_end() -> None:
    cluster = Cluster(job())
    while cluster.reconcile():
        cluster.end_pods({})

    [name] = [each.metadata.name for each in cluster.pods.values()]
    assert [(each.type, each.reason, each.message) for each in cluster.recorded] == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name}"),
        ("Normal", "Completed", "Job completed"),
    ]


def test_no_event_tells_of_a_status_that_was_not_written() -> None:
    world = World(job(suspend=True))
    [patch] = world.plan().actions
    world.controller.finished(KEY, Outcome(patch, error=ConflictError(409, "Conflict", "")))
    assert world.recorded == []
    world.plan()
    world.controller.finished(KEY, Outcome(patch))
    assert [each.reason for each in world.recorded] == ["Suspended"]


@settings(max_examples=50)
@given(
    completions=st.integers(0, 6),
    parallelism=st.integers(1, 4),
    indexed=st.booleans(),
    limit=st.integers(0, 5),
    outcomes=st.dictionaries(st.sampled_from("bcdfghjklm2468"), st.just("Failed")),
)
def test_every_job_ends_with_every_pod_counted_once(
    completions: int, parallelism: int, indexed: bool, limit: int, outcomes: dict[str, str]
) -> None:
    cluster = Cluster(
        job(
            completions=completions,
            parallelism=parallelism,
            completionMode="Indexed" if indexed else "NonIndexed",
            backoffLimit=limit,
        )
    )
    for _ in range(30):
        while cluster.reconcile():
            pass
        cluster.end_pods(outcomes)
        cluster.clock.advance(700)
    status = cluster.objects["j"]["status"]
    ends = {each["type"] for each in status["conditions"]}
    assert len(ends & {"Complete", "Failed"}) == 1
    counted = (status.get("succeeded") or 0) + (status.get("failed") or 0)
    assert counted == cluster.created
    assert not any(FINALIZER in (each.metadata.finalizers or ()) for each in cluster.pods.values())
    if "Complete" in ends:
        assert status.get("succeeded") == (completions or None)
    else:
        assert status["failed"] > limit
