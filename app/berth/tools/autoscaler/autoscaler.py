"""The asynchronous shell of the autoscaler: looks at the cluster, plans, and carries it out."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import msgspec

from berth.cluster.actions import MERGE
from berth.cluster.delay_queue import DelayQueue
from berth.cluster.events.correlator import Reference, Type
from berth.cluster.events.recorder import EventBroadcaster, EventRecorder
from berth.insight.whatif.daemons import DAEMON_SETS_PATH
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, NotFoundError
from berth.kube.informer.reflector import Reflector
from berth.kube.objects.meta import ListHead
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.errors import UserError
from berth.runtime.tasks import forever
from berth.scheduler.profile.build import Registry
from berth.tools.autoscaler import status
from berth.tools.autoscaler.actions import Action, MarkUnneeded, NotTriggered, RemoveNode, ScaleUp
from berth.tools.autoscaler.backoff import Backoffs
from berth.tools.autoscaler.cloud import Cloud, Failure
from berth.tools.autoscaler.cluster_view import ClusterView, DrainPod, decode_drain_pod, node_state
from berth.tools.autoscaler.drain import Drainer, DrainError, reference
from berth.tools.autoscaler.drainability import pods_to_evict
from berth.tools.autoscaler.node_groups import GROUP_LABEL, NodeGroups, group_of
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.planning_thread import Beside, PlanningThread
from berth.tools.autoscaler.scale_down import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    Removals,
    ScaleDownPlanner,
)
from berth.tools.autoscaler.scale_up import GroupState, ScaleUpPlan, ScaleUpPlanner
from berth.tools.autoscaler.simulation import Simulation
from berth.tools.autoscaler.status import StatusWriter

log = logging.getLogger(__name__)

COMPONENT: Final = "cluster-autoscaler"
NODES: Final = "/api/v1/nodes"
REPEAT_SECONDS: Final = 300.0
"""After which a pod is told again why no group helps it."""
TIMED_OUT: Final = "timeout"


@dataclass(frozen=True, slots=True)
class GroupSize:
    """How large a group is, for people."""

    name: str
    nodes: int
    upcoming: int
    max_size: int

    def __str__(self) -> str:
        coming = f" (+{self.upcoming} coming)" if self.upcoming else ""
        return f"{self.name} {self.nodes}/{self.max_size}{coming}"


class ClusterAutoscaler:
    """Scales the node groups of one cluster. :meth:`run` ends only by cancellation."""

    def __init__(
        self,
        client: Api,
        groups: NodeGroups,
        cloud: Cloud,
        *,
        take_snapshot: Callable[[], Snapshot],
        plugins: Callable[[], Registry],
        clock: Clock,
        rng: random.Random,
        beside: Beside | None = None,
    ) -> None:
        """*take_snapshot* returns the cluster of now, *plugins* those that its scheduler may run.

        The *cloud* has the machines of *groups*. Plans are made *beside* the event loop, by default
        in a thread.
        """
        self._beside = beside or PlanningThread()
        self._client = client
        self._groups, self._options, self._cloud = groups.groups, groups.options, cloud
        self._take_snapshot = take_snapshot
        self._clock = clock
        self._rng = rng
        self._broadcaster = EventBroadcaster(client, clock=clock)
        self._events = self._broadcaster.recorder(COMPONENT)
        self._status_events = StatusEvents(client, self._events, clock=clock)
        simulation = Simulation(plugins, self._beside.goes_on)
        self._planner = Planner(self._options, simulation, rng=random.Random(rng.random()))
        self._backoffs = Backoffs(self._options)
        self._status = StatusWriter()
        self._pods: Reflector[DrainPod] = Reflector(
            client,
            "/api/v1/pods",
            decode=decode_drain_pod,
            handler=_Ignore(),
            clock=clock,
            rng=rng,
            on_malformed=lambda key, _raw, error: log.warning(
                "pod cannot be read", extra={"pod": key, "error": str(error)}
            ),
        )
        self._drainer = Drainer(
            client, self._options, events=self._events, grace_period=self._grace, clock=clock
        )
        self._due: DelayQueue[str] = DelayQueue(clock)
        """Machines that come."""
        self._growing: set[str] = set()
        """Groups that machines are to come for."""
        self._told: dict[str, tuple[str, float]] = {}
        """By pod, why no group helps it, and when that was last told."""
        self._pending: frozenset[str] | None = None
        """The pods that the last scan did not find room for; None: there was none yet."""
        self._upcoming: dict[str, int] = {}

    async def restore(self) -> None:
        """Start the machines that the cluster begins with, those of its nodes included.

        To be called before the kubelets run, and before :meth:`run`.
        """
        nodes = await self._list_nodes()
        known = [(node.name, group_of(node.labels)) for node in nodes]
        self._cloud.start_at(self._clock.monotonic(), nodes=known)

    def settled_for(self, waiting: Sequence[str]) -> bool:
        """Whether it has nothing to do for the pods *waiting*, which are unschedulable."""
        if self._pending is None or any(self._upcoming.values()):
            return False
        return not self._planner.removals.in_progress and self._pending >= set(waiting)

    def sizes(self) -> list[GroupSize]:
        """Return how large each group is."""
        sizes = []
        for group in self._groups:
            upcoming = self._upcoming.get(group.name, 0)
            size = self._cloud.target_size(group.name)
            sizes.append(GroupSize(group.name, size - upcoming, upcoming, group.max_size))
        return sizes

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("autoscaler watches pods", self._pods.run),
                ("autoscaler events", self._broadcaster.run),
                ("autoscaler machines", self._start_machines),
                ("autoscaler", lambda: self._scan_for_ever(tasks)),
            ):
                tasks.create_task(forever(name, run), name=name)

    async def _scan_for_ever(self, tasks: asyncio.TaskGroup) -> None:
        await self._pods.synced.wait()
        await self._status_events.begin()
        await self._clean_taints()
        while True:
            try:
                await self._scan(tasks)
            except (ApiError, UserError) as exc:
                log.warning("scan failed", extra={"error": str(exc)})
            await self._clock.sleep(self._options.scan_interval.seconds)

    async def _scan(self, tasks: asyncio.TaskGroup) -> None:
        monotonic, now = self._clock.monotonic(), self._clock.now()
        snapshot = self._take_snapshot()
        if not snapshot.daemon_sets:
            body = await self._client.request("GET", DAEMON_SETS_PATH)
            daemon_sets = decode(body, source=DAEMON_SETS_PATH).daemon_sets
            snapshot = replace(snapshot, daemon_sets=daemon_sets)
        view = ClusterView(snapshot, self._pods.store)
        self._note_registered(view, monotonic)
        groups = self._group_states(view, monotonic)
        plan = await self._beside.run(
            partial(self._planner.plan, view, groups, monotonic=monotonic, now=now)
        )
        current = ClusterView(self._take_snapshot(), self._pods.store)
        actions = still_valid(
            plan.actions, planned=view, now=current, target_size=self._cloud.target_size
        )
        self._carry_out(actions, view, tasks, self._clock.monotonic())
        for action in actions:
            if isinstance(action, MarkUnneeded):
                await self._mark(action)
        groups = self._group_states(view, self._clock.monotonic())
        self._pending = frozenset(plan.scale_up.pending)
        text = self._status.text(
            view,
            groups,
            unneeded=self._planner.scale_down.unneeded_since,
            being_deleted=self._planner.removals.in_progress,
            pending=bool(plan.scale_up.pending),
            now=now,
        )
        await self._status_events.write(text)

    def _note_registered(self, view: ClusterView, now: float) -> None:
        """Note which machines are nodes, and give up those that are none for too long."""
        longest = self._options.max_node_provision_time.seconds
        late: dict[str, list[str]] = {}
        for instance in list(self._cloud.instances.values()):
            if instance.name in view.nodes:
                instance.unregistered_since, instance.was_registered = now, True
            elif now - instance.unregistered_since > longest:
                self._cloud.delete(instance.name)
                if not instance.was_registered:
                    late.setdefault(instance.group, []).append(instance.name)
        for group, names in late.items():
            took = self._options.max_node_provision_time
            message = f"Nodes added to group {group} failed to register within {took}"
            self._status_events.record("ScaleUpTimedOut", message, type="Warning")
            self._fail(Failure(group, tuple(names), TIMED_OUT, message))

    def _group_states(self, view: ClusterView, now: float) -> list[GroupState]:
        states = []
        for group in self._groups:
            instances = self._cloud.of_group(group.name)
            upcoming = sum(instance.name not in view.nodes for instance in instances)
            self._upcoming[group.name] = upcoming
            if group.name in self._growing and not upcoming:
                self._growing.discard(group.name)
                self._backoffs.succeed(group.name)
            backoff = self._backoffs.of(group.name, now=now)
            states.append(GroupState(group, len(instances), upcoming, backoff))
        return states

    def _carry_out(
        self, actions: Sequence[Action], view: ClusterView, tasks: asyncio.TaskGroup, now: float
    ) -> None:
        unhelped = [action for action in actions if isinstance(action, NotTriggered)]
        self._told = {action.pod: self._told.get(action.pod, ("", 0.0)) for action in unhelped}
        for action in actions:
            match action:
                case ScaleUp():
                    self._scale_up(action, view, now)
                case NotTriggered(pod, why):
                    self._tell(view.pods[pod], why, now)
                case RemoveNode():
                    self._planner.removals.in_progress[action.node] = action
                    name = f"remove node {action.node}"
                    tasks.create_task(self._remove(action, view.nodes[action.node]), name=name)

    def _scale_up(self, action: ScaleUp, view: ClusterView, now: float) -> None:
        sizes = f"{action.new_size} instead of {action.current_size} (max: {action.max_size})"
        message = f"Scale-up: setting group {action.group} size to {sizes}"
        self._status_events.record("ScaledUpGroup", message)
        self._cloud.increase_size(action.group, action.delta, now=now)
        due = self._cloud.next_due()
        if due is not None:
            self._due.add("machines", delay=due - now)
        self._growing.add(action.group)
        self._planner.removals.last_scale_up = now
        message = f"Scale-up: group {action.group} size set to {sizes}"
        self._status_events.record("ScaledUpGroup", message)
        log.info("scale-up", extra={"group": action.group, "size": action.new_size})
        for key in action.pods:
            message = f"pod triggered scale-up: [{action}]"
            self._events.event(
                reference(view.pods[key]), reason="TriggeredScaleUp", message=message
            )

    def _tell(self, pod: Pod, why: str, now: float) -> None:
        told, at = self._told[pod.key]
        if told == why and now - at < REPEAT_SECONDS:
            return
        self._told[pod.key] = (why, now)
        message = f"pod didn't trigger scale-up: {why}"
        self._events.event(reference(pod), reason="NotTriggerScaleUp", message=message)

    async def _start_machines(self) -> None:
        """Start machines when their time has come; those that do not come make their group rest."""
        while True:
            await self._due.take()
            for failure in self._cloud.advance(self._clock.monotonic()):
                message = f"Scale-up failed for group {failure.group}: {failure.message}"
                self._status_events.record("FailedToScaleUpGroup", message, type="Warning")
                self._fail(failure)
            due = self._cloud.next_due()
            if due is not None:
                self._due.add("machines", delay=due - self._clock.monotonic())

    def _fail(self, failure: Failure) -> None:
        self._growing.discard(failure.group)
        self._backoffs.fail(
            failure.group,
            code=failure.code,
            message=failure.message,
            now=self._clock.monotonic(),
        )
        log.warning("machines do not come", extra={"group": failure.group})

    async def _remove(self, removal: RemoveNode, node: Node) -> None:
        """Drain and delete one node; if that does not work, it is a node like any other again."""
        about = _reference(node)
        try:
            await self._drain_and_delete(removal, about)
        except (ApiError, DrainError) as exc:
            self._planner.removals.last_failure = self._clock.monotonic()
            what = "delete empty" if removal.is_empty else "drain"
            message = f"failed to {what} node: {exc}"
            self._events.event(about, type="Warning", reason="ScaleDownFailed", message=message)
            log.warning("scale-down failed", extra={"node": removal.node, "error": str(exc)})
            await self._clean(removal.node)
        finally:
            self._planner.removals.in_progress.pop(removal.node, None)

    async def _drain_and_delete(self, removal: RemoveNode, about: Reference) -> None:
        name, use = removal.node, removal.utilization
        await self._drainer.taint(
            name, TO_BE_DELETED, effect="NoSchedule", value=str(int(self._clock.now()))
        )
        message = "marked the node as toBeDeleted/unschedulable"
        self._events.event(about, reason="ScaleDown", message=message)
        if removal.is_empty:
            message = f'Scale-down: removing empty node "{name}"'
            self._status_events.record("ScaleDownEmpty", message)
        else:
            pods = ",".join(pod.metadata.name for pod in removal.pods)
            told = f"{{{use.cpu:g} {use.memory:g} {use.resource} {use.share:g}}}"
            message = (
                f"Scale-down: removing node {name}, utilization: {told}, pods to reschedule: {pods}"
            )
            self._status_events.record("ScaleDown", message)
        if removal.is_empty:
            await self._check_empty(name)
        await self._drainer.drain(removal)
        self._cloud.delete(name)
        self._planner.removals.last_delete = self._clock.monotonic()
        message = "node removed by cluster autoscaler"
        self._events.event(about, reason="ScaleDown", message=message)
        with suppress(NotFoundError):
            await self._client.request("DELETE", f"{NODES}/{name}")
        log.info("scale-down", extra={"node": name, "group": removal.group})

    async def _check_empty(self, node: str) -> None:
        """Raise DrainError if pods came to *node* before it had its taint."""
        view = ClusterView(self._take_snapshot(), self._pods.store)
        now = self._clock.now()
        if pods_to_evict(view, node, now=now)[0]:
            raise DrainError(f'failed to delete empty node "{node}", new pods scheduled')

    async def _mark(self, action: MarkUnneeded) -> None:
        try:
            if action.unneeded:
                value = str(int(self._clock.now()))
                await self._drainer.taint(
                    action.node, DELETION_CANDIDATE, effect="PreferNoSchedule", value=value
                )
            else:
                await self._drainer.untaint(action.node, DELETION_CANDIDATE)
        except ApiError as exc:
            log.debug("soft taint refused", extra={"node": action.node, "error": str(exc)})

    async def _clean_taints(self) -> None:
        """Take the taints from nodes that another process was about to remove."""
        for node in await self._list_nodes():
            if any(taint.key in (TO_BE_DELETED, DELETION_CANDIDATE) for taint in node.spec.taints):
                await self._clean(node.name)

    async def _clean(self, node: str) -> None:
        try:
            await self._drainer.clean(node)
        except ApiError as exc:
            log.warning("taints stay", extra={"node": node, "error": str(exc)})

    async def _list_nodes(self) -> list[Node]:
        body = await self._client.request("GET", NODES, params={"labelSelector": GROUP_LABEL})
        head = msgspec.json.decode(body, type=ListHead)
        return [msgspec.json.decode(item, type=Node) for item in head.items]

    def _grace(self, pod: Pod) -> int | None:
        current = self._pods.store.get(pod.key)
        return current.spec.termination_grace_period_seconds if current is not None else None


class _Ignore:
    """Follows no changes: only the store is read."""

    def on_add(self, obj: object) -> None: ...

    def on_update(self, old: object, new: object) -> None: ...

    def on_delete(self, obj: object) -> None: ...


def _reference(node: Node) -> Reference:
    meta = node.metadata
    return Reference("v1", "Node", "", meta.name, meta.uid, meta.resource_version)


# The ConfigMap with the status, and the events about it: what the autoscaler did as a whole.


_PATH = f"/api/v1/namespaces/{status.NAMESPACE}/configmaps"


class StatusEvents:
    """Writes the ConfigMap, and records events about it once it is there."""

    def __init__(self, client: Api, events: EventRecorder, *, clock: Clock) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        self._uid = ""

    async def begin(self) -> None:
        """Write that nothing is known yet."""
        await self.write(status.initializing(self._clock.now()))

    async def write(self, text: str) -> None:
        """Write the status *text*; what goes wrong is logged."""
        body = status.config_map(text, now=self._clock.now())
        try:
            written = await self._write(msgspec.json.encode(body))
        except ApiError as exc:
            log.warning("status cannot be written", extra={"error": str(exc)})
        else:
            self._uid = msgspec.json.decode(written)["metadata"]["uid"]

    def record(self, reason: str, message: str, *, type: Type = "Normal") -> None:
        about = Reference("v1", "ConfigMap", status.NAMESPACE, status.CONFIG_MAP, self._uid)
        self._events.event(about, type=type, reason=reason, message=message)

    async def _write(self, body: bytes) -> bytes:
        path = f"{_PATH}/{status.CONFIG_MAP}"
        try:
            return await self._client.request("PATCH", path, body=body, content_type=MERGE)
        except NotFoundError:
            return await self._client.request("POST", _PATH, body=body)


# One scan: what is seen, and what is to be done. Synchronous, without an API.


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan comes to."""

    actions: Sequence[Action]
    scale_up: ScaleUpPlan = field(default_factory=ScaleUpPlan)


