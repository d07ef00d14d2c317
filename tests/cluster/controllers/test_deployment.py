"""What the Deployment controller plans, carried out on tables: no API, no loop."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.deployment import DeploymentController
from berth.cluster.controllers.expectations import UNSEEN_SECONDS
from berth.cluster.controllers.revisions import HASH_LABEL, REVISION, REVISION_HISTORY, revision_of
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import ForbiddenError
from berth.runtime.clock import FakeClock
from tests.cluster.objects import pod_view, workload_view

KEY = "default/web"
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


class World:
    """A Deployment controller, and an API server as small as can be."""

    def __init__(self) -> None:
        self.recorded: list[Occurrence] = []
        self.clock = FakeClock(1_767_225_600.0)
        self.deployments: Table[WorkloadView] = Table()
        self.replica_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.controller = DeploymentController(
            self.deployments,
            self.replica_sets,
            self.pods,
            clock=self.clock,
            recorder=EventRecorder(self.recorded.append, "deployment-controller", self.clock),
        )
        self._version = 1

    def create(self, **spec: Any) -> None:
        defaults = {"strategy": ROLLING, "progressDeadlineSeconds": 600}
        self.deployments.on_add(workload_view(**{**defaults, **spec}))

    @property
    def deployment(self) -> WorkloadView:
        found = self.deployments.get(KEY)
        assert found is not None
        return found

    def sets(self) -> list[WorkloadView]:
        return sorted(self.replica_sets.in_namespace("default"), key=revision_of)

    def sizes(self) -> list[int]:
        return [set_.replicas for set_ in self.sets()]

    def change(self, **spec: Any) -> None:
        """Change the Deployment's spec as a user does."""
        self._put(self.deployments, self.deployment, {"spec": spec}, generations=1)

    def set_image(self, image: str) -> None:
        template: Object = self.deployment.spec["template"]
        containers = [{**container, "image": image} for container in template["spec"]["containers"]]
        self.change(template={**template, "spec": {"containers": containers}})

    def settle_pods(self) -> None:
        """Let every ReplicaSet have the pods it wants, all available."""
        for set_ in self.sets():
            counts = ("replicas", "readyReplicas", "availableReplicas")
            status = {**dict.fromkeys(counts, set_.replicas), "observedGeneration": 9}
            self._put(self.replica_sets, set_, {"status": status})

    def step(self) -> list[Action]:
        """Plan once and do it."""
        actions = self.controller.plan(KEY).actions
        for action in actions:
            self._perform(action)
            self.controller.finished(KEY, Outcome(action, answer=b"{}"))
        return actions

    def told(self) -> list[tuple[str, str]]:
        return [(each.reason, each.message) for each in self.recorded]

    def settle(self) -> list[list[int]]:
        """Plan and do until nothing is left; return the sizes along the way."""
        history: list[list[int]] = []
        for _ in range(100):
            acted = self.step()
            if not history or history[-1] != self.sizes():
                history.append(self.sizes())
            before = [set_.status for set_ in self.sets()]
            self.settle_pods()
            if not acted and before == [set_.status for set_ in self.sets()]:
                return history
        raise AssertionError(f"never ends: {history[-5:]}")

    def _perform(self, action: Action) -> None:
        if isinstance(action, Create):
            body = {**action.body, "metadata": dict(action.body["metadata"])}
            body["metadata"] |= {
                "uid": f"uid-{body['metadata']['name']}",
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": f"2026-01-01T00:00:{len(self.sets()):02}Z",
            }
            self.replica_sets.on_add(msgspec.convert(body, WorkloadView))
        elif isinstance(action, Patch):
            name = action.path.removesuffix("/status").rpartition("/")[2]
            table = self.deployments if "/deployments/" in action.path else self.replica_sets
            found = table.get(f"default/{name}")
            assert found is not None
            precondition = action.body["metadata"].get("resourceVersion")
            assert precondition in (None, found.metadata.resource_version)
            self._put(table, found, action.body)
        elif isinstance(action, Delete):
            gone = self.replica_sets.by_uid(action.uid)
            assert gone is not None
            self.replica_sets.on_delete(gone)

    def _put(
        self, table: Table[WorkloadView], old: WorkloadView, body: Object, generations: int = 0
    ) -> None:
        self._version += 1
        annotations = body.get("metadata", {}).get("annotations", {})
        owners = body.get("metadata", {}).get("ownerReferences")
        meta: Meta = msgspec.structs.replace(
            old.metadata,
            resource_version=str(self._version),
            generation=old.metadata.generation + generations,
            annotations={**(old.metadata.annotations or {}), **annotations},
        )
        if owners is not None:
            references = msgspec.convert(
                {"metadata": {"name": "", "uid": "", **body["metadata"]}}, ObjectView
            ).metadata.owner_references
            meta = msgspec.structs.replace(meta, owner_references=references)
        spec = {**old.spec, **body.get("spec", {})}
        merged = {**old.status, **body.get("status", {})}
        status = {field: value for field, value in merged.items() if value is not None}
        table.on_update(old, msgspec.structs.replace(old, metadata=meta, spec=spec, status=status))


