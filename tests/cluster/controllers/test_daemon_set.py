"""What the controller of DaemonSets plans: which nodes get a pod, and how a rollout goes on."""

import random
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.daemon_nodes import GETS, KEEPS, UNFIT, Eligibility, Verdict
from berth.cluster.controllers.daemon_set import DaemonSetController
from berth.cluster.controllers.history import data_of
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NodeView, RevisionView, WorkloadView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta, OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock
from tests.cluster.objects import BIRTH, workload_view

NOW = 1_767_225_600.0  # BIRTH
KEY = "default/web"
PODS = "/api/v1/namespaces/default/pods"
HASH = "controller-revision-hash"
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "uid-web"}
decode_pod = PodView.decoder()


def node(name: str, *taints: Object, **labels: str) -> NodeView:
    """A node; *taints* by key and effect."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
            "spec": {"taints": list(taints)},
        },
        NodeView,
    )


def taint(effect: str, key: str = "example.com/reserved") -> Object:
    return {"key": key, "effect": effect}


def pod(
    name: str,
    on: str,
    *,
    of: str = "new",
    bound: bool = True,
    ready: bool = True,
    phase: str = "Running",
    deleted: bool = False,
    born: str = BIRTH,
) -> PodView:
    """A pod of the DaemonSet for the node *on*; *of*: the hash of its template, or ``new``."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {"app": "web", HASH: REVISION if of == "new" else of},
        "ownerReferences": [{**OWNER, "controller": True}],
        "creationTimestamp": born,
    }
    if deleted:
        metadata["deletionTimestamp"] = BIRTH
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": BIRTH}
    body = {
        "metadata": metadata,
        "spec": {"nodeName": on if bound else "", "affinity": {"nodeAffinity": required}},
        "status": {"phase": phase, "conditions": [condition]},
    }
    return decode_pod(msgspec.json.encode(body))


def revision(name: str, number: int, image: str) -> RevisionView:
    """A revision of the DaemonSet with the template of *image*."""
    owner = OwnerReference("apps/v1", "DaemonSet", "web", "uid-web", controller=True)
    data = data_of(workload_view(image=image).spec["template"])
    labels = {"app": "web", HASH: name.removeprefix("web-")}
    meta = Meta(name, f"uid-{name}", "default", labels=labels, owner_references=[owner])
    return RevisionView(meta, data, number)


