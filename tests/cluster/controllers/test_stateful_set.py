"""Pods with names and volumes of their own: what the controller of StatefulSets plans."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.history import data_of
from berth.cluster.controllers.replica_set import BURST
from berth.cluster.controllers.stateful_set import REVISION, StatefulSetController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView, RevisionView, WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta
from berth.cluster.pods.controllers import PodView
from berth.runtime.clock import FakeClock
from tests.cluster.objects import owner, pod_view, workload_view

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
TEMPLATES = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
OLD = "old"


class World:
    def __init__(self, *, pods: tuple[PodView, ...] = (), **spec: Any) -> None:
        self.stateful_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.revisions: Table[RevisionView] = Table()
        self.recorded: list[Occurrence] = []
        self.clock = FakeClock(1_767_225_600.0)  # BIRTH
        self.controller = StatefulSetController(
            self.stateful_sets,
            self.pods,
            self.claims,
            self.revisions,
            clock=self.clock,
            recorder=EventRecorder(self.recorded.append, "statefulset-controller", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.stateful_sets.on_add(workload_view(**spec))
        for pod in pods:
            self.pods.on_add(pod)

    def actions(self) -> list[Action]:
        """What is done, but for keeping revisions."""
        return [
            action
            for action in self.controller.plan("default/web").actions
            if "/controllerrevisions" not in action.path
        ]

    def writes(self) -> list[str]:
        """What is done beside telling the status, in short."""
        return [
            f"create {action.body['metadata']['name']}"
            if isinstance(action, Create)
            else f"delete {action.path.rpartition('/')[2]}"
            for action in self.actions()
            if isinstance(action, Create | Delete)
        ]

    @property
    def revision(self) -> str:
        [patch] = [action for action in self.actions() if isinstance(action, Patch)]
        return str(patch.body["status"]["updateRevision"])


def member(ordinal: int, revision: str = "", **state: Any) -> PodView:
    view = pod_view(f"web-{ordinal}", labels={"app": "web", REVISION: revision}, **state)
    meta = msgspec.structs.replace(view.metadata, owner_references=[owner("web", "StatefulSet")])
    return msgspec.structs.replace(view, metadata=meta)


REVISION_NOW = World().revision


def new(ordinal: int, **state: Any) -> PodView:
    return member(ordinal, REVISION_NOW, **state)


def test_claims_come_first_and_the_pod_once_they_are_seen() -> None:
    world = World(serviceName="db", volumeClaimTemplates=TEMPLATES)
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-web-0",
            "namespace": "default",
            "labels": {"app": "web"},
            "annotations": {},
        },
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }
    assert world.actions()[0] == Create(CLAIMS, body)
    assert world.writes() == ["create data-web-0"]

    world.enqueued.clear()
    world.claims.on_add(ResourceView(Meta("data-web-0", "uid-c", "default")))
    create = world.actions()[0]

    assert world.enqueued == ["default/web"]
    assert isinstance(create, Create)
    assert create.body["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        REVISION: REVISION_NOW,
    }
    assert create.body["spec"] == {
        "containers": [{"name": "c", "image": "nginx"}],
        "hostname": "web-0",
        "subdomain": "db",
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}],
    }


@pytest.mark.parametrize(
    ("spec", "pods", "want"),
    [
        pytest.param({"replicas": 3}, (), ["create web-0"], id="in order, the first"),
        pytest.param({"replicas": 3}, (new(0, ready=None),), [], id="the first is not ready"),
        pytest.param({"replicas": 3}, (new(0),), ["create web-1"], id="the first is ready"),
        pytest.param(
            {"replicas": 3, "podManagementPolicy": "Parallel"},
            (new(1, ready=None),),
            ["create web-0", "create web-2"],
            id="in parallel",
        ),
        pytest.param({"replicas": 1}, (new(0), new(1), new(2)), ["delete web-2"], id="too many"),
        pytest.param(
            {"replicas": 1}, (new(0), new(1), new(2, deleted=True)), [], id="the last is leaving"
        ),
        pytest.param(
            {"replicas": 1}, (new(0, ready=None), new(1)), [], id="too many, but one is unwell"
        ),
        pytest.param(
            {"replicas": 0}, (new(0), new(1, ready=None)), ["delete web-1"], id="the unwell one"
        ),
        pytest.param(
            {"replicas": 0},
            (new(0, ready=None), new(1, ready=None)),
            [],
            id="too many, and two are unwell",
        ),
        pytest.param(
            {"replicas": 0, "podManagementPolicy": "Parallel"},
            (new(0), new(1)),
            ["delete web-0", "delete web-1"],
            id="too many, in parallel",
        ),
        pytest.param({"replicas": 1}, (new(0, phase="Failed"),), ["delete web-0"], id="failed"),
        pytest.param({"replicas": 1}, (new(0, deleted=True),), [], id="its name is taken still"),
        pytest.param(
            {"replicas": 1, "ordinals": {"start": 5}}, (), ["create web-5"], id="counted from five"
        ),
        pytest.param(
            {"replicas": 2}, (member(0, OLD), member(1, OLD)), ["delete web-1"], id="rollout"
        ),
        pytest.param(
            {"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            (member(0, OLD), new(1)),
            [],
            id="rollout down to the partition",
        ),
        pytest.param(
            {"replicas": 4, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            tuple(member(ordinal, OLD) for ordinal in range(4)),
            ["delete web-3", "delete web-2"],
            id="rollout of two at a time",
        ),
        pytest.param(
            {"replicas": 4, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}},
            tuple(member(ordinal, OLD) for ordinal in range(4)),
            ["delete web-3"],
            id="rollout of a share: rounded down, but one at least",
        ),
        pytest.param(
            {
                "replicas": 4,
                "podManagementPolicy": "Parallel",
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
            },
            (member(0, OLD), member(1, OLD), member(2, OLD), new(3, ready=None)),
            ["delete web-2"],
            id="in parallel, the rollout goes on while one is not ready",
        ),
        pytest.param(
            {"replicas": 2, "podManagementPolicy": "Parallel"},
            (member(0, OLD), new(1, ready=None)),
            [],
            id="in parallel, no more are missing than may be",
        ),
        pytest.param(
            {
                "replicas": 2,
                "ordinals": {"start": 3},
                "updateStrategy": {"rollingUpdate": {"partition": 1}},
            },
            (member(3, OLD), member(4, OLD)),
            ["delete web-4"],
            id="the partition is counted from the first ordinal",
        ),
        pytest.param(
            {"replicas": 1, "updateStrategy": {"type": "OnDelete"}},
            (member(0, OLD),),
            [],
            id="rollout by the user's hand",
        ),
    ],
)
def test_what_is_done_next(
    spec: dict[str, Any], pods: tuple[PodView, ...], want: list[str]
) -> None:
    assert World(pods=pods, **spec).writes() == want


def test_the_status_counts() -> None:
    world = World(replicas=2, pods=(new(0), member(1, OLD, ready=None)))
    [patch] = world.actions()
    assert isinstance(patch, Patch)
    assert patch.body["status"] == {
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": REVISION_NOW,
        "updateRevision": REVISION_NOW,
        "collisionCount": 0,
        "observedGeneration": 1,
    }


def test_pods_that_leave_are_counted_until_they_are_gone() -> None:
    world = World(replicas=1, pods=(member(0, OLD, deleted=True, ready=None),))
    [patch] = world.actions()
    assert isinstance(patch, Patch)
    assert patch.body["status"] == {
        "replicas": 1,
        "readyReplicas": None,
        "availableReplicas": 0,
        "currentReplicas": None,
        "updatedReplicas": None,
        "currentRevision": REVISION_NOW,
        "updateRevision": REVISION_NOW,
        "collisionCount": 0,
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(
    ("phase", "type_", "reason", "message"),
    [
        ("Failed", "Warning", "RecreatingFailedPod", "is recreating failed Pod web-0"),
        ("Succeeded", "Normal", "RecreatingTerminatedPod", "is recreating terminated Pod web-0"),
    ],
)
def test_events_tell_of_pods_that_have_ended(
    phase: str, type_: str, reason: str, message: str
) -> None:
    world = World(replicas=1, pods=(new(0, phase=phase),))
    world.actions()
    [event] = world.recorded
    assert (event.type, event.reason) == (type_, reason)
    assert event.message == f"StatefulSet default/web {message}"


def test_however_many_are_wanted_a_plan_is_short() -> None:
    world = World(replicas=2**31 - 1, podManagementPolicy="Parallel")
    first = world.writes()
    assert first == [f"create web-{ordinal}" for ordinal in range(BURST)]
    for ordinal in range(BURST):
        world.pods.on_add(new(ordinal))
    assert world.writes()[0] == f"create web-{BURST}"


def test_however_many_are_too_many_a_plan_is_short() -> None:
    pods = tuple(new(ordinal) for ordinal in range(BURST + 2))
    world = World(replicas=1, podManagementPolicy="Parallel", pods=pods)
    assert world.writes() == [f"delete web-{ordinal}" for ordinal in range(1, BURST + 1)]


def revision_of(name: str, number: int, image: str) -> RevisionView:
    """A revision of the StatefulSet with the template of *image*."""
    data = data_of(workload_view(image=image).spec["template"])
    owners = [owner("web", "StatefulSet")]
    labels = {"app": "web"}
    meta = Meta(name, f"uid-{name}", "default", labels=labels, owner_references=owners)
    return RevisionView(meta, data, number)


def test_the_template_is_kept_as_a_revision() -> None:
    [create] = [
        action
        for action in World().controller.plan("default/web").actions
        if action.path.endswith("/controllerrevisions")
    ]
    assert isinstance(create, Create)
    assert create.body["metadata"]["name"] == REVISION_NOW
    assert create.body["revision"] == 1
    assert create.body["data"] == data_of(workload_view().spec["template"])


@pytest.mark.parametrize(
    ("partition", "strategy", "image"),
    [
        pytest.param(1, "RollingUpdate", "old", id="below the partition: the template of before"),
        pytest.param(0, "RollingUpdate", "nginx", id="the present template"),
        pytest.param(1, "OnDelete", "nginx", id="no rollout: the present template"),
    ],
)
def test_what_a_pod_is_made_from_again(partition: int, strategy: str, image: str) -> None:
    update = {"type": strategy, "rollingUpdate": {"partition": partition}}
    world = World(status={"currentRevision": "web-before"}, updateStrategy=update)
    world.revisions.on_add(revision_of("web-before", 1, "old"))
    world.revisions.on_add(revision_of(REVISION_NOW, 2, "nginx"))

    [create] = [action for action in world.actions() if isinstance(action, Create)]

    assert create.body["spec"]["containers"][0]["image"] == image
    wanted = "web-before" if image == "old" else REVISION_NOW
    assert create.body["metadata"]["labels"][REVISION] == wanted


def test_events_tell_of_pods_and_claims() -> None:
    world = World(serviceName="db", volumeClaimTemplates=TEMPLATES)
    for action in world.controller.plan("default/web").actions:
        world.controller.finished("default/web", Outcome(action))
    world.claims.on_add(ResourceView(Meta("data-web-0", "uid-c", "default")))
    for action in world.actions():
        world.controller.finished("default/web", Outcome(action))
    assert [(each.reason, each.message) for each in world.recorded] == [
        ("SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
    ]


def test_a_pod_counts_once_it_has_been_ready_for_long_enough() -> None:
    world = World(pods=(new(0),), replicas=2, minReadySeconds=5)
    plan = world.controller.plan("default/web")
    [patch] = [action for action in plan.actions if isinstance(action, Patch)]
    assert (world.writes(), plan.again) == ([], 5.0)
    assert (patch.body["status"]["readyReplicas"], patch.body["status"]["availableReplicas"]) == (
        1,
        0,
    )
    world.clock.advance(5)
    assert world.writes() == ["create web-1"]


def test_a_pod_of_its_name_is_adopted_and_no_other() -> None:
    def orphan(name: str) -> PodView:
        view = member(0)
        meta = msgspec.structs.replace(
            view.metadata, name=name, uid=f"uid-{name}", owner_references=None
        )
        return msgspec.structs.replace(view, metadata=meta)

    world = World(pods=(orphan("web-0"), orphan("other-1"), orphan("web-x")))
    patched = [
        action.path.rpartition("/")[2]
        for action in world.actions()
        if isinstance(action, Patch) and "/pods/" in action.path
    ]
    assert patched == ["web-0"]
    assert "default/web" in world.enqueued


def volume_claim(pod: str, *owners: str) -> ResourceView:
    """The claim of a pod; *owners* are kinds."""
    references = [
        msgspec.structs.replace(
            owner("web" if kind == "StatefulSet" else pod, kind), controller=None
        )
        for kind in owners
    ]
    name = f"data-{pod}"
    return ResourceView(Meta(name, f"uid-{name}", "default", owner_references=references or None))


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "owners", "want"),
    [
        pytest.param("Retain", "Retain", [], ["delete web-1"], id="claims stay"),
        pytest.param("Retain", "Delete", [], ["own data-web-1: Pod"], id="claims go with the pod"),
        pytest.param("Retain", "Delete", ["Pod"], ["delete web-1"], id="as soon as it owns them"),
        pytest.param("Delete", "Delete", ["StatefulSet"], ["own data-web-1: Pod"], id="not before"),
        pytest.param(
            "Delete", "Retain", ["StatefulSet"], ["delete web-1"], id="claims go with all of it"
        ),
    ],
)
def test_what_becomes_of_claims_when_it_shrinks(
    when_deleted: str, when_scaled: str, owners: list[str], want: list[str]
) -> None:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    world = World(
        pods=(new(0), new(1)),
        replicas=1,
        volumeClaimTemplates=TEMPLATES,
        persistentVolumeClaimRetentionPolicy=policy,
    )
    world.claims.on_add(volume_claim("web-0", *(["StatefulSet"] * (when_deleted == "Delete"))))
    world.claims.on_add(volume_claim("web-1", *owners))
    done = [
        f"own {action.path.rpartition('/')[2]}: "
        + ",".join(reference["kind"] for reference in action.body["metadata"]["ownerReferences"])
        if isinstance(action, Patch)
        else f"delete {action.path.rpartition('/')[2]}"
        for action in world.actions()
        if isinstance(action, Delete) or action.path.startswith(CLAIMS)
    ]
    assert done == want


def test_claims_that_go_with_it_are_made_its_own() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    world = World(volumeClaimTemplates=TEMPLATES, persistentVolumeClaimRetentionPolicy=policy)
    create = world.actions()[0]
    assert isinstance(create, Create)
    assert create.body["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "web",
            "uid": "uid-web",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_claims_that_somebody_else_controls_are_left_alone() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    world = World(
        pods=(new(0),), volumeClaimTemplates=TEMPLATES, persistentVolumeClaimRetentionPolicy=policy
    )
    theirs = msgspec.structs.replace(
        volume_claim("web-0").metadata, owner_references=[owner("backup", "Backup")]
    )
    world.claims.on_add(ResourceView(theirs))
    assert [action for action in world.actions() if action.path.startswith(CLAIMS)] == []


def test_claims_are_let_go_when_the_policy_changes() -> None:
    world = World(pods=(new(0),), volumeClaimTemplates=TEMPLATES)
    world.claims.on_add(volume_claim("web-0", "StatefulSet"))
    [patch] = [action for action in world.actions() if action.path.startswith(CLAIMS)]
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["ownerReferences"] == []
