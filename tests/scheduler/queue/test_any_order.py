"""Whatever happens in whatever order: no pod is lost, none is in two places."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    ALL_EVENTS,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from tests.builders import pod, toleration
from tests.scheduler.queue.world import Gate, OtherGate, World, listens

NAMES = ("a", "b", "c", "d", "e")
PLUGINS = ("Fit", "Ports", "Quota", "Silent")
EVENTS = (
    NODE_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
    ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE),
)

names = st.sampled_from(NAMES)
some_names = st.sets(names)
some_plugins = st.sets(st.sampled_from(PLUGINS))


class AnyOrder(RuleBasedStateMachine):
    """The queue beside the simplest model: which pods exist, and which are in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = (Gate(), OtherGate())
        self.helped: set[str] = set()
        self.world = World(
            listens("Fit", NODE_ADD, self._hint),
            listens("Fit", ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)),
            listens("Ports", ASSIGNED_POD_DELETE, self._hint),
            listens("Quota", ALL_EVENTS, self._hint),
            listens("Gate", NODE_ADD),
            listens("OtherGate", ALL_EVENTS, self._hint),
            gates=self.gates,
        )
        self.in_flight: dict[str, QueuedPodInfo] = {}
        self.created = 0

    def _hint(self, waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if waiting.metadata.name in self.helped else QueueingHint.SKIP

    def _made(self, name: str, uid: str, **fields: Any) -> Pod:
        return pod(name, uid=uid, **fields)

    def _waiting(self) -> set[str]:
        """Return the keys of the pods that must be in a sub-queue."""
        return {
            key
            for key, a_pod in self.world.pods.items()
            if a_pod.metadata.uid not in self.in_flight
        }

    @rule(name=names, priority=st.integers(0, 2), nominated=st.sampled_from(["", "n1"]))
    def create(self, name: str, priority: int, nominated: str) -> None:
        if f"default/{name}" in self.world.pods:
            return
        self.created += 1
        self.world.add(
            self._made(name, f"uid-{self.created}", priority=priority, nominated=nominated)
        )

    @rule(
        name=names,
        labels=st.sampled_from([{}, {"a": "b"}]),
        tolerations=st.integers(0, 1),
        nominated=st.sampled_from(["", "n1", "n2"]),
        priority=st.integers(0, 2),
    )
    def change(
        self, name: str, labels: dict[str, str], tolerations: int, nominated: str, priority: int
    ) -> None:
        known = self.world.pods.get(f"default/{name}")
        if known is not None:
            self.world.update(
                self._made(
                    name,
                    known.metadata.uid,
                    labels=labels,
                    tolerations=[toleration("a")] * tolerations,
                    nominated=nominated,
                    priority=priority,
                )
            )

    @rule(name=names)
    def delete(self, name: str) -> None:
        known = self.world.pods.pop(f"default/{name}", None)
        if known is not None:
            self.world.queue.delete(known)

    @rule()
    def pop(self) -> None:
        counts = self.world.queue.sub_queues.pending_counts()
        queued = self.world.queue.pop()
        if queued is None:
            assert counts["active"] == 0
            return
        assert queued.uid not in self.in_flight
        assert self.world.pods[queued.key].metadata.uid == queued.uid
        self.in_flight[queued.uid] = queued

    @rule(pick=st.integers(0, 9), plugins=some_plugins, pending=some_plugins)
    def fail(self, pick: int, plugins: set[str], pending: set[str]) -> None:
        if not self.in_flight:
            return
        uid = list(self.in_flight)[pick % len(self.in_flight)]
        queued = self.in_flight.pop(uid)
        current = self.world.pods.get(queued.key)
        if current is None or current.metadata.uid != uid:
            self.world.queue.done(uid)
            return
        assert self.world.give_back(queued, *plugins, pending=sorted(pending))

    @rule(pick=st.integers(0, 9))
    def bind(self, pick: int) -> None:
        if not self.in_flight:
            return
        uid = list(self.in_flight)[pick % len(self.in_flight)]
        queued = self.in_flight.pop(uid)
        self.world.queue.done(uid)
        current = self.world.pods.get(queued.key)
        if current is not None and current.metadata.uid == uid:
            del self.world.pods[queued.key]
            self.world.queue.delete(current)

    @rule(event=st.sampled_from(EVENTS), helped=some_names)
    def happen(self, event: ClusterEvent, helped: set[str]) -> None:
        self.helped = helped
        self.world.queue.move_all_to_active_or_backoff_queue(event)

    @rule(chosen=some_names)
    def activate(self, chosen: set[str]) -> None:
        pods = self.world.pods
        self.world.queue.activate(
            [pods[f"default/{name}"] for name in sorted(chosen) if f"default/{name}" in pods]
        )

    @rule(name=names, node=st.sampled_from(["", "n1", "n2"]))
    def nominate(self, name: str, node: str) -> None:
        known = self.world.pods.get(f"default/{name}")
        if known is not None:
            self.world.queue.nominator.add_nominated_pod(PodInfo(known), node_name=node)

    @rule(first=some_names, second=some_names)
    def close_gates(self, first: set[str], second: set[str]) -> None:
        self.gates[0].closed_for, self.gates[1].closed_for = first, second

    @rule(seconds=st.sampled_from([0.3, 1.0, 5.0, 400.0]), leftovers=st.booleans())
    def pass_time(self, seconds: float, leftovers: bool) -> None:
        self.world.clock.advance(seconds)
        self.world.queue.flush_backoff_completed()
        if leftovers:
            self.world.queue.flush_unschedulable_pods_leftover()

    @invariant()
    def the_views_agree(self) -> None:
        self.world.queue.check_invariants()

    @invariant()
    def no_pod_is_lost_and_none_is_invented(self) -> None:
        queue = self.world.queue
        waiting = {
            key: queued.uid
            for key in (f"default/{name}" for name in NAMES)
            if (queued := queue.sub_queues.get(key)) is not None
        }
        assert waiting == {key: self.world.pods[key].metadata.uid for key in self._waiting()}
        assert sum(queue.sub_queues.pending_counts().values()) == len(waiting)
        assert all(queue.is_in_flight(uid) for uid in self.in_flight)

    @invariant()
    def waiting_pods_are_the_newest_we_know(self) -> None:
        for key in self._waiting():
            queued = self.world.queue.sub_queues.get(key)
            assert queued is not None
            assert queued.pod is self.world.pods[key]

    @invariant()
    def nobody_is_nominated_who_is_gone(self) -> None:
        nominator = self.world.queue.nominator
        alive = {a_pod.metadata.uid for a_pod in self.world.pods.values()}
        for pods in nominator.nominated_pods().values():
            assert {a_pod.uid for a_pod in pods} <= alive

    def teardown(self) -> None:
        """Open the gates and let time pass: every pod that waits must come out."""
        queue = self.world.queue
        waiting = self._waiting()
        self.close_gates(set(), set())
        for uid in self.in_flight:
            queue.done(uid)
        self.world.clock.advance(1000)
        self.helped = set(NAMES)
        queue.flush_unschedulable_pods_leftover()
        queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)
        queue.flush_backoff_completed()
        came_out = {f"default/{name}" for name in self.world.pop_names()}
        assert came_out == waiting


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