@pytest.fixture
def world() -> World:
    return World()


def progress(world: World) -> tuple[str, str]:
    conditions = {
        condition["type"]: condition for condition in world.deployment.status["conditions"]
    }
    return conditions["Progressing"]["status"], conditions["Progressing"]["reason"]


def test_a_first_rollout(world: World) -> None:
    world.create(replicas=3)
    world.settle()

    (only,) = world.sets()
    pod_hash = (only.metadata.labels or {})[HASH_LABEL]
    assert only.metadata.name == f"web-{pod_hash}"
    assert only.spec["selector"]["matchLabels"] == {"app": "web", HASH_LABEL: pod_hash}
    assert only.spec["template"]["metadata"]["labels"] == {"app": "web", HASH_LABEL: pod_hash}
    status = world.deployment.status
    assert {key: status[key] for key in status if key != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert progress(world) == ("True", "NewReplicaSetAvailable")
    assert revision_of(world.deployment) == 1


def test_a_new_image_rolls_one_by_one(world: World) -> None:
    world.create(replicas=3)
    world.settle()
    world.set_image("nginx:2")

    assert world.settle() == [[3, 1], [2, 1], [2, 2], [1, 2], [1, 3], [0, 3]]
    assert revision_of(world.deployment) == 2


def test_recreate_waits_for_the_last_old_pod(world: World) -> None:
    world.create(replicas=2, strategy={"type": "Recreate"})
    world.settle()
    (old,) = world.sets()
    straggler = pod_view("straggler", of=old.metadata.name, deleted=True)
    world.pods.on_add(straggler)
    world.set_image("nginx:2")

    waiting = world.settle()
    world.pods.on_delete(straggler)

    assert waiting == [[0]]
    assert world.settle()[-1] == [0, 2]


def test_scaling_is_no_rollout(world: World) -> None:
    world.create(replicas=2)
    world.settle()
    world.change(replicas=5)

    assert world.settle() == [[5]]
    assert progress(world) == ("True", "NewReplicaSetAvailable")


def test_undoing_makes_the_old_one_new_again(world: World) -> None:
    world.create(replicas=1)
    world.settle()
    first = world.sets()[0].metadata.name
    world.set_image("nginx:2")
    world.settle()
    world.set_image("nginx")
    world.settle()

    assert [(set_.metadata.name == first, set_.replicas) for set_ in world.sets()] == [
        (False, 0),
        (True, 1),
    ]
    annotations = world.sets()[-1].metadata.annotations or {}
    assert (annotations[REVISION], annotations[REVISION_HISTORY]) == ("3", "1")

    world.set_image("nginx:2")
    world.settle()
    world.set_image("nginx")
    world.settle()
    annotations = world.sets()[-1].metadata.annotations or {}
    assert (annotations[REVISION], annotations[REVISION_HISTORY]) == ("5", "1,3")


def test_history_is_limited(world: World) -> None:
    world.create(replicas=1, revisionHistoryLimit=2)
    for number in range(5):
        world.set_image(f"nginx:{number}")
        world.settle()

    assert [revision_of(set_) for set_ in world.sets()] == [3, 4, 5]


def test_paused_means_no_rollout_but_scaling(world: World) -> None:
    world.create(replicas=2)
    world.settle()
    world.change(paused=True, replicas=4)
    world.set_image("nginx:2")

    assert world.settle() == [[4]]
    assert progress(world) == ("Unknown", "DeploymentPaused")
    world.change(paused=False)
    assert world.settle()[-1] == [0, 4]


def test_a_rollout_that_hangs_is_called_late(world: World) -> None:
    world.create(replicas=1)
    for _ in range(3):
        world.step()
    assert progress(world) == ("True", "NewReplicaSetCreated")
    assert world.controller.plan(KEY).again == 601.0

    world.clock.advance(601)
    world.step()

    assert progress(world) == ("False", "ProgressDeadlineExceeded")


def test_a_matching_orphan_is_adopted_instead_of_doubled(world: World) -> None:
    world.create(replicas=1)
    world.settle()
    (mine,) = world.sets()
    orphan = msgspec.structs.replace(
        mine, metadata=msgspec.structs.replace(mine.metadata, owner_references=None)
    )
    world.replica_sets.on_update(mine, orphan)

    world.settle()

    (adopted,) = world.sets()
    controller = adopted.metadata.controller
    assert controller is not None
    assert controller.uid == "uid-web"


def test_a_name_that_another_template_has_is_not_used(world: World) -> None:
    world.create(replicas=1)
    world.step()
    (first,) = world.sets()
    world.replica_sets.on_delete(first)
    world.replica_sets.on_add(workload_view(first.metadata.name, of="other", image="x"))

    world.settle()

    names = [set_.metadata.name for set_ in world.sets() if set_.metadata.controller]
    assert len(set(names)) == 2


def test_nothing_happens_to_a_deployment_that_is_being_deleted(world: World) -> None:
    world.deployments.on_add(workload_view(deleted=True))
    assert world.step() == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("7", 7),
        ("1234567890123456789", 1234567890123456789),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 0),
        ("9" * 5000, 0),
        ("-1", 0),
        ("x", 0),
    ],
)
def test_a_revision_is_a_number_of_64_bits(text: str, want: int) -> None:
    meta = Meta("web", "uid", annotations={REVISION: text})
    assert revision_of(WorkloadView(meta)) == want


