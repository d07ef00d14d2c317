"""The pods of hollow nodes: taken or rejected, reported, ended. Synchronous.

What the containers of a pod do is :mod:`berth.cluster.kubelet.pod_life`; here is what the API
server is told of it, one report at a time, and what follows from changes there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Get, Patch
from berth.cluster.kubelet import pod_status
from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.annotations import plan_of
from berth.cluster.kubelet.container_life import ContainerLife, Doing
from berth.cluster.kubelet.container_plan import PodPlan
from berth.cluster.kubelet.container_status import given
from berth.cluster.kubelet.containers import Find
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_life import PodLife, needs_sandbox
from berth.cluster.kubelet.pod_status import Conditions
from berth.cluster.kubelet.processes.process import Log
from berth.cluster.kubelet.processes.sandbox import PodSandbox, Sandbox, Volumes
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.kube.client.errors import ApiError, ConflictError, InvalidError, NotFoundError
from berth.runtime.clock import Clock

_NOTHING: Final[Mapping[str, str]] = {}

Schedule = Callable[[str, float], None]
"""Have the pod with that key looked at in so many seconds."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things take on a hollow node, in seconds."""

    start_seconds: float = 0.0
    """From taking a pod to the start of its first container."""
    stop_seconds: float = 1.0
    """From SIGTERM to the end of a container; less when the grace period is shorter."""
    retry_seconds: float = 1.0
    """Until a report that failed is sent again."""