class Planner:
    """Plans scan after scan. It decides; what was done it is told by *removals*."""

    def __init__(
        self, options: AutoscalingOptions, simulation: Simulation, *, rng: random.Random
    ) -> None:
        self.removals = Removals()
        self.scale_up = ScaleUpPlanner(options, simulation, rng)
        self.scale_down = ScaleDownPlanner(options, simulation)

    def plan(
        self, view: ClusterView, groups: Sequence[GroupState], *, monotonic: float, now: float
    ) -> Plan:
        """Return what is to be done: nodes are added, or else those nobody needs are removed.

        *now* is in seconds since 1970. Raises UserError if a what-if question cannot be asked.
        """
        # They go on meanwhile; a dictionary is copied in one go.
        removals = replace(self.removals, in_progress=dict(self.removals.in_progress))
        leaving = removals.in_progress.keys() & view.nodes.keys()
        up = self.scale_up.plan(view, groups, leaving=leaving, now=now)
        self.scale_down.update(view, groups, removals, monotonic=monotonic, now=now)
        down = self.scale_down.plan(view, groups, removals, monotonic=monotonic, now=now)
        if any(isinstance(action, ScaleUp) for action in up.actions):
            down = [action for action in down if isinstance(action, MarkUnneeded)]
        return Plan([*up.actions, *down], up)


