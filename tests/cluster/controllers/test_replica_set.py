"""What the ReplicaSet controller plans. Its loop is in test_controllers_loop."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome, Plan
from berth.cluster.controllers.expectations import UNSEEN_SECONDS
from berth.cluster.controllers.replica_set import (
    ReplicaSetController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    UnavailableError,
)
from berth.runtime.clock import FakeClock
from tests.cluster.objects import BIRTH, pod_view, workload_view

KEY = "default/web"
PODS = "/api/v1/namespaces/default/pods"
STATUS = "/apis/apps/v1/namespaces/default/replicasets/web/status"


class World:
    """A ReplicaSet controller with the tables it reads."""

    def __init__(self) -> None:
        self.recorded: list[Occurrence] = []
        self.clock = FakeClock(1_767_225_600.0)  # BIRTH
        self.replica_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.enqueued: list[str] = []
        self.controller = ReplicaSetController(
            self.replica_sets,
            self.pods,
            clock=self.clock,
            rng=random.Random(3),
            recorder=EventRecorder(self.recorded.append, "replicaset-controller", self.clock),
        )
        self.controller.subscribe(self.enqueued.append)

    def plan(self) -> Plan:
        return self.controller.plan(KEY)

    def writes(self, kind: type[Action] | type[Any]) -> list[Any]:
        return [action for action in self.plan().actions if isinstance(action, kind)]


@pytest.fixture
def world() -> World:
    return World()


def reported(
    replicas: int, ready: int | None = None, available: int | None = None, terminating: int = 0
) -> Object:
    """A status as the controller reports it: zeros that the API leaves out are removed."""
    ready = replicas if ready is None else ready
    return {
        "replicas": replicas,
        "fullyLabeledReplicas": replicas or None,
        "readyReplicas": ready or None,
        "availableReplicas": (ready if available is None else available) or None,
        "observedGeneration": 1,
        "terminatingReplicas": terminating,
    }


def test_a_missing_pod_is_created_from_the_template(world: World) -> None:
    world.replica_sets.on_add(workload_view(status=reported(0)))

    (create,) = world.plan().actions

    assert isinstance(create, Create)
    name = create.body["metadata"]["name"]
    assert name.startswith("web-")
    assert (create.path, create.body) == (
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "generateName": "web-",
                "namespace": "default",
                "labels": {"app": "web"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": "web",
                        "uid": "uid-web",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    )


def test_what_is_not_seen_yet_counts_until_it_is_given_up_on(world: World) -> None:
    world.replica_sets.on_add(workload_view(replicas=2, status=reported(0)))

    assert [len(world.writes(Create)), len(world.writes(Create))] == [2, 0]

    world.clock.advance(UNSEEN_SECONDS)
    assert len(world.writes(Create)) == 2


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(ServerError(500, "InternalError", "no"), 1, id="it failed: again"),
        pytest.param(UnavailableError("refused", sent=False), 1, id="never sent: again"),
        pytest.param(UnavailableError("reset", sent=None), 0, id="who knows: wait for the watch"),
    ],
)
def test_failed_creations(world: World, error: ApiError, want: int) -> None:
    world.replica_sets.on_add(workload_view(status=reported(0)))
    (create,) = world.writes(Create)

    world.controller.finished(KEY, Outcome(create, error=error))

    assert len(world.writes(Create)) == want


def test_a_pod_that_came_and_went_between_two_plans_is_replaced(world: World) -> None:
    world.replica_sets.on_add(workload_view(status=reported(0)))
    (create,) = world.writes(Create)
    shown = pod_view(create.body["metadata"]["name"])

    world.pods.on_add(shown)
    world.pods.on_delete(shown)

    assert len(world.writes(Create)) == 1


def test_surplus_pods_go_once(world: World) -> None:
    world.replica_sets.on_add(workload_view(replicas=1, status=reported(3)))
    for name in ("a", "b", "c"):
        world.pods.on_add(pod_view(name))

    first, second = world.writes(Delete), world.writes(Delete)

    assert (len(first), second) == (2, [])
    world.controller.finished(KEY, Outcome(first[0], error=ServerError(500, "x", "x")))
    assert world.writes(Delete) == [first[0]]


def test_matching_orphans_are_adopted_and_others_released(world: World) -> None:
    world.replica_sets.on_add(workload_view(replicas=1, status=reported(0)))
    world.pods.on_add(pod_view("orphan", of=None))
    world.pods.on_add(pod_view("stray", labels={"app": "other"}))

    adopt, release = sorted(world.writes(Patch), key=lambda patch: str(patch.path))

    assert (adopt.path, [ref["name"] for ref in adopt.body["metadata"]["ownerReferences"]]) == (
        f"{PODS}/orphan",
        ["web"],
    )
    assert (release.path, release.body["metadata"]) == (
        f"{PODS}/stray",
        {"uid": "uid-stray", "resourceVersion": "1", "ownerReferences": []},
    )


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([pod_view("a")], reported(1), id="one ready"),
        pytest.param([pod_view("a", ready=None)], reported(1, ready=0), id="one not ready"),
        pytest.param(
            [pod_view("a", deleted=True)], reported(0, terminating=1), id="one on its way out"
        ),
        pytest.param(
            [pod_view("a", deleted=True, phase="Failed")], reported(0), id="one that has ended"
        ),
        pytest.param([pod_view("a", phase="Failed")], reported(0), id="one failed"),
    ],
)
def test_status(world: World, pods: list[PodView], want: Object) -> None:
    world.replica_sets.on_add(workload_view(replicas=0, status={"replicas": 9}))
    for pod in pods:
        world.pods.on_add(pod)

    (patch,) = world.writes(Patch)

    assert patch == Patch(STATUS, {"metadata": {"uid": "uid-web"}, "status": want})


def test_a_pod_is_available_after_min_ready_seconds(world: World) -> None:
    status = reported(1, available=0)
    world.replica_sets.on_add(workload_view(status=status, minReadySeconds=10))
    world.pods.on_add(pod_view("a", ready=BIRTH))

    early = world.plan()
    world.clock.advance(10)
    (late,) = world.plan().actions

    assert (early.actions, early.again) == ([], 10.0)
    assert isinstance(late, Patch)
    assert late.body["status"] == reported(1)


def test_changes_of_pods_concern_their_owner(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    world.enqueued.clear()

    world.pods.on_add(pod_view("mine"))
    world.pods.on_add(pod_view("orphan", of=None))
    world.pods.on_add(pod_view("other", of=None, labels={"app": "other"}))

    assert world.enqueued == [KEY, KEY]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), replicas=st.integers(0, 6))
def test_never_more_pods_than_wanted_however_late_the_watch(
    data: st.DataObject, replicas: int
) -> None:
    """Requests fail or lose their answers, pods vanish, events come late; safety holds."""
    world = World()
    view = workload_view(replicas=replicas)
    world.replica_sets.on_add(view)
    existing: dict[str, PodView] = {}
    events: list[tuple[str, PodView]] = []

    def perform(action: Action) -> None:
        fate = data.draw(st.sampled_from(["done", "failed", "lost"]))
        if fate != "failed":
            apply(action)
        error: ApiError | None = None
        if fate == "failed":
            error = ServerError(500, "InternalError", "")
        elif fate == "lost":
            error = UnavailableError("reset", sent=True)
        world.controller.finished(KEY, Outcome(action, error=error))

    def apply(action: Action) -> None:
        if isinstance(action, Create):
            made = pod_view(action.body["metadata"]["name"])
            existing[made.metadata.name] = made
            events.append(("add", made))
        elif isinstance(action, Delete):
            vanish(action.path.rpartition("/")[2])

    def vanish(name: str) -> None:
        if name in existing:
            events.append(("delete", existing.pop(name)))

    def deliver(count: int) -> None:
        for change, shown in events[:count]:
            (world.pods.on_add if change == "add" else world.pods.on_delete)(shown)
        del events[:count]

    for _ in range(data.draw(st.integers(1, 12))):
        for action in world.plan().actions:
            perform(action)
        assert len(existing) <= replicas
        dies: bool = data.draw(st.booleans())
        if existing and dies:
            vanish(data.draw(st.sampled_from(sorted(existing))))
        deliver(data.draw(st.integers(0, len(events))))
        world.pods.check_invariants()

    world.clock.advance(UNSEEN_SECONDS)  # what was lost is given up on
    deliver(len(events))
    for action in world.plan().actions:
        apply(action)
    assert len(existing) == replicas


def test_replication_controllers_are_looked_after_in_the_same_way() -> None:
    owners: Table[WorkloadView] = Table()
    controller = ReplicaSetController(
        owners,
        Table(),
        clock=FakeClock(0.0),
        rng=random.Random(3),
        recorder=EventRecorder(lambda _: None, "replication-controller", FakeClock(0.0)),
        resource=find("", "v1", "replicationcontrollers"),
    )
    owners.on_add(workload_view())

    create, patch = controller.plan(KEY).actions

    assert isinstance(create, Create)
    [reference] = create.body["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"]) == ("v1", "ReplicationController")
    assert isinstance(patch, Patch)
    assert patch.path == "/api/v1/namespaces/default/replicationcontrollers/web/status"


TERMINATING = "unable to create new content in namespace default because it is being terminated"


@pytest.mark.parametrize(
    ("action", "error", "told"),
    [
        pytest.param(
            Create(PODS, {"metadata": {"name": "web-a"}}),
            None,
            [("Normal", "SuccessfulCreate", "Created pod: web-a")],
            id="created",
        ),
        pytest.param(
            Create(PODS, {"metadata": {"name": "web-a"}}),
            ForbiddenError(403, "Forbidden", 'pods "web-a" is forbidden: exceeded quota: q'),
            [
                (
                    "Warning",
                    "FailedCreate",
                    'Error creating: pods "web-a" is forbidden: exceeded quota: q',
                )
            ],
            id="refused",
        ),
        pytest.param(
            Create(PODS, {"metadata": {"name": "web-a"}}),
            ForbiddenError(403, "Forbidden", TERMINATING),
            [],
            id="in a namespace on its way out",
        ),
        pytest.param(
            Delete(f"{PODS}/web-a", "u"),
            None,
            [("Normal", "SuccessfulDelete", "Deleted pod: web-a")],
            id="deleted",
        ),
        pytest.param(
            Delete(f"{PODS}/web-a", "u"), NotFoundError(404, "NotFound", ""), [], id="gone already"
        ),
        pytest.param(
            Delete(f"{PODS}/web-a", "u"),
            ServerError(500, "InternalError", "no"),
            [("Warning", "FailedDelete", "Error deleting: no")],
            id="not deleted",
        ),
        pytest.param(Patch(STATUS, {}), None, [], id="its own status"),
    ],
)
def test_events_tell_of_pods(
    world: World, action: Action, error: ApiError | None, told: list[tuple[str, str, str]]
) -> None:
    world.replica_sets.on_add(workload_view())
    world.controller.finished(KEY, Outcome(action, error=error))
    world.controller.finished(KEY, Outcome(action, skipped=True))

    assert [(each.type, each.reason, each.message) for each in world.recorded] == told
    assert {each.regarding.name for each in world.recorded} <= {"web"}


def test_why_there_are_no_pods_is_a_condition_until_there_are(world: World) -> None:
    world.replica_sets.on_add(workload_view(replicas=2))
    [create, _, _] = world.plan().actions
    quota = ForbiddenError(403, "Forbidden", "exceeded quota: q")
    world.controller.finished(KEY, Outcome(create, error=quota))

    [report, *creates] = world.plan().actions
    assert isinstance(report, Patch)
    [condition] = report.body["status"]["conditions"]
    assert condition == {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": BIRTH,
        "reason": "FailedCreate",
        "message": "exceeded quota: q",
    }
    assert len(creates) == 1
    told = msgspec.structs.replace(workload_view(replicas=2), status=report.body["status"])
    world.replica_sets.on_update(workload_view(replicas=2), told)
    world.clock.advance(60)
    world.controller.finished(KEY, Outcome(create, error=quota))
    assert world.writes(Patch) == []
    world.controller.finished(KEY, Outcome(create, answer=b"{}"))
    [report] = world.writes(Patch)
    assert report.body["status"]["conditions"] == []
