"""Hollow pods from binding to their end."""

import random
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Patch
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.annotations import plan_of
from berth.cluster.kubelet.container_plan import RUNS, ContainerPlan
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_lifecycles import PodLifecycles, Timings
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.kube.client.errors import ApiError, NotFoundError, ServerError
from berth.kube.objects.meta import OwnerReference
from berth.runtime.clock import FakeClock

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
PATH = "/api/v1/namespaces/default/pods/p"
TIMINGS = Timings(start_seconds=2.0, stop_seconds=1.0, retry_seconds=3.0)


def pod(
    name: str = "p",
    *,
    node: str = "node-0",
    phase: str = "Pending",
    cpu: str = "1",
    grace: int | None = None,
    pod_ip: str = "",
    **spec: Any,
) -> KubeletPod:
    """A pod on a node; *grace*: it is being deleted, with so many seconds."""
    meta: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    if grace is not None:
        meta |= {"deletionTimestamp": STAMP, "deletionGracePeriodSeconds": grace}
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    scheduled = {"type": "PodScheduled", "status": "True"}
    return msgspec.convert(
        {
            "metadata": meta,
            "spec": {"nodeName": node, "containers": [container], **spec},
            "status": {"phase": phase, "conditions": [scheduled], "podIP": pod_ip},
        },
        KubeletPod,
    )


