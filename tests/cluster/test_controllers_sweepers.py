"""The garbage collector and the namespace controller: what they plan."""

from typing import Any

import msgspec
import pytest

from app.client.errors import NotFoundError, ServerError
from app.cluster.actions import Delete, DeleteCollection, Get, Patch, Replace
from app.cluster.controllers.controller import Outcome, Plan
from app.cluster.controllers.garbage_collector import BURST, GarbageCollector, Kind
from app.cluster.controllers.namespace import NamespaceController
from app.cluster.controllers.table import Table
from app.cluster.controllers.views import Meta, NamespaceView, PodView, WorkloadView
from tests.cluster.objects import BIRTH, owner, pod_view, workload_view

PODS = "/api/v1/namespaces/default/pods"
OWNER_PATH = "/apis/apps/v1/namespaces/default/replicasets/web"
GONE = NotFoundError(404, "NotFound", "")


class World:
    """A collector of ReplicaSets and pods."""

    def __init__(self) -> None:
        self.replica_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.enqueued: list[str] = []
        self.collector = GarbageCollector(
            [
                Kind("ReplicaSet", "/apis/apps/v1", "replicasets", self.replica_sets),
                Kind("Pod", "/api/v1", "pods", self.pods),
            ]
        )
        self.collector.subscribe(self.enqueued.append)

    def learn_that_the_owner_is_gone(self) -> None:
        (ask,) = self.collector.plan("uid-web").actions
        assert ask == Get(OWNER_PATH)
        self.collector.finished("uid-web", Outcome(ask, error=GONE))


@pytest.fixture
def world() -> World:
    return World()


def owned_by(*names: str, name: str = "p") -> PodView:
    pod = pod_view(name)
    references = [owner(each) for each in names]
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=references)
    )