def test_events_tell_of_new_sizes(world: World) -> None:
    world.create(replicas=2)
    world.settle()
    world.set_image("nginx:2")
    world.settle()

    first, second = (set_.metadata.name for set_ in world.sets())
    assert world.told() == [
        ("ScalingReplicaSet", f"Scaled up replica set {first} from 0 to 2"),
        ("ScalingReplicaSet", f"Scaled up replica set {second} from 0 to 1"),
        ("ScalingReplicaSet", f"Scaled down replica set {first} from 2 to 1"),
        ("ScalingReplicaSet", f"Scaled up replica set {second} from 1 to 2"),
        ("ScalingReplicaSet", f"Scaled down replica set {first} from 1 to 0"),
    ]


def test_an_event_tells_why_there_is_no_new_replica_set(world: World) -> None:
    world.create(replicas=2)
    [create] = [
        action for action in world.controller.plan(KEY).actions if isinstance(action, Create)
    ]
    refused = ForbiddenError(403, "Forbidden", "exceeded quota: q")
    world.controller.finished(KEY, Outcome(create, error=refused))
    world.controller.finished(KEY, Outcome(create, skipped=True))

    name = create.body["metadata"]["name"]
    [told] = world.recorded
    assert (told.type, told.reason) == ("Warning", "ReplicaSetCreateError")
    assert told.message == f'Failed to create new replica set "{name}": exceeded quota: q'


def test_what_was_created_and_is_not_seen_yet_is_waited_for(world: World) -> None:
    world.create(replicas=2)
    [create] = [
        action for action in world.controller.plan(KEY).actions if isinstance(action, Create)
    ]
    world.controller.finished(KEY, Outcome(create, answer=b"{}"))

    waiting = world.controller.plan(KEY)
    world.clock.advance(UNSEEN_SECONDS)
    given_up = world.controller.plan(KEY)

    assert (waiting.actions, waiting.again) == ([], UNSEEN_SECONDS)
    assert Create in {type(action) for action in given_up.actions}


def test_a_deployment_has_the_failure_of_its_replica_set(world: World) -> None:
    world.create(replicas=2)
    world.settle()
    [replica_set] = world.sets()
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "FailedCreate",
        "message": "exceeded quota: q",
    }
    world._put(world.replica_sets, replica_set, {"status": {"conditions": [failure]}})
    world.step()

    by_type = {condition["type"]: condition for condition in world.deployment.status["conditions"]}
    assert by_type["ReplicaFailure"] == {**failure, "lastUpdateTime": "2026-01-01T00:00:00Z"}
    world._put(world.replica_sets, world.sets()[0], {"status": {"conditions": []}})
    world.step()
    assert "ReplicaFailure" not in {
        condition["type"] for condition in world.deployment.status["conditions"]
    }
