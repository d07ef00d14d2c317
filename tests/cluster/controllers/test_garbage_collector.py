"""The garbage collector: what it plans."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import (
    Action,
    Delete,
    Get,
    Patch,
    Propagation,
)
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.garbage_collector import (
    ABSENT,
    ASKED,
    BURST,
    GarbageCollector,
)
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import STORED, find
from berth.cluster.kinds.registry import collected, swept
from berth.cluster.object_views import Meta, ObjectView, OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import ResourceType
from berth.kube.client.errors import NotFoundError, ServerError
from berth.runtime.clock import FakeClock
from tests.cluster.objects import BIRTH, owner, pod_view, workload_view

PODS = "/api/v1/namespaces/default/pods"
OWNER_PATH = "/apis/apps/v1/namespaces/default/replicasets/web"
GONE = NotFoundError(404, "NotFound", "")


def served(group: str, plural: str) -> ResourceType:
    resource = find(group, "v1", plural)
    assert resource is not None
    return resource


class World:
    """A collector of a few kinds."""

    def __init__(self) -> None:
        self.replica_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.config_maps: Table[ObjectView] = Table()
        self.enqueued: list[str] = []
        self.kinds = [
            Kind(served("apps", "replicasets"), self.replica_sets),
            Kind(served("", "pods"), self.pods),
            Kind(served("", "configmaps"), self.config_maps),
        ]
        self.recorded: list[Occurrence] = []
        recorder = EventRecorder(self.recorded.append, "garbage-collector", FakeClock())
        self.collector = GarbageCollector(recorder)
        self.collector.subscribe(self.enqueued.append)
        self.collector.follow(self.kinds)

    def plan(self, key: str) -> list[Action]:
        return self.collector.plan(key).actions

    def learn_that_the_owner_is_gone(self, key: str = "uid-p") -> None:
        (ask,) = self.plan(key)
        assert ask == Get(OWNER_PATH)
        self.collector.finished(key, Outcome(ask, error=GONE))


@pytest.fixture
def world() -> World:
    return World()


def owned_by(*owners: OwnerReference, name: str = "p", **metadata: Any) -> PodView:
    pod = pod_view(name)
    meta = msgspec.structs.replace(pod.metadata, owner_references=[*owners], **metadata)
    return msgspec.structs.replace(pod, metadata=meta)


def blocking(name: str) -> OwnerReference:
    return msgspec.structs.replace(owner(name), block_owner_deletion=True)


def config_map(
    name: str, *owners: OwnerReference, namespace: str = "default", **more: Any
) -> ObjectView:
    references = list(owners) or None
    return ObjectView(Meta(name, f"uid-{name}", namespace, owner_references=references, **more))


def test_pods_of_a_living_owner_stay(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    assert world.enqueued == ["uid-p"]  # its owner has not been seen yet
    world.replica_sets.on_add(workload_view())

    assert world.plan("uid-p") == []
    world.pods.on_add(pod_view("q"))
    assert world.enqueued == ["uid-p"]


def test_pods_go_when_the_server_says_that_the_owner_is_gone(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    world.pods.on_add(pod_view("going", deleted=True))
    world.learn_that_the_owner_is_gone()

    assert world.plan("uid-p") == [Delete(f"{PODS}/p", "uid-p", resource_version="1")]
    assert world.plan("uid-going") == []


def test_an_owner_that_was_seen_to_go_need_not_be_asked_for(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    world.pods.on_add(pod_view("p"))
    world.replica_sets.on_delete(workload_view())

    assert world.enqueued == ["uid-p"]
    assert world.plan("uid-p") == [Delete(f"{PODS}/p", "uid-p", resource_version="1")]


@pytest.mark.parametrize(
    ("answer", "collected"),
    [
        pytest.param({"name": "web", "uid": "uid-web"}, False, id="the watch was just late"),
        pytest.param({"name": "web", "uid": "another"}, True, id="a namesake is no owner"),
    ],
)
def test_an_owner_that_answers(world: World, answer: dict[str, str], collected: bool) -> None:
    world.pods.on_add(pod_view("p"))
    (ask,) = world.plan("uid-p")

    body = msgspec.json.encode({"metadata": answer})
    world.collector.finished("uid-p", Outcome(ask, answer=body))

    (action,) = world.plan("uid-p")
    assert isinstance(action, Delete) is collected


def test_an_error_is_no_answer(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    (ask,) = world.plan("uid-p")
    world.collector.finished("uid-p", Outcome(ask, error=ServerError(500, "x", "")))

    assert world.plan("uid-p") == [ask]


def test_a_second_owner_keeps_the_object(world: World) -> None:
    world.config_maps.on_add(config_map("also"))
    also = OwnerReference("v1", "ConfigMap", "also", "uid-also")
    world.pods.on_add(owned_by(owner("web"), also))
    world.learn_that_the_owner_is_gone()

    (patch,) = world.plan("uid-p")

    assert isinstance(patch, Patch)
    assert patch.path == f"{PODS}/p"
    assert [ref["name"] for ref in patch.body["metadata"]["ownerReferences"]] == ["also"]


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(OwnerReference("batch/v1", "Job", "job", "uid-job"), id="not served"),
        pytest.param(OwnerReference("other/v1", "ReplicaSet", "web", "uid-web"), id="its group"),
    ],
)
def test_owners_of_unknown_kinds_are_trusted(world: World, stranger: OwnerReference) -> None:
    world.pods.on_add(owned_by(stranger))

    assert (world.plan("uid-p"), world.enqueued) == ([], [])


def test_a_kind_that_comes_later_is_asked_for_its_owners(world: World) -> None:
    job = OwnerReference("batch/v1", "Job", "job", "uid-job")
    world.pods.on_add(owned_by(job))
    jobs: Table[ObjectView] = Table()
    world.collector.follow([*world.kinds, Kind(served("batch", "jobs"), jobs)])

    assert world.enqueued == ["uid-p"]
    assert world.plan("uid-p") == [Get("/apis/batch/v1/namespaces/default/jobs/job")]


def test_owners_of_a_kind_that_went_are_trusted(world: World) -> None:
    world.pods.on_add(pod_view("p"))
    world.collector.follow(world.kinds[1:])

    assert world.plan("uid-p") == []


def test_any_kind_is_collected(world: World) -> None:
    of_map = OwnerReference("v1", "ConfigMap", "root", "uid-root")
    world.config_maps.on_add(config_map("root"))
    world.config_maps.on_add(config_map("leaf", of_map))
    world.config_maps.on_delete(config_map("root"))

    path = "/api/v1/namespaces/default/configmaps/leaf"
    assert world.plan("uid-leaf") == [Delete(path, "uid-leaf")]


def test_an_owner_in_another_namespace_is_none(world: World) -> None:
    """Who writes in one namespace can neither keep nor lose what is in another."""
    world.replica_sets.on_add(workload_view())
    world.config_maps.on_add(config_map("fake", owner("web"), namespace="mine"))

    (ask,) = world.plan("uid-fake")
    assert ask == Get("/apis/apps/v1/namespaces/mine/replicasets/web")
    world.collector.finished("uid-fake", Outcome(ask, error=GONE))

    (gone,) = world.plan("uid-fake")
    assert isinstance(gone, Delete)
    world.pods.on_add(pod_view("p"))
    assert world.plan("uid-p") == []


def test_a_wrong_name_does_not_end_what_the_uid_means(world: World) -> None:
    """The owner is of a kind whose watch is late, and somebody lies about its name."""
    lie = msgspec.structs.replace(owner("other"), uid="uid-web")
    world.config_maps.on_add(config_map("liar", lie))
    world.pods.on_add(pod_view("p"))
    (ask,) = world.plan("uid-liar")
    world.collector.finished("uid-liar", Outcome(ask, error=GONE))

    assert isinstance(world.plan("uid-liar")[0], Delete)
    assert world.plan("uid-p") == [Get(OWNER_PATH)]


def test_who_names_thousands_of_owners_asks_for_a_few_at_a_time(world: World) -> None:
    world.pods.on_add(owned_by(*(owner(f"o{number}") for number in range(5_000))))

    assert len(world.plan("uid-p")) == ASKED


def test_what_is_known_to_be_absent_is_bounded(world: World) -> None:
    for number in range(ABSENT + 10):
        world.config_maps.on_add(config_map(f"c{number}"))
        world.config_maps.on_delete(config_map(f"c{number}"))

    assert len(world.collector._absent) == ABSENT


def test_orphaning_lets_the_dependents_go_first(world: World) -> None:
    world.replica_sets.on_add(workload_view(deleted=True, finalizers=("orphan", "mine")))
    for number in range(BURST + 1):
        world.pods.on_add(pod_view(f"p{number}"))

    plan = world.collector.plan("uid-web")
    let_go = plan.actions[0]
    for number in range(BURST + 1):
        world.pods.on_update(pod_view(f"p{number}"), pod_view(f"p{number}", of=None))
    (finalize,) = world.plan("uid-web")

    assert (len(plan.actions), plan.again) == (BURST, 0.0)
    assert isinstance(let_go, Patch)
    assert (let_go.path, let_go.body["metadata"]["ownerReferences"]) == (f"{PODS}/p0", [])
    assert isinstance(finalize, Patch)
    assert (finalize.path, finalize.body["metadata"]["finalizers"]) == (OWNER_PATH, ["mine"])


def test_orphaning_what_owns_nothing_ends(world: World) -> None:
    world.config_maps.on_add(config_map("c", deletion_timestamp=BIRTH, finalizers=["orphan"]))

    assert world.enqueued == ["uid-c"]
    (finalize,) = world.plan("uid-c")
    assert isinstance(finalize, Patch)
    assert finalize.body["metadata"]["finalizers"] == []


WAITING = workload_view(deleted=True, finalizers=("foregroundDeletion",))


def test_foreground_deletion_takes_the_dependents_first(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    pod = owned_by(blocking("web"))
    world.pods.on_add(pod)
    world.config_maps.on_add(config_map("free", owner("web")))
    world.replica_sets.on_update(workload_view(), WAITING)

    assert world.enqueued == ["uid-p", "uid-free", "uid-web"]
    assert world.plan("uid-web") == []
    assert world.plan("uid-p") == [Delete(f"{PODS}/p", "uid-p", resource_version="1")]
    assert isinstance(world.plan("uid-free")[0], Delete)
    world.enqueued.clear()
    world.pods.on_delete(pod)
    assert world.enqueued == ["uid-web"]
    (finalize,) = world.plan("uid-web")
    assert isinstance(finalize, Patch)


def test_foreground_deletion_goes_down(world: World) -> None:
    world.replica_sets.on_add(WAITING)
    world.pods.on_add(owned_by(blocking("web")))
    of_pod = OwnerReference("v1", "Pod", "p", "uid-p", block_owner_deletion=True)
    world.config_maps.on_add(config_map("leaf", of_pod))

    assert world.plan("uid-p") == [
        Delete(f"{PODS}/p", "uid-p", propagation="Foreground", resource_version="1")
    ]


def test_foreground_deletion_of_a_circle_ends(world: World) -> None:
    of_p, of_q = (
        OwnerReference("v1", "Pod", name, f"uid-{name}", block_owner_deletion=True) for name in "pq"
    )
    held = ["foregroundDeletion"]
    world.pods.on_add(owned_by(of_q, deletion_timestamp=BIRTH, finalizers=held))
    world.pods.on_add(owned_by(of_p, name="q"))

    (unblock,) = world.plan("uid-q")
    assert isinstance(unblock, Patch)
    assert unblock.body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is False


def test_an_owner_that_waits_is_let_go_by_who_has_another(world: World) -> None:
    world.replica_sets.on_add(WAITING)
    world.config_maps.on_add(config_map("also"))
    also = OwnerReference("v1", "ConfigMap", "also", "uid-also")
    world.pods.on_add(owned_by(blocking("web"), also))

    (patch,) = world.plan("uid-p")
    assert isinstance(patch, Patch)
    assert [ref["name"] for ref in patch.body["metadata"]["ownerReferences"]] == ["also"]


@pytest.mark.parametrize(
    ("finalizer", "propagation"),
    [("orphan", "Orphan"), ("foregroundDeletion", "Foreground"), ("mine", "Background")],
)
def test_what_is_collected_goes_as_its_finalizers_say(
    world: World, finalizer: str, propagation: Propagation
) -> None:
    world.replica_sets.on_add(workload_view())
    world.pods.on_add(owned_by(owner("web"), finalizers=[finalizer]))
    world.replica_sets.on_delete(workload_view())

    assert world.plan("uid-p") == [
        Delete(f"{PODS}/p", "uid-p", propagation=propagation, resource_version="1")
    ]


def test_changes_that_concern_nobody(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    world.pods.on_add(pod_view("p"))
    world.pods.on_update(pod_view("p"), pod_view("p", phase="Failed"))

    assert world.enqueued == []


def test_every_stored_kind_is_known() -> None:
    """Nothing is owned, and nothing is in a namespace, that nobody cleans up."""
    created = {each.storage_key for each in STORED if "create" in each.verbs}
    assert {each.storage_key for each in collected(STORED)} == created - {"events"}
    assert {each.storage_key for each in swept(STORED)} == {
        each.storage_key for each in STORED if each.namespaced
    }


def test_an_owner_in_another_namespace_is_told_of(world: World) -> None:
    world.replica_sets.on_add(workload_view())
    late = config_map("late", of_map := OwnerReference("v1", "ConfigMap", "root", "uid-root"))
    elsewhere = config_map("fake", owner("web"), namespace="mine")
    world.config_maps.on_add(late)
    world.config_maps.on_add(elsewhere)
    world.config_maps.on_update(elsewhere, elsewhere)
    world.config_maps.on_add(config_map("root", namespace="mine"))

    assert [(each.type, each.reason, each.regarding.name) for each in world.recorded] == [
        ("Warning", "OwnerRefInvalidNamespace", "fake"),
        ("Warning", "OwnerRefInvalidNamespace", "late"),
    ]
    assert world.recorded[0].message == (
        "ownerRef [apps/v1/ReplicaSet, namespace: mine, name: web, uid: uid-web] does not exist "
        'in namespace "mine"'
    )
    assert of_map.name in world.recorded[1].message


def test_what_is_in_no_namespace_has_no_owner_in_one(world: World) -> None:
    roles: Table[ObjectView] = Table()
    cluster_roles = find("rbac.authorization.k8s.io", "v1", "clusterroles")
    world.collector.follow([*world.kinds, Kind(cluster_roles, roles)])
    world.replica_sets.on_add(workload_view())
    roles.on_add(config_map("r", owner("web"), namespace=""))
    world.replica_sets.on_delete(workload_view())

    assert world.plan("uid-r") == []
    assert [each.reason for each in world.recorded] == ["OwnerRefInvalidNamespace"]
    assert world.recorded[0].message.endswith('does not exist in namespace ""')


@pytest.mark.parametrize(
    ("version", "is_known"),
    [("apps/v1", True), ("apps/v1beta2", True), ("apps/v2", False)],
)
def test_an_owner_may_be_named_in_any_served_version(
    world: World, version: str, is_known: bool
) -> None:
    versions = frozenset(("apps/v1", "apps/v1beta2"))
    replica_sets = Kind(served("apps", "replicasets"), world.replica_sets, versions)
    world.collector.follow([replica_sets, *world.kinds[1:]])
    world.pods.on_add(owned_by(msgspec.structs.replace(owner("web"), api_version=version)))

    assert bool(world.plan("uid-p")) is is_known