class World:
    def __init__(self, *pods: PodView, nodes: str = "a b", **spec: Any) -> None:
        self.clock = FakeClock(NOW)
        self.recorded: list[Occurrence] = []
        self.daemon_sets: Table[WorkloadView] = Table()
        self.pods: Table[PodView] = Table()
        self.nodes: Table[NodeView] = Table()
        self.revisions: Table[RevisionView] = Table()
        self.controller = DaemonSetController(
            self.daemon_sets,
            self.pods,
            self.nodes,
            self.revisions,
            clock=self.clock,
            rng=random.Random(1),
            recorder=EventRecorder(self.recorded.append, "daemonset-controller", self.clock),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        for name in nodes.split():
            self.nodes.on_add(node(name))
        self.daemon_sets.on_add(workload_view(**spec))
        for each in pods:
            self.pods.on_add(each)

    def actions(self) -> list[Action]:
        return self.controller.plan(KEY).actions

    def writes(self) -> list[str]:
        """What is done about pods, in short."""
        return [
            f"create on {_node_of(action)}"
            if isinstance(action, Create)
            else f"delete {action.path.rpartition('/')[2]}"
            for action in self.actions()
            if isinstance(action, Create | Delete) and action.path.startswith(PODS)
        ]

    def status(self) -> Object:
        for action in self.actions():
            if isinstance(action, Patch) and action.path.endswith("/status"):
                found: Object = action.body["status"]
                return found
        return {}


def _node_of(action: Create) -> str:
    affinity = action.body["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    [requirement] = term["matchFields"]
    [name] = requirement["values"]
    return str(name)


def _present_hash() -> str:
    [create] = [
        action
        for action in World(nodes="").actions()
        if isinstance(action, Create) and action.path.endswith("/controllerrevisions")
    ]
    return str(create.body["metadata"]["labels"][HASH])


REVISION = _present_hash()


def test_each_node_gets_a_pod_for_itself() -> None:
    world = World(nodes="a b")
    creates = [action for action in world.actions() if isinstance(action, Create)]
    kept, first, second = creates

    assert kept.body["metadata"]["name"] == f"web-{REVISION}"
    assert kept.body["revision"] == 1
    assert kept.body["data"] == data_of(workload_view().spec["template"])
    text = msgspec.json.encode(kept.body["data"])
    assert text == msgspec.json.encode(kept.body["data"], order="sorted")
    assert [_node_of(first), _node_of(second)] == ["a", "b"]
    assert first.body["metadata"]["labels"] == {"app": "web", HASH: REVISION}
    assert first.body["metadata"]["generateName"] == "web-"
    tolerated = {
        toleration["key"]: toleration["effect"] for toleration in first.body["spec"]["tolerations"]
    }
    assert tolerated == {
        "node.kubernetes.io/not-ready": "NoExecute",
        "node.kubernetes.io/unreachable": "NoExecute",
        "node.kubernetes.io/disk-pressure": "NoSchedule",
        "node.kubernetes.io/memory-pressure": "NoSchedule",
        "node.kubernetes.io/pid-pressure": "NoSchedule",
        "node.kubernetes.io/unschedulable": "NoSchedule",
    }
    assert world.writes() == []  # they were asked for


ZONE = {"key": "zone", "operator": "In", "values": ["z"]}
REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}


@pytest.mark.parametrize(
    ("spec", "of", "want"),
    [
        pytest.param({}, node("a"), GETS, id="any node"),
        pytest.param({}, node("a", taint("NoSchedule")), KEEPS, id="a tainted node"),
        pytest.param({}, node("a", taint("NoExecute")), UNFIT, id="a node that evicts"),
        pytest.param({}, node("a", taint("PreferNoSchedule")), GETS, id="a node to be avoided"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, node("a", taint("NoExecute")), GETS,
            id="all taints are tolerated",
        ),
        pytest.param(
            {}, node("a", taint("NoSchedule", "node.kubernetes.io/unschedulable")), GETS,
            id="a node that is cordoned",
        ),
        pytest.param(
            {}, node("a", taint("NoSchedule", "node.kubernetes.io/network-unavailable")), KEEPS,
            id="a node without network",
        ),
        pytest.param(
            {"hostNetwork": True},
            node("a", taint("NoSchedule", "node.kubernetes.io/network-unavailable")), GETS,
            id="a pod on a network of its own",
        ),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node("a"), UNFIT, id="without the label"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node("a", disk="ssd"), GETS, id="with it"),
        pytest.param(
            {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}},
            node("a", zone="y"), UNFIT, id="in another zone",
        ),
        pytest.param({"nodeName": "b"}, node("a"), UNFIT, id="another node is named"),
    ],
)  # fmt: skip
def test_which_nodes_are_fit(spec: Object, of: NodeView, want: Verdict) -> None:
    assert Eligibility({"spec": spec}).verdict(of) == want


@pytest.mark.parametrize(("comparisons", "want"), [(True, GETS), (False, UNFIT)])
def test_numbers_are_compared_with_the_feature_gate(*, comparisons: bool, want: Verdict) -> None:
    few = {"key": "gpus", "operator": "Lt", "value": "8"}
    full = node("a", {"key": "gpus", "value": "4", "effect": "NoExecute"})
    spec = {"tolerations": [few]}
    assert Eligibility({"spec": spec}, comparisons=comparisons).verdict(full) == want


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([pod("x", "a")], ["create on b"], id="one is missing"),
        pytest.param(
            [pod("x", "a"), pod("y", "b", bound=False, ready=False)],
            [],
            id="one is yet to be bound",
        ),
        pytest.param(
            [pod("x", "a"), pod("y", "b"), pod("z", "b", born="2026-01-02T00:00:00Z")],
            ["delete z"],
            id="one too many: the younger goes",
        ),
        pytest.param([pod("x", "a"), pod("y", "b", deleted=True)], [], id="one is on its way out"),
        pytest.param(
            [pod("x", "a"), pod("y", "b", phase="Failed")], ["delete y"], id="one has failed"
        ),
        pytest.param(
            [pod("x", "a"), pod("y", "b"), pod("z", "gone")], ["delete z"], id="a node is gone"
        ),
    ],
)
def test_which_pods_are_made_and_deleted(pods: list[PodView], want: list[str]) -> None:
    assert World(*pods).writes() == want


def test_pods_of_a_node_that_is_gone_are_not_waited_for() -> None:
    [delete] = [
        action for action in World(pod("z", "gone")).actions() if isinstance(action, Delete)
    ]
    assert delete.grace_seconds == 0


