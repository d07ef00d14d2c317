"""The lives of pods on hollow nodes: taken or rejected, started, ended, stopped. Synchronous.

::

    bound ──admit──▶ STARTING ──▶ RUNNING ──deleted──▶ STOPPING ──▶ gone
      └─────reject──▶ REJECTED       └──────▶ ENDED       ▲
    all others, when deleted ─────────────────────────────┘
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from berth.client.errors import ApiError, ConflictError, InvalidError, NotFoundError
from berth.clock import Clock
from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Patch
from berth.cluster.kubelet import pod_status
from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.completion import Completion, completion_of
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.kubelet_pod import KubeletPod
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of

Schedule = Callable[[str, float], None]
"""Have the pod with that key looked at in so many seconds."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things take on a hollow node, in seconds."""

    start_seconds: float = 0.0
    """From taking a pod to its being ready."""
    stop_seconds: float = 1.0
    """From a pod's deletion to its end; less when its grace period is shorter."""
    retry_seconds: float = 1.0
    """Until a report that failed is sent again."""


class State(Enum):
    STARTING = auto()
    REPORTING = auto()
    RUNNING = auto()
    REJECTED = auto()
    ENDED = auto()
    """Finished, or reported as rejected: it uses nothing."""


@dataclass(slots=True)
class Tracked:
    """A pod on one of our nodes."""

    pod: KubeletPod
    node: HollowNode
    state: State
    pod_ip: str = ""
    rejection: Rejection | None = None
    ends_at: float | None = None
    """Monotonic; None: its containers do not run, or do not end by themselves."""
    end_report: Action | None = None
    """What tells that they have ended, while it is under way."""
    running_since: float = 0.0
    """Unix time of the last start of its containers."""
    restarts: int = 0
    observed: int = 0
    """The generation of the pod that was reported last."""
    ephemeral_since: dict[str, float] = field(default_factory=dict)
    """By name of ephemeral container: the unix time of its start."""
    completion: Completion | None = None
    """How its containers end, if not as the pod says."""
    eviction: Rejection | None = None
    """Why the node ends it, if it does."""
    stop_at: float | None = None
    """Monotonic; None: not being deleted."""
    killed: bool = False
    """Whether it was reported that the deletion has ended its containers."""
    stopped: bool = False
    """Whether its end was reported."""


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
    ) -> None:
        self._nodes = nodes
        self._events = events
        self._timings = timings
        self._clock = clock
        self._schedule = schedule
        self._pods: dict[str, Tracked] = {}
        self._deferred: set[str] = set()
        """Pods that wait for room to be resized."""
        self._unseen: dict[str, KubeletPod] = {}
        """Pods that came or changed while their node did not work, by key."""

    def pods_on(self, node: str) -> list[KubeletPod]:
        """Return the pods that use the node *node*: taken, and not ended."""
        return [
            each.pod
            for each in self._pods.values()
            if each.node.name == node
            and each.rejection is None
            and each.state is not State.ENDED
            and each.eviction is None
        ]

    def evict(self, key: str, *, reason: str, message: str, grace_seconds: float) -> None:
        """Have the node end a pod by its own decision: it fails with *reason* and *message*.

        Its containers get *grace_seconds* at most. Nothing happens to pods that do not run here.
        """
        tracked = self._pods.get(key)
        if tracked is None or tracked.eviction is not None or tracked.rejection is not None:
            return
        if tracked.state is State.ENDED:
            return
        seconds = min(grace_seconds, self._timings.stop_seconds)
        tracked.eviction = Rejection(reason, message)
        tracked.ends_at = self._clock.monotonic() + seconds
        self._events.stopping(tracked.pod)
        self._schedule(key, seconds)

    def kill_container(self, key: str, container: str, *, reason: str, exit_code: int) -> None:
        """End a running container, as the kernel does that has no memory left: ``OOMKilled``, 137.

        The restart policy decides what follows.
        """
        tracked = self._pods.get(key)
        if tracked is None or tracked.state is not State.RUNNING or tracked.eviction is not None:
            return
        restarts = tracked.pod.spec.restart_policy != "Never"
        tracked.completion = Completion(0.0, exit_code, restarts, reason)
        tracked.ends_at = self._clock.monotonic()
        self._schedule(key, 0.0)

    def node_returned(self, node: HollowNode, *, restarted: bool) -> None:
        """Go on with the pods of a node that works again; see to what was missed.

        *restarted*: its containers have ended with the machine.
        """
        if restarted:
            for key, tracked in self._pods.items():
                if tracked.node is node:
                    for name in (each.name for each in tracked.pod.spec.containers):
                        self.kill_container(key, name, reason="Unknown", exit_code=255)
        missed = [key for key, pod in self._unseen.items() if pod.spec.node_name == node.name]
        for pod in [self._unseen.pop(key) for key in missed]:
            known = self._pods.get(pod.key)
            if known is None:
                self.on_add(pod)
            else:
                self.on_update(known.pod, pod)
        for key, tracked in self._pods.items():
            if tracked.node is node:
                self._schedule(key, 0.0)

    def on_add(self, obj: KubeletPod) -> None:
        node = self._nodes.get(obj.spec.node_name)
        if node is None:
            return
        if node.failure is not None:
            self._unseen[obj.key] = obj
            return
        tracked = self._pods[obj.key] = self._meet(obj, node)
        if tracked.state is State.STARTING:
            self._schedule(obj.key, self._timings.start_seconds)
        elif tracked.state is State.REJECTED:
            self._schedule(obj.key, 0.0)
        elif tracked.state is State.RUNNING:
            self._run(tracked)
        self._notice_deletion(tracked)

    def on_update(self, old: KubeletPod, new: KubeletPod) -> None:
        tracked = self._pods.get(new.key)
        if tracked is None:
            self.on_add(new)  # it was not on a node of ours before
            return
        if tracked.node.failure is not None:
            self._unseen[new.key] = new
            return
        tracked.pod = new
        if new.is_terminated:
            tracked.state = State.ENDED
            self._release(tracked)
        self._notice_change(tracked)
        self._notice_deletion(tracked)

    def on_delete(self, obj: KubeletPod) -> None:
        self._unseen.pop(obj.key, None)
        tracked = self._pods.pop(obj.key, None)
        self._deferred.discard(obj.key)
        if tracked is not None:
            self._release(tracked)

    def forget_node(self, name: str) -> None:
        """Drop the pods of a node that is no more; nobody reports their end."""
        gone = [key for key, tracked in self._pods.items() if tracked.node.name == name]
        for key in gone:
            del self._pods[key]
            self._deferred.discard(key)
        for key in [key for key, pod in self._unseen.items() if pod.spec.node_name == name]:
            del self._unseen[key]

    def _release(self, tracked: Tracked) -> None:
        """Give back what a pod used; others may have waited for it."""
        tracked.node.release(tracked.pod.metadata.uid)
        for key in self._deferred:
            waiting = self._pods[key]
            if waiting.node is tracked.node:
                waiting.observed = 0
                self._schedule(key, 0.0)

    def step(self, key: str) -> Action | None:
        """Return what is to be reported of the pod now, if anything."""
        tracked = self._pods.get(key)
        if tracked is None or tracked.node.failure is not None:
            return None
        pod, now = tracked.pod, self._clock.now()
        if tracked.stop_at is not None:
            if tracked.stopped or self._is_early(key, tracked.stop_at):
                return None
            if pod.metadata.finalizers and not pod.is_terminated and not tracked.killed:
                # Who holds it, such as the controller of its Job, waits for a phase that says so.
                tracked.killed = True
                return _report(pod, pod_status.ended(pod, exit_code=pod_status.KILLED, now=now))
            tracked.stopped = True
            return Delete(_path(pod), pod.metadata.uid, grace_seconds=0)
        if tracked.rejection is not None and tracked.state is State.REJECTED:
            tracked.state = State.REPORTING
            self._events.rejected(pod, tracked.rejection)
            return _report(pod, pod_status.rejected(tracked.rejection, now=now))
        if tracked.state is State.STARTING:
            tracked.state = State.REPORTING
            tracked.pod_ip = tracked.pod_ip or tracked.node.next_pod_ip()
            tracked.observed = pod.metadata.generation
            tracked.running_since = now
            status = pod_status.running(pod, tracked.node, pod_ip=tracked.pod_ip, now=now)
            return _report(pod, status)
        return self._end(tracked) or self._follow(tracked)

    def finished(self, key: str, action: Action, error: ApiError | None) -> None:
        """Note how a report ended; what failed is tried again, unless the pod is another now."""
        tracked = self._pods.get(key)
        if tracked is None or isinstance(error, NotFoundError | ConflictError | InvalidError):
            return
        if error is not None:
            tracked.stopped = tracked.killed = False
            tracked.observed = 0
            self._schedule(key, self._timings.retry_seconds)
        elif tracked.killed and not tracked.stopped:
            self._schedule(key, 0.0)
        if isinstance(action, Patch) and tracked.state is State.REPORTING:
            if error is None:
                tracked.state = State.ENDED if tracked.rejection else State.RUNNING
                if tracked.rejection is None:
                    self._events.started(tracked.pod)
                self._run(tracked)
            else:
                tracked.state = State.REJECTED if tracked.rejection else State.STARTING
            self._notice_change(tracked)
        elif action is tracked.end_report and error is None and isinstance(action, Patch):
            tracked.end_report = tracked.ends_at = tracked.completion = None
            if action.body["status"].get("phase"):
                tracked.state = State.ENDED
                self._release(tracked)
            else:
                tracked.restarts += 1
                self._events.started(tracked.pod)
                self._run(tracked)

    def _meet(self, pod: KubeletPod, node: HollowNode) -> Tracked:
        """Return a pod that was not known, evaluated."""
        if pod.is_terminated:
            return Tracked(pod, node, State.ENDED)
        if pod.status.phase == "Running":  # from before we were started
            node.take(pod)
            node.has_pod_ip(pod.status.pod_ip)
            since = pod.status.start_time
            return Tracked(
                pod,
                node,
                State.RUNNING,
                observed=pod.metadata.generation,
                running_since=self._clock.now() if since is None else seconds_of(since),
            )
        rejection = node.admit(pod)
        state = State.REJECTED if rejection else State.STARTING
        return Tracked(pod, node, state, rejection=rejection)

    def _is_early(self, key: str, time: float) -> bool:
        """Whether *time* is still to come; then the pod is looked at again.

        Who drives us knows one time for a pod, and it was another.
        """
        seconds = time - self._clock.monotonic()
        if seconds > 0:
            self._schedule(key, seconds)
        return seconds > 0

    def _run(self, tracked: Tracked) -> None:
        """Have the end of containers that run looked at when it comes."""
        completion = completion_of(tracked.pod)
        if tracked.state is State.RUNNING and completion is not None:
            tracked.running_since = self._clock.now()
            tracked.ends_at = self._clock.monotonic() + completion.seconds
            self._schedule(tracked.pod.key, completion.seconds)

    def _end(self, tracked: Tracked) -> Action | None:
        """Return the report that the containers have ended, if they have."""
        pod, completion = tracked.pod, tracked.completion or completion_of(tracked.pod)
        if tracked.ends_at is None or tracked.state is State.ENDED:
            return None
        if self._is_early(pod.key, tracked.ends_at):
            return None
        now = self._clock.now()
        if tracked.eviction is not None:
            status = pod_status.evicted(pod, tracked.eviction, restarts=tracked.restarts, now=now)
            tracked.end_report = _report(pod, status)
            return tracked.end_report
        if tracked.state is not State.RUNNING or completion is None:
            return None
        exit_code = completion.exit_code
        if not completion.restarts:
            status = pod_status.ended(
                pod,
                exit_code=exit_code,
                reason=completion.reason,
                restarts=tracked.restarts,
                now=now,
            )
            tracked.end_report = _report(pod, status)
            return tracked.end_report
        since, restarts = tracked.running_since, tracked.restarts + 1
        status = pod_status.restarted(
            pod,
            exit_code=exit_code,
            reason=completion.reason,
            restarts=restarts,
            since=since,
            now=now,
        )
        tracked.end_report = _report(pod, status)
        return tracked.end_report

    def _notice_change(self, tracked: Tracked) -> None:
        """Have a pod that runs looked at when its spec has changed."""
        if tracked.state is State.RUNNING and tracked.pod.metadata.generation > tracked.observed:
            self._schedule(tracked.pod.key, 0.0)

    def _follow(self, tracked: Tracked) -> Action | None:
        """Return the report that the spec of a pod that runs has changed, if it has."""
        pod, now = tracked.pod, self._clock.now()
        if tracked.state is not State.RUNNING or tracked.observed >= pod.metadata.generation:
            return None
        tracked.observed = pod.metadata.generation
        resize = tracked.node.resize(pod)
        if resize is not None and resize.reason == "Deferred":
            self._deferred.add(pod.key)
        else:
            self._deferred.discard(pod.key)
        for each in pod.spec.ephemeral_containers:
            tracked.ephemeral_since.setdefault(each.name, now)
        status = pod_status.changed(
            pod,
            restarts=tracked.restarts,
            since=tracked.running_since,
            ephemeral_since=tracked.ephemeral_since,
            resize=resize,
            now=now,
        )
        return _report(pod, status)

    def _notice_deletion(self, tracked: Tracked) -> None:
        metadata = tracked.pod.metadata
        if metadata.deletion_timestamp is None:
            return
        seconds = 0.0
        if tracked.state in (State.RUNNING, State.REPORTING):
            grace = metadata.deletion_grace_period_seconds
            seconds = self._timings.stop_seconds if grace is None else float(grace)
            seconds = min(seconds, self._timings.stop_seconds)
            if tracked.stop_at is None:
                self._events.stopping(tracked.pod)
        stop_at = self._clock.monotonic() + seconds
        if tracked.stop_at is None or stop_at < tracked.stop_at:
            tracked.stop_at = stop_at
            self._schedule(tracked.pod.key, seconds)


def _path(pod: KubeletPod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def _report(pod: KubeletPod, status: Object) -> Patch:
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return Patch(f"{_path(pod)}/status", body, STRATEGIC_MERGE)