class World:
    """Two nodes of 4 CPU, and the reports that are due."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.scheduled: list[tuple[float, str]] = []
        self.recorded: list[Occurrence] = []
        template = NodeTemplate()
        self.nodes = {
            name: HollowNode(name, index=index, allocatable=template.allocatable())
            for index, name in enumerate(NodePool(2, template).names())
        }
        self.pods = PodLifecycles(
            self.nodes,
            timings=TIMINGS,
            clock=self.clock,
            schedule=self._schedule,
            rng=random.Random(1),
            events=PodEvents(
                lambda node: EventRecorder(self.recorded.append, "kubelet", self.clock, node)
            ),
        )

    def _schedule(self, key: str, delay: float) -> None:
        self.scheduled.append((self.clock.monotonic() + delay, key))

    def after(self, seconds: float, *, error: ApiError | None = None) -> list[Action]:
        """Let time pass; return the reports made, which all end with *error*."""
        self.clock.advance(seconds)
        now = self.clock.monotonic()
        due = sorted(each for each in self.scheduled if each[0] <= now)
        self.scheduled = [each for each in self.scheduled if each[0] > now]
        actions = []
        for _, key in due:
            action = self.pods.step(key)
            if action is not None:
                actions.append(action)
                self.pods.finished(key, action, error)
        return actions


@pytest.fixture
def world() -> World:
    return World()


def test_a_bound_pod_starts(world: World) -> None:
    world.pods.on_add(pod())

    early, (patch,), late = world.after(1), world.after(1), world.after(100)

    assert (early, late) == ([], [])
    assert isinstance(patch, Patch)
    assert (patch.path, patch.content_type) == (f"{PATH}/status", STRATEGIC_MERGE)
    assert patch.body["metadata"] == {"uid": "uid-p"}
    status = patch.body["status"]
    stamp = "2026-01-01T00:00:02Z"
    assert {key: status[key] for key in ("phase", "hostIP", "podIP", "startTime")} == {
        "phase": "Running",
        "hostIP": "172.18.0.0",
        "podIP": "10.64.0.2",
        "startTime": stamp,
    }
    assert {(condition["type"], condition["status"]) for condition in status["conditions"]} == {
        ("PodReadyToStartContainers", "True"),
        ("Initialized", "True"),
        ("Ready", "True"),
        ("ContainersReady", "True"),
    }
    (container,) = status["containerStatuses"]
    assert container["ready"]
    assert container["state"] == {"running": {"startedAt": stamp}}


def test_a_pod_that_does_not_fit_is_failed(world: World) -> None:
    world.pods.on_add(pod("first", cpu="3"))
    world.pods.on_add(pod("p", cpu="2"))

    (patch,) = world.after(0)

    assert isinstance(patch, Patch)
    assert patch.body["status"] == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu, "
        "requested: 2000, used: 3000, capacity: 4000",
        "startTime": STAMP,
    }


def test_room_is_given_back(world: World) -> None:
    first = pod("first", cpu="3")
    world.pods.on_add(first)
    world.pods.on_delete(first)
    world.pods.on_add(pod("second", cpu="3"))
    done = pod("second", cpu="3", phase="Succeeded")
    world.pods.on_update(pod("second", cpu="3"), done)
    world.pods.on_add(pod("p", cpu="4"))

    statuses = [
        action.body["status"]["phase"] for action in world.after(2) if isinstance(action, Patch)
    ]

    assert statuses == ["Running"]
    world.nodes["node-0"].check_invariants()


@pytest.mark.parametrize(
    ("grace", "seconds"),
    [
        pytest.param(30, 1.0, id="as soon as the container has stopped"),
        pytest.param(0, 0.0, id="at once when there is no grace"),
    ],
)
def test_a_deleted_pod_stops(world: World, grace: int, seconds: float) -> None:
    running = pod(phase="Running")
    world.pods.on_add(running)
    world.pods.on_update(running, pod(phase="Running", grace=grace))

    early = world.after(seconds - 0.5) if seconds else []
    actions = world.after(0.5 if seconds else 0)

    assert early == []
    assert actions == [Delete(PATH, "uid-p", grace_seconds=0)]


def test_a_pod_deleted_before_it_started_goes_at_once(world: World) -> None:
    world.pods.on_add(pod())
    world.pods.on_update(pod(), pod(grace=30))

    assert world.after(0) == [Delete(PATH, "uid-p", grace_seconds=0)]
    assert world.after(2) == []


@pytest.mark.parametrize(
    ("error", "again"),
    [
        pytest.param(ServerError(500, "InternalError", ""), True, id="the server failed"),
        pytest.param(NotFoundError(404, "NotFound", ""), False, id="the pod is gone"),
    ],
)
def test_reports_that_fail(world: World, error: ApiError, again: bool) -> None:
    world.pods.on_add(pod())
    world.after(2, error=error)

    assert bool(world.after(TIMINGS.retry_seconds)) is again


def test_a_restarted_kubelet_goes_on(world: World) -> None:
    """Running pods are counted and left alone; what is being deleted is finished."""
    world.pods.on_add(pod("running", phase="Running", cpu="4"))
    world.pods.on_add(pod("done", phase="Succeeded", cpu="4"))
    world.pods.on_add(pod("going", node="node-1", phase="Running", grace=30))
    world.pods.on_add(pod("p", cpu="1"))

    first, second = world.after(0), world.after(2)

    assert [action.body["status"]["reason"] for action in first if isinstance(action, Patch)] == [
        "OutOfcpu"
    ]
    assert [type(action) for action in second] == [Delete]


def test_pods_of_other_nodes_are_none_of_ours(world: World) -> None:
    world.pods.on_add(pod(node="real-node"))
    world.pods.on_delete(pod(node="real-node"))

    assert world.scheduled == []


def test_init_containers_and_host_network(world: World) -> None:
    init = [
        {"name": "setup", "image": "i"},
        {"name": "proxy", "image": "i", "restartPolicy": "Always"},
    ]
    world.pods.on_add(pod(initContainers=init, hostNetwork=True))

    (patch,) = world.after(2)

    assert isinstance(patch, Patch)
    status = patch.body["status"]
    assert status["podIP"] == status["hostIP"]
    states = [
        next(iter(init_container_status["state"]))
        for init_container_status in status["initContainerStatuses"]
    ]
    assert states == ["terminated", "running"]


def test_pods_from_before_keep_their_addresses_for_themselves(world: World) -> None:
    world.pods.on_add(pod("here", phase="Running", pod_ip="10.64.0.7"))
    world.pods.on_add(pod("hidden", phase="Running", pod_ip="192.168.0.9"))
    world.pods.on_add(pod("new"))

    [started] = world.after(2)
    assert isinstance(started, Patch)
    assert started.body["status"]["podIP"] == "10.64.0.8"


JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}


def of_job(*, policy: str = "Never", controlled: bool = True, **annotations: str) -> KubeletPod:
    """A pod that may end; *annotations* without their prefix, with underscores for dashes."""
    told = {f"berth.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    view = pod(restartPolicy=policy)
    owners = msgspec.convert([JOB] if controlled else [], tuple[OwnerReference, ...])
    meta = msgspec.structs.replace(view.metadata, annotations=told, owner_references=owners)
    return msgspec.structs.replace(view, metadata=meta)


@pytest.mark.parametrize(
    ("view", "want"),
    [
        pytest.param(of_job(), ContainerPlan(run_seconds=1.0), id="of a Job: ends after a second"),
        pytest.param(of_job(controlled=False), RUNS, id="of nobody: runs on"),
        pytest.param(
            of_job(controlled=False, exit_code="3"),
            ContainerPlan(run_seconds=1.0, exit_code=3, runs_command=False),
            id="of nobody, but it is said how it ends",
        ),
        pytest.param(
            of_job(run_seconds="0.25"),
            ContainerPlan(run_seconds=0.25, runs_command=False),
            id="sooner",
        ),
        pytest.param(
            of_job(run_seconds="nan", exit_code="256"),
            ContainerPlan(run_seconds=1.0, runs_command=False),
            id="no such numbers",
        ),
        pytest.param(
            of_job(run_seconds="soon", exit_code="-1"),
            ContainerPlan(run_seconds=1.0, runs_command=False),
            id="no numbers",
        ),
        pytest.param(
            of_job(controlled=False, ready_seconds="never", stop_seconds="never"),
            ContainerPlan(ready_seconds=None, ignores_sigterm=True),
            id="never ready, never stopped",
        ),
        pytest.param(
            of_job(controlled=False, ready_seconds="5", stop_seconds="7"),
            ContainerPlan(ready_seconds=5.0, stop_seconds=7.0),
            id="ready later, stopped later",
        ),
    ],
)
def test_how_a_pod_lives(view: KubeletPod, want: ContainerPlan) -> None:
    assert plan_of(view).main == want


@pytest.mark.parametrize(
    ("exit_code", "phase", "conditions", "reason"),
    [
        pytest.param(
            0,
            "Succeeded",
            {
                "Ready": ("False", "PodCompleted"),
                "ContainersReady": ("False", "PodCompleted"),
                "PodReadyToStartContainers": ("False", None),
                "Initialized": ("True", "PodCompleted"),
            },
            "Completed",
            id="well",
        ),
        pytest.param(
            7,
            "Failed",
            {
                "Ready": ("False", "PodFailed"),
                "ContainersReady": ("False", "PodFailed"),
                "PodReadyToStartContainers": ("False", None),
            },
            "Error",
            id="badly",
        ),
    ],
)
def test_a_pod_of_a_job_ends(
    world: World, exit_code: int, phase: str, conditions: Object, reason: str
) -> None:
    world.pods.on_add(of_job(run_seconds="5", exit_code=str(exit_code)))

    started, early = world.after(2), world.after(4)
    (patch,), late = world.after(1), world.after(9)

    assert (len(started), early, late) == (1, [], [])
    assert isinstance(patch, Patch)
    status = patch.body["status"]
    assert status["phase"] == phase
    assert {
        condition["type"]: (condition["status"], condition.get("reason"))
        for condition in status["conditions"]
    } == conditions
    (container,) = status["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (False, 0)
    assert container["state"] == {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": "2026-01-01T00:00:02Z",
            "finishedAt": "2026-01-01T00:00:07Z",
        }
    }


def test_containers_that_fail_are_restarted(world: World) -> None:
    world.pods.on_add(of_job(policy="OnFailure", exit_code="1"))

    world.after(2)
    actions = [*world.after(1), *world.after(1), *world.after(10)]

    counts = [
        action.body["status"]["containerStatuses"][0]["restartCount"]
        for action in actions
        if isinstance(action, Patch)
    ]
    assert counts == [1, 1, 2]


def test_the_end_of_a_pod_is_reported_again_when_that_failed(world: World) -> None:
    world.pods.on_add(of_job())
    world.after(2)

    actions = [*world.after(1, error=ServerError(500, "InternalError", "")), *world.after(3)]

    phases = [action.body["status"]["phase"] for action in actions if isinstance(action, Patch)]
    assert phases == ["Succeeded", "Succeeded"]
    assert world.after(9) == []


def test_who_holds_a_deleted_pod_sees_it_fail_first(world: World) -> None:
    def held(view: KubeletPod) -> KubeletPod:
        meta = msgspec.structs.replace(view.metadata, finalizers=("example.com/wait",))
        return msgspec.structs.replace(view, metadata=meta)

    running = held(pod(phase="Running"))
    world.pods.on_add(running)
    world.pods.on_update(running, held(pod(phase="Running", grace=30)))

    first, second, rest = world.after(1), world.after(0), world.after(5)

    (patch,) = first
    assert isinstance(patch, Patch)
    assert patch.body["status"]["phase"] == "Failed"
    assert (second, rest) == ([Delete(PATH, "uid-p", grace_seconds=0)], [])


def test_a_pod_that_was_to_end_soon_is_deleted_first(world: World) -> None:
    running = of_job(run_seconds="1")
    world.pods.on_add(running)
    world.after(2)
    (time, key) = world.scheduled.pop()
    world.scheduled.append((time - 0.5, key))  # a queue keeps the earliest time only

    assert world.after(0.5) == []
    assert len(world.after(0.5)) == 1


def told(world: World) -> list[tuple[str, str, str]]:
    return [(each.reason, each.message, each.regarding.field_path) for each in world.recorded]


PRESENT = 'Container image "nginx" already present on machine and can be accessed by the pod'


def test_events_tell_what_happens_to_containers(world: World) -> None:
    world.pods.on_add(pod())
    world.after(2)
    world.pods.on_update(pod(), pod(grace=30))
    world.pods.on_update(pod(grace=30), pod(grace=0))

    container = "spec.containers{c}"
    assert told(world) == [
        ("Pulled", PRESENT, container),
        ("Created", "Container created", container),
        ("Started", "Container started", container),
        ("Killing", "Stopping container c", container),
    ]
    assert {(each.component, each.host) for each in world.recorded} == {("kubelet", "node-0")}


def test_an_event_tells_why_a_node_does_not_take_a_pod(world: World) -> None:
    world.pods.on_add(pod(cpu="20"))
    world.after(0)

    [event] = world.recorded
    assert (event.type, event.reason, event.regarding.field_path) == ("Warning", "OutOfcpu", "")
    assert event.message.startswith("Node didn't have enough resource: cpu")


def test_nothing_is_stopped_that_never_ran(world: World) -> None:
    world.pods.on_add(pod(grace=30))
    world.after(5)

    assert told(world) == []