def test_pods_that_go_on_failing_are_replaced_ever_more_slowly() -> None:
    world = World(pod("x", "a", phase="Failed"), nodes="a")
    assert world.writes() == ["delete x"]
    world.pods.on_delete(pod("x", "a", phase="Failed"))
    world.pods.on_add(pod("y", "a", phase="Failed"))

    assert (world.writes(), world.controller.plan(KEY).again) == ([], 1.0)
    world.clock.advance(1)
    assert world.writes() == ["delete y"]
    assert [each.reason for each in world.recorded] == ["FailedDaemonPod", "FailedDaemonPod"]
    assert world.recorded[0].message == (
        "Found failed daemon pod default/x on node a, will try to kill it"
    )


THREE = [pod("x", "a", of="old"), pod("y", "b", of="old"), pod("z", "c", of="old")]


def rolling(**limits: Any) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


@pytest.mark.parametrize(
    ("spec", "pods", "want"),
    [
        pytest.param({}, THREE, ["delete x"], id="one at a time"),
        pytest.param(rolling(maxUnavailable="50%"), THREE, ["delete x", "delete y"], id="half"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, THREE, [], id="when deleted"),
        pytest.param({}, [pod("x", "a", ready=False), *THREE[1:]], [], id="the first is not ready"),
        pytest.param(
            {}, [pod("x", "a", ready=False), pod("y", "b", of="old", ready=False), THREE[2]],
            ["delete y"], id="an old one that is not ready is no loss",
        ),
        pytest.param(
            {"minReadySeconds": 5}, [pod("x", "a"), *THREE[1:]], ["delete y", "delete z"],
            id="none has been ready for long enough, so none is a loss",
        ),
        pytest.param(
            rolling(maxUnavailable=0, maxSurge=1), THREE, ["create on a"], id="a new one first"
        ),
        pytest.param(
            rolling(maxUnavailable=0, maxSurge=1), [pod("v", "a", ready=False), *THREE], [],
            id="which has to be ready",
        ),
        pytest.param(
            rolling(maxUnavailable=0, maxSurge=1), [pod("v", "a"), *THREE],
            ["delete x", "create on b"], id="before the old one goes",
        ),
        pytest.param({}, [pod("x", "a"), pod("y", "b"), pod("z", "c")], [], id="all are new"),
    ],
)  # fmt: skip
def test_how_a_rollout_goes_on(spec: Object, pods: list[PodView], want: list[str]) -> None:
    assert World(*pods, nodes="a b c", **spec).writes() == want


def test_revisions_follow_the_template() -> None:
    world = World(nodes="")
    world.revisions.on_add(revision("web-one", 1, "nginx"))
    world.revisions.on_add(revision("web-two", 2, "other"))

    [patch] = [
        action
        for action in world.actions()
        if isinstance(action, Patch) and "/controllerrevisions/" in action.path
    ]
    assert patch.path.endswith("/web-one")
    assert patch.body == {"metadata": {"uid": "uid-web-one"}, "revision": 3}


def test_old_revisions_are_forgotten_but_for_those_in_use() -> None:
    world = World(pod("x", "a", of="one"), nodes="a", revisionHistoryLimit=1)
    for number, name in enumerate(("one", "two", "three", "four"), 1):
        image = "nginx" if name == "four" else name
        world.revisions.on_add(revision(f"web-{name}", number, image))
    gone = [action.path for action in world.actions() if isinstance(action, Delete)]
    assert [path.rpartition("/")[2] for path in gone] == ["x", "web-two"]


def test_the_status() -> None:
    world = World(
        pod("x", "a"),
        pod("y", "b", of="old", ready=False),
        pod("z", "d"),
        nodes="a b c",
    )
    world.nodes.on_add(node("d", taint("NoSchedule")))
    assert world.status() == {
        "currentNumberScheduled": 2,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 1,
        "numberReady": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
        "updatedNumberScheduled": 1,
        "observedGeneration": 1,
    }


def test_nodes_wake_it_when_they_change_what_matters() -> None:
    world = World(nodes="a")
    world.enqueued.clear()
    tainted = node("a", taint("NoSchedule"))
    world.nodes.on_update(node("a"), tainted)
    world.nodes.on_update(tainted, node("a", taint("NoSchedule")))
    world.nodes.on_delete(tainted)
    assert world.enqueued == [KEY, KEY]


def test_events_tell_of_pods_and_not_of_revisions() -> None:
    world = World(nodes="a")
    for action in world.actions():
        world.controller.finished(KEY, Outcome(action))
    assert [each.reason for each in world.recorded] == ["SuccessfulCreate"]
