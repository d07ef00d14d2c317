"""Jobs from their start to their end: what is counted, and what events tell."""

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.job_pods import FINALIZER, JobView
from berth.cluster.controllers.table import Table
from berth.cluster.resources import Object
from berth.cluster.writes.patch import merge_patch
from berth.kube.client.errors import ConflictError
from tests.cluster.controllers.jobs import KEY, STAMP, World, decode_pod, job


class Cluster(World):
    """The controller with an API that does as it is told, and pods that end as they are told."""

    def __init__(self, obj: Object) -> None:
        super().__init__()
        self.objects: dict[str, Object] = {}
        self.created = 0
        self.version = 1
        self.put(obj, "jobs")

    def put(self, obj: Object, kind: str) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        name = obj["metadata"]["name"]
        old = self.objects.get(name)
        self.objects[name] = obj
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            del self.objects[name]
            self.pods.on_delete(decode_pod(msgspec.json.encode(old)))
            return
        table: Table[Any] = self.jobs if kind == "jobs" else self.pods
        data = msgspec.json.encode(obj)
        view = msgspec.json.decode(data, type=JobView) if kind == "jobs" else decode_pod(data)
        before = table.get(view.metadata.key)
        if before is None:
            table.on_add(view)
        else:
            table.on_update(before, view)

    def reconcile(self) -> bool:
        """Carry out one plan; return whether there was anything to do."""
        actions = self.plan().actions
        for action in actions:
            self.apply(action)
            self.controller.finished(KEY, Outcome(action))
            self.check_invariants()
        return bool(actions)

    def apply(self, action: Action) -> None:
        match action:
            case Create(_, body):
                self.created += 1
                body["metadata"]["uid"] = f"uid-{body['metadata']['name']}"
                self.put({**body, "status": {"phase": "Running"}}, "pods")
            case Delete(path):
                obj = self.objects[path.rpartition("/")[2]]
                metadata = {**obj["metadata"], "deletionTimestamp": STAMP}
                self.put({**obj, "metadata": metadata}, "pods")
            case Patch(path, body):
                parts = path.removesuffix("/status").split("/")
                obj = self.objects[parts[-1]]
                if path.endswith("/status"):
                    version = body["metadata"].get("resourceVersion")
                    assert version == obj["metadata"]["resourceVersion"]
                    self.put({**obj, "status": merged(obj["status"], body["status"])}, "jobs")
                else:
                    finalizers = body["metadata"]["$deleteFromPrimitiveList/finalizers"]
                    kept = [
                        finalizer
                        for finalizer in obj["metadata"]["finalizers"]
                        if finalizer not in finalizers
                    ]
                    self.put({**obj, "metadata": {**obj["metadata"], "finalizers": kept}}, "pods")

    def end_pods(self, outcomes: Mapping[str, str]) -> None:
        """End the pods that run, by *outcomes*: letters of their names to phases."""
        for name, obj in list(self.objects.items()):
            if name == "j" or obj["status"]["phase"] != "Running":
                continue
            phase = outcomes.get(name[-1], "Succeeded")
            if obj["metadata"].get("deletionTimestamp"):
                phase = "Failed"
            state = {"terminated": {"exitCode": 0 if phase == "Succeeded" else 1}}
            status = {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]}
            self.put({**obj, "status": status}, "pods")

    def check_invariants(self) -> None:
        spec, status = self.objects["j"]["spec"], self.objects["j"]["status"]
        active = [pod for pod in self.pods.values() if pod.is_active]
        assert len(active) <= spec["parallelism"]
        noted = status.get("uncountedTerminatedPods") or {}
        known = [uid for uids in noted.values() for uid in uids]
        assert len(known) == len(set(known))
        counted = (status.get("succeeded") or 0) + (status.get("failed") or 0)
        assert counted + len(known) <= self.created


def merged(old: Object, patch: Object) -> Object:
    found: Object = merge_patch(old, patch)
    return found


def test_events_tell_of_pods_and_of_the_end() -> None:
    cluster = Cluster(job())
    while cluster.reconcile():
        cluster.end_pods({})

    [name] = [pod.metadata.name for pod in cluster.pods.values()]
    assert [(each.type, each.reason, each.message) for each in cluster.recorded] == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name}"),
        ("Normal", "Completed", "Job completed"),
    ]


def test_no_event_tells_of_a_status_that_was_not_written() -> None:
    world = World(job(suspend=True))
    [patch] = world.plan().actions
    world.controller.finished(KEY, Outcome(patch, error=ConflictError(409, "Conflict", "")))
    assert world.recorded == []
    world.plan()
    world.controller.finished(KEY, Outcome(patch))
    assert [each.reason for each in world.recorded] == ["Suspended"]


@settings(max_examples=50)
@given(
    completions=st.integers(0, 6),
    parallelism=st.integers(1, 4),
    indexed=st.booleans(),
    limit=st.integers(0, 5),
    outcomes=st.dictionaries(st.sampled_from("bcdfghjklm2468"), st.just("Failed")),
)
def test_every_job_ends_with_every_pod_counted_once(
    completions: int, parallelism: int, indexed: bool, limit: int, outcomes: dict[str, str]
) -> None:
    cluster = Cluster(
        job(
            completions=completions,
            parallelism=parallelism,
            completionMode="Indexed" if indexed else "NonIndexed",
            backoffLimit=limit,
        )
    )
    for _ in range(30):
        while cluster.reconcile():
            pass
        cluster.end_pods(outcomes)
        cluster.clock.advance(700)
    status = cluster.objects["j"]["status"]
    ends = {condition["type"] for condition in status["conditions"]}
    assert len(ends & {"Complete", "Failed"}) == 1
    counted = (status.get("succeeded") or 0) + (status.get("failed") or 0)
    assert counted == cluster.created
    assert not any(FINALIZER in (pod.metadata.finalizers or ()) for pod in cluster.pods.values())
    if "Complete" in ends:
        assert status.get("succeeded") == (completions or None)
    else:
        assert status["failed"] > limit