def test_pods_of_a_living_owner_stay(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    world.pods.on_add(pod_view("p"))

    assert world.collector.plan("uid-web") == Plan()


def test_pods_go_when_the_server_says_that_the_owner_is_gone(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    world.pods.on_add(pod_view("going", deleted=True))
    world.learn_that_the_owner_is_gone()

    assert world.collector.plan("uid-web").actions == [Delete(f"{PODS}/p", "uid-p")]


@pytest.mark.parametrize(
    ("answer", "collected"),
    [
        pytest.param({"name": "web", "uid": "uid-web"}, False, id="the watch was just late"),
        pytest.param({"name": "web", "uid": "another"}, True, id="a namesake is no owner"),
    ],
)
def test_an_owner_that_answers(world: World, answer: dict[str, str], collected: bool) -> None:
    world.pods.on_add(pod_view("p"))
    (ask,) = world.collector.plan("uid-web").actions

    body = msgspec.json.encode({"metadata": answer})
    world.collector.finished("uid-web", Outcome(ask, answer=body))

    (action,) = world.collector.plan("uid-web").actions
    assert isinstance(action, Delete) is collected


def test_an_error_is_no_answer(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    (ask,) = world.collector.plan("uid-web").actions
    world.collector.finished("uid-web", Outcome(ask, error=ServerError(500, "x", "")))

    assert world.collector.plan("uid-web").actions == [ask]


def test_a_second_owner_keeps_the_object(world: World) -> None:
    world.pods.on_add(owned_by("web", "also"))
    world.learn_that_the_owner_is_gone()

    (patch,) = world.collector.plan("uid-web").actions

    assert isinstance(patch, Patch)
    assert patch.path == f"{PODS}/p"
    assert [ref["name"] for ref in patch.body["metadata"]["ownerReferences"]] == ["also"]


def test_owners_of_unknown_kinds_are_trusted(world: World) -> None:
    job = msgspec.structs.replace(owner("job"), kind="Job")
    pod = pod_view("p")
    meta = msgspec.structs.replace(pod.metadata, owner_references=[job])
    world.pods.on_add(msgspec.structs.replace(pod, metadata=meta))

    assert world.collector.plan("uid-job") == Plan()


def test_many_dependents_go_in_bursts(world: World) -> None:
    for number in range(BURST + 1):
        world.pods.on_add(pod_view(f"p{number}"))
    world.learn_that_the_owner_is_gone()

    plan = world.collector.plan("uid-web")

    assert (len(plan.actions), plan.again) == (BURST, 0.0)


def test_orphaning_lets_the_dependents_go_first(world: World) -> None:
    world.replica_sets.on_add(workload_view(deleted=True, finalizers=("orphan", "mine")))
    pod = pod_view("p")
    world.pods.on_add(pod)

    (let_go,) = world.collector.plan("uid-web").actions
    world.pods.on_update(pod, pod_view("p", of=None))
    (finalize,) = world.collector.plan("uid-web").actions

    assert isinstance(let_go, Patch)
    assert (let_go.path, let_go.body["metadata"]["ownerReferences"]) == (f"{PODS}/p", [])
    assert isinstance(finalize, Patch)
    assert (finalize.path, finalize.body["metadata"]["finalizers"]) == (OWNER_PATH, ["mine"])


def test_foreground_deletion_takes_the_dependents_first(world: World) -> None:
    world.replica_sets.on_add(workload_view(deleted=True, finalizers=("foregroundDeletion",)))
    pod = pod_view("p")
    world.pods.on_add(pod)

    assert world.collector.plan("uid-web").actions == [
        Delete(f"{PODS}/p", "uid-p", propagation="Foreground")
    ]
    world.pods.on_delete(pod)
    (finalize,) = world.collector.plan("uid-web").actions
    assert isinstance(finalize, Patch)


def test_who_is_looked_at(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    world.pods.on_add(pod_view("p"))
    world.pods.on_update(pod_view("p"), pod_view("p", phase="Failed"))
    world.replica_sets.on_delete(workload_view())

    assert world.enqueued == ["uid-web", "uid-web"]


COLLECTIONS = ["/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/events"]
DEMO_PODS, DEMO_EVENTS = (path.format(namespace="demo") for path in COLLECTIONS)


def namespace(*, deleted: bool, finalizers: tuple[str, ...] = ("kubernetes",)) -> NamespaceView:
    meta = Meta("demo", "uid-demo", deletion_timestamp=BIRTH if deleted else None)
    return NamespaceView(meta, {"finalizers": list(finalizers)})


def look(controller: NamespaceController, left: dict[str, list[Any]]) -> None:
    """Answer the controller's looks with what is *left* by path."""
    for action in controller.plan("demo").actions:
        answer = b""
        if isinstance(action, Get):
            answer = msgspec.json.encode({"metadata": {}, "items": left.get(action.path, [])})
        controller.finished("demo", Outcome(action, answer=answer))


def test_a_namespace_is_emptied_then_let_go() -> None:
    table: Table[NamespaceView] = Table()
    controller = NamespaceController(table, COLLECTIONS)
    table.on_add(namespace(deleted=True))

    first = controller.plan("demo").actions
    look(controller, {DEMO_PODS: [{}]})
    second = controller.plan("demo").actions
    look(controller, {})
    (last,) = controller.plan("demo").actions

    assert first == [DeleteCollection(DEMO_PODS), DeleteCollection(DEMO_EVENTS)]
    assert second == [DeleteCollection(DEMO_PODS), Get(DEMO_PODS, {"limit": "1"})]
    assert isinstance(last, Replace)
    assert (last.path, last.body["spec"]) == (
        "/api/v1/namespaces/demo/finalize",
        {"finalizers": []},
    )


def test_what_could_not_be_deleted_is_deleted_again() -> None:
    table: Table[NamespaceView] = Table()
    controller = NamespaceController(table, COLLECTIONS)
    table.on_add(namespace(deleted=True))
    first = controller.plan("demo").actions

    controller.finished("demo", Outcome(first[0], error=ServerError(500, "x", "")))

    assert controller.plan("demo").actions == first


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(namespace(deleted=False), id="not being deleted"),
        pytest.param(namespace(deleted=True, finalizers=("other",)), id="let go already"),
    ],
)
def test_namespaces_to_leave_alone(view: NamespaceView) -> None:
    table: Table[NamespaceView] = Table()
    controller = NamespaceController(table, COLLECTIONS)
    table.on_add(view)

    assert controller.plan("demo") == Plan()
