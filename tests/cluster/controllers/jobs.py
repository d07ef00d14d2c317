"""Jobs and their pods, and a world that takes what the controller does to them."""

import random
from typing import Any

import msgspec

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Plan
from berth.cluster.controllers.job import JobController
from berth.cluster.controllers.job_backoff import FAILURES
from berth.cluster.controllers.job_pods import FINALIZER, INDEX, JobView
from berth.cluster.controllers.job_workload import JobWorkloads
from berth.cluster.controllers.table import Table
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
STRATEGY = find("batch", "v1", "jobs").strategy
KEY = "default/j"
decode_pod = PodView.decoder()


def job(*, status: Object | None = None, deleted: bool = False, **spec: Any) -> Object:
    """A Job as the server has it."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    metadata: Object = {"name": "j", "namespace": "default", "uid": "uid-j", "resourceVersion": "1"}
    if deleted:
        metadata["deletionTimestamp"] = STAMP
    obj: Object = {"metadata": metadata, "spec": {"template": template, **spec}}
    STRATEGY.default(obj)
    STRATEGY.prepare(obj, None)
    return {**obj, "status": status or {}}


def pod(
    name: str = "p",
    phase: str = "Running",
    *,
    index: int | None = None,
    held: bool = True,
    deleted: bool = False,
    ended: str = STAMP,
    exit_code: int = 1,
    restarts: int = 0,
    conditions: tuple[str, ...] = (),
    failures: int = 0,
) -> Object:
    """A pod of the Job; *held*: it has the finalizer still."""
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {"batch.kubernetes.io/controller-uid": "uid-j"},
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j"}
            | {"controller": True}
        ],
        "finalizers": [FINALIZER] if held else [],
    }
    if index is not None:
        metadata["annotations"] = {INDEX: str(index), FAILURES: str(failures)}
    if deleted:
        metadata["deletionTimestamp"] = STAMP
    container: Object = {"name": "c", "restartCount": restarts, "state": {"running": {}}}
    if phase in ("Succeeded", "Failed"):
        code = exit_code if phase == "Failed" else 0
        container["state"] = {"terminated": {"exitCode": code, "finishedAt": ended}}
    status = {
        "phase": phase,
        "containerStatuses": [container],
        "conditions": [{"type": condition, "status": "True"} for condition in conditions],
    }
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}


class World:
    def __init__(
        self, obj: Object | None = None, *pods: Object, workloads: JobWorkloads | None = None
    ) -> None:
        self.clock = FakeClock(NOW)
        self.jobs: Table[JobView] = Table()
        self.pods: Table[PodView] = Table()
        self.recorded: list[Occurrence] = []
        self.controller = JobController(
            self.jobs,
            self.pods,
            clock=self.clock,
            rng=random.Random(1),
            recorder=EventRecorder(self.recorded.append, "job-controller", self.clock),
            workloads=workloads,
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        if obj is not None:
            self.jobs.on_add(msgspec.convert(obj, JobView))
        for each in pods:
            self.pods.on_add(decode_pod(msgspec.json.encode(each)))

    def plan(self) -> Plan:
        return self.controller.plan(KEY)

    def writes(self) -> list[str]:
        """What is done beside telling the status, in short."""
        return [shown for action in self.plan().actions for shown in [_shown(action)] if shown]

    def status(self) -> Object:
        """What changes of the status."""
        for action in self.plan().actions:
            if isinstance(action, Patch) and action.path.endswith("/status"):
                assert action.body["metadata"] == {"uid": "uid-j", "resourceVersion": "1"}
                found: Object = action.body["status"]
                return found
        return {}

    def conditions(self) -> list[str]:
        return [
            f"{condition['type']}={condition['status']} {condition['reason']}"
            for condition in self.status().get("conditions") or ()
        ]


def _shown(action: Action) -> str:
    name = action.path.rpartition("/")[2] if not isinstance(action, Create) else ""
    match action:
        case Create(_, body):
            return f"create {body['metadata']['generateName']}"
        case Delete():
            return f"delete {name}"
        case Patch(_, {"metadata": {"$deleteFromPrimitiveList/finalizers": [_]}}):
            return f"release {name}"
    return ""