# The part of a plan that still holds when it is made: the cluster has gone on meanwhile.


def still_valid(
    actions: Iterable[Action],
    *,
    planned: ClusterView,
    now: ClusterView,
    target_size: Callable[[str], int],
) -> list[Action]:
    """Return those of *actions* that still hold; what is dropped is for the next scan.

    A group grows if its size is what the plan began with, and a pod that it is for still waits. A
    node goes if it is as it was, with the same pods; if they have to move, also no pod has come
    that waits, as it would want the same room.
    """
    return [action for action in actions if _holds(action, planned, now, target_size)]


def _holds(
    action: Action, planned: ClusterView, now: ClusterView, target_size: Callable[[str], int]
) -> bool:
    match action:
        case ScaleUp():
            waits = any(_waits(now, key) for key in action.pods)
            return waits and target_size(action.group) == action.current_size
        case NotTriggered():
            return _waits(now, action.pod)
        case RemoveNode():
            is_same = _node(now, action.node) == _node(planned, action.node)
            return is_same and (action.is_empty or _waiting(now) <= _waiting(planned))
        case MarkUnneeded():
            return action.node in now.nodes


def _waits(view: ClusterView, key: str) -> bool:
    pod = view.pods.get(key)
    return pod is not None and not pod.spec.node_name


def _waiting(view: ClusterView) -> set[str]:
    return {pod.metadata.uid for pod in view.pods.values() if not pod.spec.node_name}


def _node(view: ClusterView, name: str) -> object:
    """Return what is to be the same of a node, None if it is gone."""
    node = view.nodes.get(name)
    pods = frozenset(pod.metadata.uid for pod in view.pods_on.get(name, ()))
    return None if node is None else (node_state(node), pods)
