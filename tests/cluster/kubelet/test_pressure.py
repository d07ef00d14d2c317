"""What hollow nodes do when they run out of something."""

import heapq
from typing import Any

import msgspec
import pytest

from berth.clock import FakeClock
from berth.cluster.actions import Delete, Patch
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.configuration import KubeletConfiguration, from_object
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.kubelet_pod import KubeletPod
from berth.cluster.kubelet.node_reports import NodeReports
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_lifecycles import PodLifecycles, Timings
from berth.cluster.kubelet.pressure import NodePressure, PodHandler
from berth.cluster.resources import Object
from berth.objects.node import Node

NOW = 1_767_225_600.0
CAPACITY = {"cpu": "4", "memory": "10Gi", "ephemeral-storage": "100Gi", "pods": "110"}
USAGE = "berth.dev/usage-"


def pod(name: str, *, memory: str = "", request: str = "", **more: Any) -> Object:
    """A pod on the node ``n``; *memory* is what it uses, *more* are further annotations."""
    resources = {"requests": {"memory": request}} if request else {}
    resources = more.pop("resources", resources)
    annotations = {f"{USAGE}{key.replace('_', '-')}": text for key, text in more.items()
                   if isinstance(text, str)}  # fmt: skip
    if memory:
        annotations[f"{USAGE}memory"] = memory
    spec = {key: each for key, each in more.items() if not isinstance(each, str)}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "generation": 1,
            "annotations": annotations,
        },
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": f"image-of-{name}", "resources": resources}],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "qosClass": "Burstable" if resources else "BestEffort",
        },
    }


def merged(old: Object, change: Object) -> Object:
    """Return a status with a strategic merge patch applied, as far as it matters here."""
    conditions = {each["type"]: each for each in old["conditions"]}
    for each in change.get("conditions") or ():
        both = {**conditions.get(each["type"], {}), **each}
        conditions[each["type"]] = {k: v for k, v in both.items() if v is not None}
    return {**old, **change, "conditions": list(conditions.values())}