@dataclass(slots=True)
class Tracked:
    """A pod on one of our nodes."""

    pod: KubeletPod
    node: HollowNode
    life: PodLife | None = None
    """None: the node has not taken it, or it had ended before we knew it."""
    rejection: Rejection | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What is noted on the pod with the next report."""
    pod_ip: str = ""
    lacking: list[str] = field(default_factory=list)
    """Paths of what is read before its containers start: the pod, and what it names."""
    given: dict[str, Object] = field(default_factory=dict)
    """By container: the resources that it has."""
    resize: Rejection | None = None
    """Why it does not get the resources that it asks for."""
    ephemeral_since: dict[str, float] = field(default_factory=dict)
    """By name of ephemeral container: the unix time of its start."""
    followed: int = 0
    """The generation of the pod whose spec counts here."""
    reported: int = -1
    """The version of its life that was reported last."""
    sent: Conditions = field(default_factory=dict)
    """The conditions that were reported last."""
    report: tuple[int, Conditions] | None = None
    """Version and conditions of the report that is under way."""
    is_busy: bool = False
    """Whether something is under way."""
    is_due: bool = False
    """Whether it was to be looked at meanwhile."""
    is_deleted: bool = False
    """Whether its end was reported."""

    @property
    def is_running(self) -> bool:
        """Whether it uses the node."""
        return self.life is not None and not self.life.is_over


class PodLifecycles:
    """The handler of the pod watch. Whoever drives it calls :meth:`step` for scheduled pods."""

    def __init__(
        self,
        nodes: Mapping[str, HollowNode],
        *,
        timings: Timings,
        clock: Clock,
        schedule: Schedule,
        events: PodEvents,
        rng: Random,
        plan_of: Callable[[KubeletPod], PodPlan] = plan_of,
    ) -> None:
        """*plan_of* says how the containers of a pod live, *rng* what is random in them."""
        self._nodes = nodes
        self._events = events
        self._timings = timings
        self._clock = clock
        self._schedule = schedule
        self._plan_of = plan_of
        self._rng = rng
        self._volumes = Volumes()
        self._pods: dict[str, Tracked] = {}
        self._on: dict[str, dict[str, Tracked]] = {}
        """The same pods, by node."""
        self._deferred: set[str] = set()
        """Pods that wait for room to be resized."""
        self._unseen: dict[str, KubeletPod] = {}
        """Pods that came or changed while their node did not work, by key."""

    def pods_on(self, node: str) -> list[KubeletPod]:
        """Return the pods that use the node *node*: taken, not ended, and not being evicted."""
        return [
            each.pod
            for each in self._on.get(node, {}).values()
            if each.life is not None and not each.life.is_over and each.life.failure is None
        ]

    def node_of(self, key: str) -> HollowNode | None:
        """Return the node of a pod that is known here."""
        tracked = self._pods.get(key)
        return None if tracked is None else tracked.node

    def active_on(self, node: str) -> Iterator[tuple[KubeletPod, set[str]]]:
        """Yield the pods that use the node *node*, with the names of their running containers.

        Pods that are being evicted are among them until their containers have ended.
        """
        for each in self._on.get(node, {}).values():
            if each.life is not None and not each.life.is_over:
                yield each.pod, each.life.running

    def finished_on(self, node: str) -> Iterator[KubeletPod]:
        """Yield the pods of the node *node* whose containers have all ended."""
        for each in self._on.get(node, {}).values():
            if each.pod.is_terminated or (each.life is not None and each.life.is_over):
                yield each.pod

    def is_running(self, key: str) -> bool:
        """Tell whether a pod uses its node."""
        tracked = self._pods.get(key)
        return tracked is not None and tracked.is_running

    def evict(
        self,
        key: str,
        *,
        reason: str,
        message: str,
        grace_seconds: float,
        is_disruption: bool = False,
    ) -> None:
        """Have the node end a pod by its own decision: it fails with *reason* and *message*.

        Its containers get *grace_seconds* at most, and no more than the pod's own grace period.
        With *is_disruption* the pod is told that it was the node's fault (``DisruptionTarget``).
        Nothing happens to pods that do not run here.
        """
        tracked = self._pods.get(key)
        if tracked is not None and tracked.life is not None:
            now = self._clock.now()
            tracked.life.advance(now)
            own = tracked.pod.spec.termination_grace_period_seconds
            grace = grace_seconds if own is None else min(grace_seconds, own)
            tracked.life.is_disrupted = is_disruption
            tracked.life.fail(Rejection(reason, message), now, grace)
            self._schedule(key, 0.0)

    def kill_container(self, key: str, container: str, *, reason: str, exit_code: int) -> None:
        """End a running container, as the kernel does that has no memory left: ``OOMKilled``, 137.

        The restart policy decides what follows.
        """
        tracked = self._pods.get(key)
        if tracked is not None and tracked.life is not None:
            now = self._clock.now()
            tracked.life.advance(now)
            tracked.life.kill(container, now, exit_code=exit_code, reason=reason)
            self._schedule(key, 0.0)

    def node_returned(self, node: HollowNode, *, restarted: bool) -> None:
        """Go on with the pods of a node that works again; see to what was missed.

        *restarted*: its containers have ended with the machine.
        """
        now = self._clock.now()
        for key, tracked in self._pods.items():
            if tracked.node is node and tracked.life is not None:
                if restarted:
                    tracked.life.lose_machine(now)
                self._schedule(key, 0.0)
        missed = [key for key, pod in self._unseen.items() if pod.spec.node_name == node.name]
        for pod in [self._unseen.pop(key) for key in missed]:
            known = self._pods.get(pod.key)
            if known is None:
                self.on_add(pod)
            else:
                self.on_update(known.pod, pod)

    def forget_node(self, name: str) -> None:
        """Drop the pods of a node that is no more; nobody reports their end."""
        self._volumes.nodes.pop(name, None)
        for key in self._on.pop(name, {}):
            del self._pods[key]
            self._deferred.discard(key)
        for key in [key for key, pod in self._unseen.items() if pod.spec.node_name == name]:
            del self._unseen[key]

    def on_add(self, obj: KubeletPod) -> None:
        node = self._nodes.get(obj.spec.node_name)
        if node is None:
            return
        if node.failure is not None:
            self._unseen[obj.key] = obj
            return
        tracked = self._pods[obj.key] = self._meet(obj, node)
        self._on.setdefault(node.name, {})[obj.key] = tracked
        self._notice_deletion(tracked)
        if tracked.rejection is not None:
            self._schedule(obj.key, 0.0)
        self._schedule_next(tracked)

    def on_update(self, old: KubeletPod, new: KubeletPod) -> None:
        tracked = self._pods.get(new.key)
        if tracked is None:
            self.on_add(new)  # it was not on a node of ours before
            return
        if tracked.node.failure is not None:
            self._unseen[new.key] = new
            return
        tracked.pod = new
        life = tracked.life
        if life is not None:
            life.pod = new
            if new.is_terminated:
                if not life.is_over:
                    life.abandon()
                self._release(tracked)
            elif (
                new.metadata.generation > tracked.followed
                or (new.spec.readiness_gates and new.status.conditions != old.status.conditions)
                or _is_contradicted(tracked, old)
            ):
                self._schedule(new.key, 0.0)
        self._notice_deletion(tracked)

    def on_delete(self, obj: KubeletPod) -> None:
        self._unseen.pop(obj.key, None)
        tracked = self._pods.pop(obj.key, None)
        self._deferred.discard(obj.key)
        if tracked is not None:
            self._on.get(tracked.node.name, {}).pop(obj.key, None)
            self._release(tracked)

    def step(self, key: str) -> Action | None:
        """Return what is to be reported of the pod now, if anything."""
        tracked = self._pods.get(key)
        if tracked is None or tracked.node.failure is not None:
            return None
        if tracked.is_busy:
            tracked.is_due = True
            return None
        action = self._action(tracked)
        tracked.is_busy = action is not None
        if action is None:
            self._schedule_next(tracked)
        return action

    def finished(
        self, key: str, action: Action, error: ApiError | None, answer: bytes = b""
    ) -> None:
        """Note how a report ended; what failed is tried again, unless the pod is another now."""
        tracked = self._pods.get(key)
        if tracked is None:
            return
        report, tracked.report = tracked.report, None
        tracked.is_busy = False
        is_refused = isinstance(error, NotFoundError | ConflictError | InvalidError)
        if error is not None and not is_refused:
            tracked.is_deleted = False
            self._schedule(key, self._timings.retry_seconds)
            return
        if isinstance(action, Get):
            self._learn(tracked, action, None if error is not None else answer)
            self._schedule(key, 0.0)
        if report is not None:
            tracked.reported, sent = report
            if error is None:
                tracked.sent, tracked.annotations = sent, _NOTHING
        life = tracked.life
        if life is not None and life.is_over:
            self._release(tracked)
        is_deleting = tracked.pod.metadata.deletion_timestamp is not None
        if tracked.is_due or (is_deleting and not tracked.is_deleted and not is_refused):
            tracked.is_due = False
            self._schedule(key, 0.0)
        self._schedule_next(tracked)

    def _meet(self, pod: KubeletPod, node: HollowNode) -> Tracked:
        """Return a pod that was not known, evaluated."""
        if pod.is_terminated:
            return Tracked(pod, node)
        is_known = pod.status.phase == "Running"  # from before we were started
        rejection = None if is_known else node.admit(pod)
        if rejection is not None:
            return Tracked(pod, node, rejection=rejection)
        now, plan = self._clock.now(), self._plan_of(pod)
        life = PodLife(
            pod,
            node,
            plan,
            begins_at=inf if is_known else now + self._timings.start_seconds + plan.start_seconds,
            stop_seconds=self._timings.stop_seconds,
            events=self._events,
        )
        tracked = Tracked(pod, node, life, followed=pod.metadata.generation)
        tracked.annotations = plan.annotations
        tracked.given = {
            container.name: given(container.resources) for container in pod.spec.containers
        }
        if needs_sandbox(pod):
            tracked.lacking = [_path(pod)]
        if is_known:
            if tracked.lacking:
                self._schedule(pod.key, 0.0)
            node.take(pod)
            node.has_pod_ip(pod.status.pod_ip)
            life.resume(now)
            tracked.pod_ip = pod.status.pod_ip
            tracked.reported, tracked.sent = life.version, pod_status.known_conditions(pod)
        return tracked

    def _action(self, tracked: Tracked) -> Action | None:
        pod, life, now = tracked.pod, tracked.life, self._clock.now()
        if tracked.lacking and tracked.is_running and pod.metadata.deletion_timestamp is None:
            return Get(tracked.lacking[0])
        if life is not None:
            life.advance(now)
        if pod.metadata.deletion_timestamp is not None and (life is None or life.is_over):
            # Who holds it, such as the controller of its Job, waits for a phase that says so.
            is_told = life is None or pod.is_terminated or tracked.reported == life.version
            if is_told or not pod.metadata.finalizers:
                return self._delete(tracked)
        if tracked.rejection is not None:
            return self._reject(tracked, now)
        if life is None or pod.is_terminated:
            return None
        if pod.metadata.generation > tracked.followed:
            self._follow(tracked, life, now)
        return self._report(tracked, life, now)

    def _give_ip(self, tracked: Tracked) -> None:
        tracked.pod_ip = tracked.pod_ip or tracked.node.next_pod_ip()

    def _learn(self, tracked: Tracked, action: Get, answer: bytes | None) -> None:
        """Take in the pod as it is in the API, or one of the objects that it names."""
        if action.path not in tracked.lacking:
            return  # somebody needed it before
        tracked.lacking.remove(action.path)
        obj = None if answer is None else msgspec.json.decode(answer)
        life = tracked.life
        if life is None or life.is_over:
            return
        if action.path == _path(tracked.pod):
            if obj is None or obj["metadata"]["uid"] != tracked.pod.metadata.uid:
                return
            life.sandbox = self._sandbox(tracked, obj)
            namespace = f"/api/v1/namespaces/{tracked.pod.metadata.namespace}"
            tracked.lacking = [
                f"{namespace}/{plural}/{name}" for plural, name in life.sandbox.objects
            ]
        elif life.sandbox is not None:
            plural, name = action.path.split("/")[-2:]
            life.sandbox.objects[plural, name] = obj
        if not tracked.lacking and life.sandbox is not None:
            life.enter(life.sandbox, self._clock.now())
            self._schedule_next(tracked)

    def _sandbox(self, tracked: Tracked, pod: Object) -> PodSandbox:
        self._give_ip(tracked)
        return PodSandbox(
            pod,
            pod_ip=tracked.pod_ip,
            host_ip=tracked.node.host_ip,
            volumes=self._volumes,
            rng=self._rng,
        )

    def _container(self, uid: str, key: str, name: str) -> tuple[Tracked, ContainerLife] | None:
        """Return a container of a pod whose node works."""
        tracked = self._pods.get(key)
        if tracked is None or tracked.life is None or tracked.node.failure is not None:
            return None
        if tracked.pod.metadata.uid != uid:
            return None
        for container in tracked.life.containers:
            if container.container.name == name:
                return tracked, container
        return None

    def log(self, pod: Object, container: str, *, previous: bool) -> Log | None:
        """Return what a container has written, or did before its last start; None: nobody knows."""
        known = self._container(*_identity(pod), container)
        if known is None:
            return None
        life = known[1]
        is_older = previous and life.doing is not Doing.BACK_OFF
        sandbox = life.previous if is_older else life.sandbox
        return sandbox.log if sandbox is not None and sandbox.process is not None else None

    def sandbox(self, pod: Object, container: str, find: Find) -> Sandbox | None:
        """Return what a container sees that runs here; None: no such container does.

        *pod* is as the API has it, and *find* gives the objects that it names, by plural and name.
        """
        known = self._container(*_identity(pod), container)
        if known is None or known[1].doing is not Doing.RUNNING:
            return None
        tracked, each = known
        life = tracked.life
        assert life is not None
        if life.sandbox is None:
            sandbox = self._sandbox(tracked, pod)
            sandbox.objects = {name: find(*name) for name in sandbox.objects}
            tracked.lacking = []
            life.enter(sandbox, self._clock.now())
        return each.sandbox

    def changed(self, pod: Object) -> None:
        """Look again at a pod after something has run in its containers, or has come to them."""
        tracked = self._pods.get(_identity(pod)[1])
        if tracked is not None and tracked.life is not None:
            now = self._clock.now()
            tracked.life.advance(now)
            tracked.life.looks_again(now)
            for container in tracked.life.containers:
                container.due = min(container.due, container.process_due)
            self._schedule(tracked.pod.key, 0.0)

    def _report(self, tracked: Tracked, life: PodLife, now: float) -> Action | None:
        """Return the report of what has changed of a pod, if anything has."""
        pod = tracked.pod
        if life.start_time is None and not life.is_over:
            return None
        if life.version == tracked.reported and not pod.spec.readiness_gates:
            return None
        conditions = pod_status.conditions_of(life, resize=tracked.resize)
        if life.version == tracked.reported and conditions == tracked.sent:
            return None
        self._give_ip(tracked)
        tracked.report = life.version, {**tracked.sent, **conditions}
        status = pod_status.status_of(
            life,
            tracked.node,
            pod_ip=tracked.pod_ip,
            conditions=conditions,
            sent=tracked.sent,
            given=tracked.given,
            now=now,
        )
        if pod.spec.ephemeral_containers:
            statuses = pod_status.ephemeral_statuses(pod, tracked.ephemeral_since)
            status["ephemeralContainerStatuses"] = statuses
        return _status_patch(pod, status, tracked.annotations)

    def _reject(self, tracked: Tracked, now: float) -> Action | None:
        rejection = tracked.rejection
        if rejection is None or tracked.pod.is_terminated or tracked.reported == 0:
            return None
        if tracked.report is None:
            self._events.rejected(tracked.pod, rejection)
        tracked.report = 0, {}
        return _status_patch(tracked.pod, pod_status.rejected(rejection, now=now))

    def _delete(self, tracked: Tracked) -> Action | None:
        if tracked.is_deleted:
            return None
        tracked.is_deleted = True
        return Delete(_path(tracked.pod), tracked.pod.metadata.uid, grace_seconds=0)

    def _follow(self, tracked: Tracked, life: PodLife, now: float) -> None:
        """Take in that the spec of a pod has changed."""
        pod = tracked.pod
        tracked.followed = pod.metadata.generation
        for container in pod.spec.ephemeral_containers:
            tracked.ephemeral_since.setdefault(container.name, now)
        tracked.resize = tracked.node.resize(pod)
        if tracked.resize is None:
            tracked.given = {
                container.name: given(container.resources) for container in pod.spec.containers
            }
        if tracked.resize is not None and tracked.resize.reason == "Deferred":
            self._deferred.add(pod.key)
        else:
            self._deferred.discard(pod.key)
        life.follow(pod, now)

    def _release(self, tracked: Tracked) -> None:
        """Give back what a pod used; others may have waited for it."""
        tracked.node.release(tracked.pod.metadata.uid)
        for key in self._deferred:
            waiting = self._pods[key]
            if waiting.node is tracked.node:
                waiting.followed = 0
                self._schedule(key, 0.0)

    def _notice_deletion(self, tracked: Tracked) -> None:
        metadata = tracked.pod.metadata
        if metadata.deletion_timestamp is None or tracked.is_deleted:
            return
        if tracked.is_running and tracked.life is not None:
            now, grace = self._clock.now(), metadata.deletion_grace_period_seconds
            tracked.life.advance(now)
            tracked.life.stop(now, self._timings.stop_seconds if grace is None else grace)
            self._schedule_next(tracked)
        if not tracked.is_running:
            self._schedule(tracked.pod.key, 0.0)

    def _schedule_next(self, tracked: Tracked) -> None:
        """Have a pod looked at when its containers go on."""
        if tracked.life is None:
            return
        due = tracked.life.next_due()
        if due < inf:
            self._schedule(tracked.pod.key, max(due - self._clock.now(), 0.0))


def _is_contradicted(tracked: Tracked, old: KubeletPod) -> bool:
    """Whether somebody says that a pod is not ready, as it was; then it is reported again.

    The node lifecycle controller does when it hears nothing of a node.
    """
    if (old.ready, tracked.pod.ready) != ("True", "False"):
        return False
    if tracked.sent.get("Ready", pod_status.FALSE).status != "True":
        return False
    tracked.sent, tracked.reported = {**tracked.sent, "Ready": pod_status.FALSE}, -1
    return True


def _identity(pod: Object) -> tuple[str, str]:
    """Return uid and key."""
    metadata = pod["metadata"]
    return metadata["uid"], f"{metadata['namespace']}/{metadata['name']}"


def _path(pod: KubeletPod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def _status_patch(
    pod: KubeletPod, status: Object, annotations: Mapping[str, str] = _NOTHING
) -> Patch:
    metadata: Object = {"uid": pod.metadata.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return Patch(f"{_path(pod)}/status", {"metadata": metadata, "status": status}, STRATEGIC_MERGE)
