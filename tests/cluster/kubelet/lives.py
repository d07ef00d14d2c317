"""Pods whose containers live by a script, and what ``kubectl get pods`` shows of them in time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from berth.cluster.columns.pod import final_reason, summarise
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.container_plan import COMPLETES, RUNS, ContainerPlan, PodPlan, Role
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_life import PodLife
from berth.cluster.kubelet.pod_status import conditions_of, status_of
from berth.cluster.pods.kubelet import KubeletContainer, KubeletPod
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock

T0 = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Script:
    """How containers live, by name: one plan for each start, the last one for all others."""

    plans: Mapping[str, Sequence[ContainerPlan]] = field(default_factory=dict)
    start_seconds: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict)

    def container(self, container: KubeletContainer, role: Role, *, restarts: int) -> ContainerPlan:
        plans = self.plans.get(container.name)
        if plans is None:
            return COMPLETES if role is Role.INIT else RUNS
        return plans[min(restarts, len(plans) - 1)]


def a_pod(*containers: str | Object, inits: Sequence[str | Object] = (), **spec: Any) -> KubeletPod:
    """A pod on the node ``n``; containers are names (of a sidecar with a ``*``), or bodies."""
    body = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "generation": 1},
        "spec": {
            "nodeName": "n",
            "containers": [_container(container) for container in containers or ("c",)],
            "initContainers": [_container(init) for init in inits],
            **spec,
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }
    return msgspec.convert(body, KubeletPod)


def _container(told: str | Object) -> Object:
    if not isinstance(told, str):
        return {"image": "i", **told}
    body: Object = {"name": told.removesuffix("*"), "image": "i"}
    return {**body, "restartPolicy": "Always"} if told.endswith("*") else body


class Life:
    """A pod that lives by a script. Times are seconds since its binding."""

    def __init__(
        self, pod: KubeletPod, plan: PodPlan | None = None, *, stop_seconds: float = 1.0
    ) -> None:
        self.clock = FakeClock(T0)
        self.recorded: list[Occurrence] = []
        self.pod = pod
        self.node = HollowNode("n", index=0, allocatable={"cpu": "4", "pods": "10"})
        plan = plan or Script()
        self.life = PodLife(
            pod,
            self.node,
            plan,
            begins_at=T0 + plan.start_seconds,
            stop_seconds=stop_seconds,
            events=PodEvents(lambda node: EventRecorder(self._record, "kubelet", self.clock, node)),
        )

    def _record(self, occurrence: Occurrence) -> None:
        self.recorded.append(occurrence)

    def at(self, seconds: float) -> "Life":
        """Let all happen until then."""
        self.clock.advance(T0 + seconds - self.clock.now())
        self.life.advance(T0 + seconds)
        return self

    def stop(self, grace_seconds: float) -> "Life":
        self.life.stop(self.clock.now(), grace_seconds)
        self.life.advance(self.clock.now())
        return self

    @property
    def status(self) -> Object:
        return status_of(
            self.life,
            self.node,
            pod_ip="10.0.0.1",
            conditions=self.conditions,
            sent={},
            given={},
            now=self.clock.now(),
        )

    @property
    def conditions(self) -> Any:
        return conditions_of(self.life)

    @property
    def shown(self) -> str:
        """READY, STATUS and RESTARTS."""
        pod = {"metadata": {}, "spec": msgspec.to_builtins(self.pod.spec), "status": self.status}
        summary = summarise(pod)
        reason = final_reason(pod, summary.reason)
        return f"{summary.ready}/{summary.total} {reason} {summary.restarts}"

    def timeline(self, until: float) -> list[tuple[float, str]]:
        """Return what is shown from when on, each time that it changes."""
        seen: list[tuple[float, str]] = []
        while (due := self.life.next_due() - T0) <= until:
            self.at(max(due, 0.0))
            if not seen or seen[-1][1] != self.shown:
                seen.append((round(due, 3), self.shown))
        return seen

    def states(self) -> dict[str, str]:
        """Return by container: the name of its state."""
        status = self.status
        all_of = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
        return {each["name"]: next(iter(each["state"])) for each in all_of}

    def exit_codes(self) -> dict[str, int]:
        status = self.status
        all_of = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
        return {
            each["name"]: each["state"]["terminated"]["exitCode"]
            for each in all_of
            if "terminated" in each["state"]
        }


def events(life: Life, like: Callable[[Occurrence], bool] = lambda _: True) -> list[str]:
    return [f"{each.reason} {each.message}" for each in life.recorded if like(each)]