class Machine:
    """The node ``n``, whose pods are as an API server would have them."""

    def __init__(self, configuration: KubeletConfiguration | None = None) -> None:
        self.clock = FakeClock(NOW)
        self.recorded: list[Occurrence] = []
        self.bodies: dict[str, Object] = {}
        self._queue: list[tuple[float, str, str]] = []
        self.node = HollowNode("n", index=0, allocatable=CAPACITY)
        self.nodes = {"n": self.node}
        self.lives = PodLifecycles(
            self.nodes,
            timings=Timings(),
            clock=self.clock,
            schedule=lambda key, delay: self._schedule("pod", key, delay),
            events=PodEvents(self._recorder_of),
        )
        self.pressure = NodePressure(
            self.nodes,
            self.lives,
            configuration or KubeletConfiguration(),
            clock=self.clock,
            schedule=lambda name, delay: self._schedule("pressure", name, delay),
            report=lambda name: self._schedule("report", name, 0.0),
            recorder_of=self._recorder_of,
        )
        self.handler = PodHandler(self.lives, self.pressure)
        self.reports: list[tuple[float, tuple[str, ...]]] = []
        self.annotate()

    def annotate(self, **annotations: str) -> None:
        """Have the Node annotated, with underscores for dashes."""
        told = {f"berth.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
        body = {
            "metadata": {"name": "n", "annotations": told},
            "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
        }
        self.node.observe(msgspec.convert(body, Node))
        self.pressure.node_changed(self.node)

    def bind(self, *bodies: Object) -> None:
        for body in bodies:
            self.bodies[f"default/{body['metadata']['name']}"] = body
            self.handler.on_add(msgspec.convert(body, KubeletPod))

    def use(self, name: str, memory: str) -> None:
        """Have a pod use so much memory from now on."""
        body = self.bodies[f"default/{name}"]
        metadata = body["metadata"]
        annotations = {**metadata["annotations"], f"{USAGE}memory": memory}
        self._change(body, {**body, "metadata": {**metadata, "annotations": annotations}})

    def run(self, seconds: float) -> None:
        """Let time pass, with all that is due."""
        until = self.clock.monotonic() + seconds
        while self._queue and self._queue[0][0] <= until:
            due, kind, name = heapq.heappop(self._queue)
            self.clock.advance(max(due - self.clock.monotonic(), 0.0))
            if kind == "pod":
                self._report(name)
            elif kind == "pressure":
                self.pressure.step(name)
            else:
                at = self.clock.monotonic() - NOW
                self.reports.append((at, self.node.pressure))
        self.clock.advance(until - self.clock.monotonic())

    def phases(self) -> dict[str, str]:
        """Return phase, or reason, or what its container waits for or died of, by pod."""
        found = {}
        for key, body in self.bodies.items():
            status = body["status"]
            containers = status.get("containerStatuses") or [{}]
            waiting = (containers[0].get("state") or {}).get("waiting") or {}
            shown = status.get("reason") or waiting.get("reason") or status["phase"]
            found[key.removeprefix("default/")] = shown
        return found

    def events(self, *reasons: str) -> list[tuple[str, str, str]]:
        """Return object, reason and message of events with these reasons."""
        return [
            (each.regarding.name, each.reason, each.message)
            for each in self.recorded
            if each.reason in reasons
        ]

    @property
    def is_watched(self) -> bool:
        return any(kind == "pressure" for _, kind, _ in self._queue)

    def _report(self, key: str) -> None:
        action = self.lives.step(key)
        if action is None:
            return
        body = self.bodies[key]
        self.lives.finished(key, action, None)
        if isinstance(action, Patch):
            self._change(body, {**body, "status": merged(body["status"], action.body["status"])})
        elif isinstance(action, Delete):
            del self.bodies[key]
            self.handler.on_delete(msgspec.convert(body, KubeletPod))

    def _change(self, old: Object, new: Object) -> None:
        self.bodies[f"default/{new['metadata']['name']}"] = new
        views = msgspec.convert(old, KubeletPod), msgspec.convert(new, KubeletPod)
        self.handler.on_update(*views)

    def _schedule(self, kind: str, name: str, delay: float) -> None:
        heapq.heappush(self._queue, (self.clock.monotonic() + delay, kind, name))

    def _recorder_of(self, node: str) -> EventRecorder:
        return EventRecorder(self.recorded.append, "kubelet", self.clock, node)


def configured(**fields: Any) -> KubeletConfiguration:
    return from_object(fields, source="test")


def test_pods_are_evicted_one_after_the_other_until_there_is_enough() -> None:
    machine = Machine()
    machine.bind(
        pod("large", memory="5Gi"),
        pod("modest", memory="3Gi", request="3500Mi"),
        pod("small", memory="1Gi"),
    )
    machine.run(5)
    machine.use("small", "1800Mi")
    machine.run(60)

    assert machine.phases() == {"large": "Evicted", "modest": "Running", "small": "Running"}
    assert machine.events("EvictionThresholdMet", "Evicted") == [
        ("n", "EvictionThresholdMet", "Attempting to reclaim memory"),
        (
            "large",
            "Evicted",
            "The node was low on resource: memory. Threshold quantity: 100Mi, "
            "available: 44237Ki. Container c was using 5Gi, request is 0, "
            "has larger consumption of memory. ",
        ),
    ]


def test_the_condition_is_reported_at_once_and_taken_back_after_the_transition_period() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(400)

    assert [pressure for _, pressure in machine.reports] == [("MemoryPressure",), ()]
    first, last = (at for at, _ in machine.reports)
    assert 300 <= last - first <= 310
    assert machine.events("NodeHasInsufficientMemory", "NodeHasSufficientMemory") == [
        ("n", "NodeHasInsufficientMemory", "Node n status is now: NodeHasInsufficientMemory"),
        ("n", "NodeHasSufficientMemory", "Node n status is now: NodeHasSufficientMemory"),
    ]


def test_an_evicted_pod_says_that_it_was_disrupted() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(20)

    status = machine.bodies["default/p"]["status"]
    [target] = [each for each in status["conditions"] if each["type"] == "DisruptionTarget"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]


def test_nodes_of_which_nobody_says_anything_are_not_looked_at() -> None:
    machine = Machine()
    machine.bind(pod("p", request="9Gi"))
    machine.run(60)
    assert not machine.is_watched


def test_a_node_is_left_alone_when_nothing_more_is_told_of_it() -> None:
    machine = Machine()
    machine.annotate(usage_memory="1Gi")
    machine.run(60)
    before = machine.is_watched
    machine.annotate()
    machine.run(20)
    assert (before, machine.is_watched) == (True, False)


def test_with_thresholds_of_its_own_every_node_is_looked_at() -> None:
    machine = Machine(configured(evictionHard={"memory.available": "95%"}))
    machine.bind(pod("p", request="4Gi"))
    machine.run(20)
    assert machine.phases() == {"p": "Evicted"}


def test_a_soft_threshold_waits_and_lets_pods_end_in_peace() -> None:
    configuration = configured(
        evictionHard={"memory.available": "100Mi"},
        evictionSoft={"memory.available": "1Gi"},
        evictionSoftGracePeriod={"memory.available": "30s"},
        evictionMaxPodGracePeriod=20,
    )
    machine = Machine(configuration)
    machine.bind(pod("p", memory="9500Mi"))
    machine.run(29)
    early = machine.phases()
    machine.run(15)

    assert (early, machine.phases()) == ({"p": "Running"}, {"p": "Evicted"})
    assert machine.reports[0][0] < 1


@pytest.mark.parametrize(
    ("body", "phase"),
    [
        pytest.param(pod("late"), "Evicted", id="nothing requested: not taken"),
        pytest.param(pod("late", request="10Mi"), "Running", id="something requested: taken"),
        pytest.param(pod("late", priority=2_000_000_000), "Running", id="critical: taken"),
    ],
)
def test_under_memory_pressure(body: Object, phase: str) -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(20)
    machine.bind(body)
    machine.run(1)

    assert machine.phases()["late"] == phase
    if phase == "Evicted":
        status = machine.bodies["default/late"]["status"]
        message = "The node had condition: [MemoryPressure]. "
        assert status["message"] == f"Pod was rejected: {message}"
        assert machine.events("Evicted")[-1] == ("late", "Evicted", message)


def test_a_container_that_exceeds_its_limit_is_killed_and_backs_off() -> None:
    machine = Machine()
    limits = {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    machine.bind(pod("p", memory="1025Mi", resources=limits))
    machine.run(5)

    [container] = machine.bodies["default/p"]["status"]["containerStatuses"]
    assert machine.phases() == {"p": "CrashLoopBackOff"}
    terminated = container["lastState"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("OOMKilled", 137)
    assert machine.events("Evicted", "SystemOOM") == []


def test_when_memory_is_gone_the_kernel_is_faster_than_the_manager() -> None:
    machine = Machine()
    machine.bind(pod("careful", memory="4Gi", request="9500Mi"), pod("careless", memory="1Gi"))
    machine.run(12)
    machine.use("careful", "9800Mi")
    machine.run(0.5)

    [container] = machine.bodies["default/careless"]["status"]["containerStatuses"]
    assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert machine.events("SystemOOM")[0] == (
        "n",
        "SystemOOM",
        "System OOM encountered, victim process: c, pid: 0",
    )


def test_finished_pods_and_unused_images_go_before_pods_do() -> None:
    machine = Machine()
    gib = 2**30
    done = pod("done", ephemeral_storage="40Gi")
    done["spec"]["restartPolicy"] = "Never"
    done["metadata"]["annotations"]["berth.dev/run-seconds"] = "1"
    machine.bind(
        done,
        pod("works", ephemeral_storage="30Gi"),
    )
    machine.node.pulled("old", 20 * gib)
    machine.node.pulled("image-of-works", 5 * gib)
    machine.run(30)

    assert machine.phases()["works"] == "Running"
    assert machine.node.images == {"image-of-works": 5 * gib}
    assert ("n", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage") in (
        machine.events("EvictionThresholdMet")
    )
    assert machine.node.pressure == ("DiskPressure",)


def test_a_pod_that_stores_more_than_its_volume_may_hold_is_evicted() -> None:
    machine = Machine()
    volume = {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    machine.bind(pod("p", volume_data="1025Mi", volumes=[volume]))
    machine.run(20)

    assert machine.events("Evicted") == [
        ("p", "Evicted", 'Usage of EmptyDir volume "data" exceeds the limit "1Gi". ')
    ]
    assert machine.phases() == {"p": "Evicted"}
    assert machine.node.pressure == ()


def test_limits_of_local_storage_can_be_switched_off() -> None:
    machine = Machine(configured(localStorageCapacityIsolation=False))
    volume = {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}
    machine.bind(pod("p", volume_data="1025Mi", volumes=[volume]))
    machine.run(20)
    assert machine.phases() == {"p": "Running"}


def test_a_container_that_the_node_cannot_hold_is_killed_again_and_again() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="11Gi"), pod("other", request="1Gi"))
    machine.run(60)

    assert machine.phases() == {"p": "CrashLoopBackOff", "other": "Running"}
    assert len(machine.events("SystemOOM")) >= 3
    assert machine.events("Evicted") == []


def test_images_are_collected_when_the_disk_is_rather_full() -> None:
    machine = Machine(configured(evictionHard={"memory.available": "100Mi"}))
    gib = 2**30
    for name in ("a", "b", "image-of-p"):
        machine.node.pulled(name, 10 * gib)
    machine.bind(pod("p", ephemeral_storage="55Gi"))
    machine.run(290)
    before = dict(machine.node.images)
    machine.run(20)
    after = dict(machine.node.images)
    machine.annotate(usage_ephemeral_storage="40Gi")
    machine.run(300)

    assert list(before) == ["a", "b", "image-of-p"]
    assert list(after) == ["b", "image-of-p"]
    [(_, _, message)] = machine.events("FreeDiskSpaceFailed")
    assert message.startswith("Failed to garbage collect required amount of images. Attempted to")
    assert list(machine.node.images) == ["image-of-p"]


def test_a_file_system_for_images_is_watched_by_itself() -> None:
    machine = Machine()
    machine.annotate(imagefs_capacity="20Gi")
    volume = {"name": "data", "emptyDir": {}}
    machine.bind(
        pod("writes", ephemeral_storage="18Gi"),
        pod("stores", volume_data="80Gi", volumes=[volume]),
    )
    machine.run(20)
    assert machine.phases() == {"writes": "Evicted", "stores": "Running"}


def test_a_machine_that_is_down_evicts_nobody() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="1Gi"))
    machine.run(5)
    machine.annotate(failure="unreachable", usage_memory="9Gi")
    machine.run(60)
    down = machine.phases()
    machine.annotate(usage_memory="9Gi")
    machine.lives.node_returned(machine.node, restarted=False)
    machine.run(30)
    assert (down, machine.phases()["p"]) == ({"p": "Running"}, "Evicted")


