"""A hollow machine whose memory and disk tests fill."""

import heapq
import random
from typing import Any

import msgspec

from berth.cluster.actions import Delete, Patch
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.configuration import KubeletConfiguration, from_object
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_lifecycles import PodLifecycles, Timings
from berth.cluster.kubelet.pressure import NodePressure, PodHandler
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.kube.objects.node import Node
from berth.runtime.clock import FakeClock

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
    conditions = {condition["type"]: condition for condition in old["conditions"]}
    for condition in change.get("conditions") or ():
        both = {**conditions.get(condition["type"], {}), **condition}
        conditions[condition["type"]] = {k: v for k, v in both.items() if v is not None}
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
            rng=random.Random(1),
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
