"""How many pods may be evicted: what the controller of budgets plans."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.disruption import DisruptionController
from berth.cluster.controllers.pod_scales import PodScales
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ReplicationControllerView, ResourceView, WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object, ResourceType, Subresource
from berth.cluster.schemas import builtin
from berth.kube.client.errors import ApiError, NotFoundError
from berth.runtime.clock import FakeClock, rfc3339
from tests.cluster.objects import LABELS, pod_view, workload_view

NOW = 1_767_225_600.0
SELECTOR = {"matchLabels": {"app": "web"}}
SHARDS = ResourceType(
    group="example.com",
    version="v1",
    kind="Shard",
    plural="shards",
    singular="shard",
    namespaced=True,
    schema=builtin.schema("io.k8s.api.core.v1.Pod"),
    subresources={"scale": Subresource("scale")},
)
SCALE = "/apis/example.com/v1/namespaces/default/shards/s/scale"


def controlled(name: str, reference: OwnerReference) -> PodView:
    """A ready pod with another controller than a ReplicaSet."""
    view = pod_view(name)
    meta = msgspec.structs.replace(view.metadata, owner_references=[reference])
    return msgspec.structs.replace(view, metadata=meta)


def reference(api_version: str, kind: str, name: str) -> OwnerReference:
    return OwnerReference(api_version, kind, name, f"uid-{name}", controller=True)


class World:
    """Four pods wanted by a Deployment; of the three that there are two are ready."""

    def __init__(
        self, spec: Object, status: Object | None = None, *, pods: list[PodView] | None = None
    ) -> None:
        self.clock = FakeClock(NOW)
        self.events: list[Occurrence] = []
        self.budgets: Table[ResourceView] = Table()
        self.pods: Table[PodView] = Table()
        workloads: dict[str, Table[WorkloadView]] = {
            kind: Table()
            for kind in ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
        }
        self.workloads = workloads
        self.controller = DisruptionController(
            self.budgets,
            self.pods,
            workloads,
            PodScales(workloads, Registry([*RESOURCES, SHARDS])),
            clock=self.clock,
            recorder=EventRecorder(self.events.append, "controllermanager", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        workloads["Deployment"].on_add(workload_view("shop", replicas=4))
        workloads["ReplicaSet"].on_add(workload_view("web", replicas=3, of="shop"))
        workloads["ReplicaSet"].on_add(workload_view("old", replicas=0, of="shop"))
        workloads["ReplicaSet"].on_add(workload_view("alone", replicas=5))
        workloads["StatefulSet"].on_add(workload_view("db", replicas=7))
        workloads["ReplicationController"].on_add(workload_view("rc", replicas=2))
        for pod in pods if pods is not None else [pod_view("a"), pod_view("b")]:
            self.pods.on_add(pod)
        if pods is None:
            self.pods.on_add(pod_view("c", ready=None))
            self.pods.on_add(pod_view("other", labels={"app": "db"}))
        meta = Meta("budget", "uid-budget", "default", generation=2, resource_version="7")
        self.budgets.on_add(ResourceView(meta, {"selector": SELECTOR, **spec}, status or {}))

    def status(self) -> Object | None:
        actions = self.controller.plan("default/budget").actions
        if not actions:
            return None
        [patch] = actions
        assert isinstance(patch, Patch)
        assert patch.body["metadata"] == {"uid": "uid-budget", "resourceVersion": "7"}
        status: Object = patch.body["status"]
        return status

    def counts(self) -> tuple[int, int, int, int]:
        """Return expected, desired, healthy and allowed, of the report."""
        status = self.status()
        assert status is not None
        fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
        expected, desired, healthy, allowed = (status[field] for field in fields)
        return expected, desired, healthy, allowed

    def told(self) -> list[tuple[str, str, str]]:
        return [(event.regarding.name, event.reason, event.message) for event in self.events]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"minAvailable": 1}, (3, 1, 2, 1), id="a number that must stay"),
        pytest.param({"minAvailable": "50%"}, (4, 2, 2, 0), id="a share that must stay"),
        pytest.param({"minAvailable": "30%"}, (4, 2, 2, 0), id="a share, rounded up"),
        pytest.param({"minAvailable": "25%"}, (4, 1, 2, 1), id="a share that comes out even"),
        pytest.param({"minAvailable": "0%"}, (4, 0, 2, 2), id="none of them"),
        pytest.param({"minAvailable": "100%"}, (4, 4, 2, 0), id="all of them"),
        pytest.param({"maxUnavailable": 3}, (4, 1, 2, 1), id="a number that may be away"),
        pytest.param({"maxUnavailable": "60%"}, (4, 1, 2, 1), id="a share that may be, rounded up"),
        pytest.param({"maxUnavailable": 0}, (4, 4, 2, 0), id="nobody may be away"),
        pytest.param({"maxUnavailable": 9}, (4, 0, 2, 2), id="more than there are"),
        pytest.param({}, (0, 0, 2, 0), id="nothing is said"),
        pytest.param({"minAvailable": 0, "selector": None}, (0, 0, 0, 0), id="about nobody"),
        pytest.param({"minAvailable": 0, "selector": {}}, (4, 0, 3, 3), id="about everybody"),
    ],
)
def test_counts(spec: Object, want: tuple[int, int, int, int]) -> None:
    world = World(spec)
    assert world.counts() == want
    status = world.status() or {}
    [condition] = status["conditions"]
    assert condition == {
        "type": "DisruptionAllowed",
        "status": "True" if want[3] else "False",
        "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "SufficientPods" if want[3] else "InsufficientPods",
        "message": "",
    }


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod_view("a"), pod_view("b", of="old")], 4, id="a rollout is one Deployment"),
        pytest.param([pod_view("a", of="alone")], 5, id="a ReplicaSet of its own"),
        pytest.param(
            [pod_view("a"), pod_view("b", of="alone")], 9, id="the sum of all controllers"
        ),
        pytest.param(
            [controlled("a", reference("apps/v1", "StatefulSet", "db"))], 7, id="a StatefulSet"
        ),
        pytest.param(
            [controlled("a", reference("v1", "ReplicationController", "rc"))],
            2,
            id="a ReplicationController",
        ),
        pytest.param([pod_view("a"), pod_view("b", of=None)], 4, id="who has none counts for none"),
    ],
)
def test_how_many_pods_there_are_to_be(pods: list[PodView], expected: int) -> None:
    assert World({"maxUnavailable": 1}, pods=pods).counts()[0] == expected


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(
            controlled("a", reference("batch/v1", "Job", "j")),
            "jobs.batch does not implement the scale subresource",
            id="a kind without a size",
        ),
        pytest.param(
            controlled("a", reference("example.org/v1", "Thing", "t")),
            'no matches for kind "Thing" in version "example.org/v1"',
            id="a kind that nobody serves",
        ),
    ],
)
def test_nobody_is_evicted_while_it_is_not_known_how_many_there_are_to_be(
    pod: PodView, why: str
) -> None:
    world = World({"maxUnavailable": 1}, pods=[pod])
    status = world.status()
    assert status is not None
    assert (status["disruptionsAllowed"], set(status)) == (
        0,
        {"disruptionsAllowed", "conditions", "observedGeneration"},
    )
    [condition] = status["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "SyncFailed",
        why,
    )
    message = f"Failed to calculate the number of expected pods: {why}"
    assert world.told() == [("budget", "CalculateExpectedPodCountFailed", message)]
    assert World({"maxUnavailable": 1}, status, pods=[pod]).status() is None


def answered(replicas: int, uid: str = "uid-s") -> Callable[[Get], Outcome]:
    body = msgspec.json.encode({"metadata": {"uid": uid}, "spec": {"replicas": replicas}})
    return lambda get: Outcome(get, body)


def refused(error: ApiError) -> Callable[[Get], Outcome]:
    return lambda get: Outcome(get, error=error)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(answered(6), 6, id="its scale counts"),
        pytest.param(
            answered(6, uid="other"),
            'found no controllers for pod "a"',
            id="another of the same name",
        ),
        pytest.param(
            refused(NotFoundError(404, "NotFound", "not found")),
            'found no controllers for pod "a"',
            id="it is gone",
        ),
        pytest.param(refused(ApiError(403, "Forbidden", "no")), "no", id="it may not be asked"),
    ],
)
def test_of_a_custom_resource_the_scale_is_asked_for(
    answer: Callable[[Get], Outcome], want: int | str
) -> None:
    shard = reference("example.com/v1", "Shard", "s")
    world = World({"maxUnavailable": 1}, pods=[controlled("a", shard), controlled("b", shard)])
    plan = world.controller.plan("default/budget")
    assert (plan.actions, plan.again) == ([Get(SCALE)], 0.0)
    world.controller.finished("default/budget", answer(Get(SCALE)))
    status = world.status()
    assert status is not None
    if isinstance(want, int):
        assert status["expectedPods"] == want
    else:
        assert status["conditions"][0]["message"] == want
    assert world.controller.plan("default/budget").actions == [Get(SCALE)], "asked anew"


def test_what_was_told_is_not_told_again() -> None:
    status = World({"minAvailable": 1}).status()
    assert status is not None
    assert status.pop("disruptedPods") is None
    assert World({"minAvailable": 1}, status).status() is None


@pytest.mark.parametrize(
    ("since", "pod", "counts", "stays"),
    [
        pytest.param(0, pod_view("a"), False, True, id="just evicted"),
        pytest.param(119, pod_view("a"), False, True, id="evicted a while ago"),
        pytest.param(120, pod_view("a"), True, False, id="two minutes later it still is there"),
        pytest.param(0, pod_view("a", deleted=True), False, False, id="its end is seen"),
    ],
)
def test_an_evicted_pod_does_not_count_until_its_end_is_seen(
    since: int, pod: PodView, *, counts: bool, stays: bool
) -> None:
    evicted = {"a": rfc3339(NOW - since), "gone": rfc3339(NOW)}
    world = World({"minAvailable": 1}, {"disruptedPods": evicted}, pods=[pod, pod_view("b")])
    status = world.status()
    assert status is not None
    assert status["currentHealthy"] == (2 if counts else 1)
    assert status["disruptedPods"] == ({"a": evicted["a"], "gone": None} if stays else None)
    again = world.controller.plan("default/budget").again
    assert again == (120 - since if stays else None)
    late = [
        ("a", "NotDeleted", "Pod was expected by PDB default/default to be deleted but it wasn't")
    ]
    assert world.told()[:1] == (late if counts else [])


def test_a_pod_wakes_the_budgets_that_select_it() -> None:
    world = World({"minAvailable": 1})
    world.enqueued.clear()
    world.pods.on_add(pod_view("d"))
    world.pods.on_add(pod_view("unrelated", labels={"app": "db"}))
    assert world.enqueued == ["default/budget"]
    world.enqueued.clear()
    world.pods.on_update(pod_view("d"), pod_view("d", labels={"app": "db"}))
    assert world.enqueued == ["default/budget"], "it selects it no more"


def told_of(spec: Object, pods: list[PodView]) -> list[tuple[str, str, str]]:
    world = World(spec, pods=pods)
    world.controller.plan("default/budget")
    return world.told()


def test_a_budget_without_pods() -> None:
    assert told_of({"minAvailable": 1}, []) == [("budget", "NoPods", "No matching pods found")]


@pytest.mark.parametrize(
    ("selector", "shown"),
    [
        pytest.param(
            {"matchLabels": {"b": "2", "app": "web"}},
            "&LabelSelector{MatchLabels:map[string]string{app: web,b: 2,},"
            "MatchExpressions:[]LabelSelectorRequirement{},}",
            id="labels",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:"
            "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:app,Operator:In,"
            "Values:[web db],},},}",
            id="expressions",
        ),
    ],
)
def test_pods_without_a_controller(selector: Mapping[str, Any], shown: str) -> None:
    pod = pod_view("a", of=None, labels={**LABELS, "b": "2"})
    [(_, reason, message)] = told_of({"maxUnavailable": 1, "selector": selector}, [pod])
    assert reason == "UnmanagedPods"
    assert message == (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may "
        "result in undefined behavior. To account for these pods please set "
        '".spec.minAvailable" field of the PDB to an integer value.'
    )


def test_a_pod_of_two_budgets() -> None:
    world = World({"minAvailable": 1})
    spec = {"selector": {}, "minAvailable": 1}
    world.budgets.on_add(ResourceView(Meta("all", "uid-all", "default"), spec, {}))
    world.pods.on_add(pod_view("d"))
    message = (
        'Pod "default"/"d" matches multiple PodDisruptionBudgets.  Chose "budget" arbitrarily.'
    )
    assert world.told() == [("d", "MultiplePodDisruptionBudgets", message)]


def test_replication_controllers_are_read_like_replica_sets() -> None:
    data: Any = b'{"metadata":{"name":"r","uid":"u"},"spec":{"replicas":2,"selector":{"a":"b"}}}'
    view = ReplicationControllerView.decoder()(data)
    assert (view.replicas, view.spec["selector"]) == (2, {"matchLabels": {"a": "b"}})