def test_a_removed_machine_is_forgotten() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.nodes.clear()
    machine.lives.forget_node("n")
    machine.pressure.forget_node("n")
    machine.run(60)
    assert machine.events("Evicted") == []


def reported(pressure: tuple[str, ...], known: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the conditions that a node reports which has *known* ones, by type."""
    node = HollowNode("n", index=0, allocatable=CAPACITY)
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(node, NodeTemplate())
    reports.step("n")
    reports.finished("n", None)
    conditions = [{"type": type_, "status": status} for type_, status in known.items()]
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": conditions}
    view = msgspec.convert({"metadata": {"name": "n"}, "status": status}, Node)
    node.observe(view)
    node.pressure = pressure
    patch = reports.step("n") if reports.is_wrong(view) else None
    if patch is None:
        return []
    assert isinstance(patch, Patch)
    return [
        (each["type"], each["status"], each["reason"])
        for each in patch.body["status"]["conditions"]
    ]


WELL = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
UNKNOWN = dict.fromkeys(WELL, "Unknown")


@pytest.mark.parametrize(
    ("pressure", "known", "want"),
    [
        pytest.param((), WELL, [], id="as it is"),
        pytest.param(
            ("MemoryPressure",),
            WELL,
            [("MemoryPressure", "True", "KubeletHasInsufficientMemory")],
            id="only what changes is reported",
        ),
        pytest.param(
            (),
            {**WELL, "DiskPressure": "True"},
            [("DiskPressure", "False", "KubeletHasNoDiskPressure")],
            id="over again",
        ),
        pytest.param(
            ("PIDPressure",),
            UNKNOWN,
            [
                ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                ("PIDPressure", "True", "KubeletHasInsufficientPID"),
                ("Ready", "True", "KubeletReady"),
            ],
            id="everything, where it was missed",
        ),
    ],
)
def test_conditions_are_reported(
    pressure: tuple[str, ...], known: dict[str, str], want: list[tuple[str, str, str]]
) -> None:
    assert reported(pressure, known) == want


def test_what_is_reserved_is_not_for_pods() -> None:
    configuration = configured(
        evictionHard={"memory.available": "512Mi", "nodefs.available": "10Gi"},
        systemReserved={"memory": "1Gi", "cpu": "200m"},
        kubeReserved={"memory": "512Mi"},
        maxPods=50,
    )
    template = configuration.applied_to(NodeTemplate())

    assert template.capacity()["memory"] == "16Gi"
    assert template.allocatable() == {
        "cpu": "3800m",
        "memory": "14Gi",
        "ephemeral-storage": "90Gi",
        "pods": "50",
    }
    assert KubeletConfiguration().applied_to(NodeTemplate()) == NodeTemplate()
