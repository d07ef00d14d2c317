"""The asynchronous shell of hollow kubelets: one queue, two watches, a few workers."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from berth.cluster.actions import Action, perform
from berth.cluster.delay_queue import DelayQueue
from berth.cluster.events.recorder import EventBroadcaster, EventRecorder
from berth.cluster.kubelet import node_events
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.containers import Containers
from berth.cluster.kubelet.hollow_node import HollowNode, Return
from berth.cluster.kubelet.node_reports import Leases, NodeReports
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.kubelet.pod_events import PodEvents
from berth.cluster.kubelet.pod_lifecycles import PodLifecycles, Timings
from berth.cluster.kubelet.pressure import NodePressure, PodHandler
from berth.cluster.kubelet.stages.plans import plans_by
from berth.cluster.kubelet.stages.types import Stages
from berth.cluster.pods.kubelet import KubeletPod, decode_pod
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.informer.reflector import Reflector
from berth.kube.objects.node import Node, Taint
from berth.kube.objects.taints import NO_SCHEDULE
from berth.runtime.clock import Clock
from berth.runtime.release import RELEASE
from berth.runtime.tasks import forever

log = logging.getLogger(__name__)

WORKERS: Final = 48
"""Requests under way at a time, of all nodes together."""

LEASE_SECONDS: Final = 40
"""How long a node counts as alive after a renewal, as with real kubelets."""

NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect=NO_SCHEDULE)
"""The taint of new nodes, which TaintNodesByCondition gives them."""

Subject = Literal["node", "lease", "pod", "pressure"]


class Due(NamedTuple):
    """Something that is to be looked at."""

    subject: Subject
    name: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Which nodes, and how they behave."""

    pools: Sequence[NodePool] = ()
    """The nodes there are from the beginning."""
    timings: Timings = field(default_factory=Timings)
    lease_seconds: int | None = LEASE_SECONDS
    """Duration of node leases; None: no leases, which spares the API server some writes."""
    stages: Stages = field(default_factory=Stages)
    """How pods live."""
    configuration: KubeletConfiguration = field(default_factory=KubeletConfiguration)
    """Its ``nodeLeaseDurationSeconds`` counts if :attr:`lease_seconds` is the default."""
    features: Collection[str] = ()
    """The feature gates that are on."""
    release: str = RELEASE
    """Of Kubernetes."""

    @property
    def lease_duration(self) -> int | None:
        """Seconds; None: no leases."""
        if self.lease_seconds == LEASE_SECONDS:
            return self.configuration.node_lease_duration_seconds
        return self.lease_seconds


class HollowKubelets:
    """The kubelets of many nodes. :meth:`run` ends only by cancellation.

    ``registered`` is set when the API server knows all nodes, and ``ready`` when controllers have
    found all of them ready: none has the taint with which it was registered.
    """

    def __init__(
        self, client: Api, settings: Settings, *, clock: Clock, rng: random.Random
    ) -> None:
        self.registered = asyncio.Event()
        self.ready = asyncio.Event()
        self._unready: set[str] = set()
        self._client = client
        self._configuration = settings.configuration
        self._features = settings.features
        self._release = settings.release
        self._queue: DelayQueue[Due] = DelayQueue(clock)
        self._ready: HandOver[Due] = HandOver()
        self._nodes: dict[str, HollowNode] = {}
        self._node_count = 0
        """Of all nodes that ever were: the next one's index."""
        self._node_reports = NodeReports(clock=clock)
        self._leases = (
            Leases(seconds=settings.lease_duration, clock=clock, rng=rng)
            if settings.lease_duration is not None
            else None
        )
        self._events = EventBroadcaster(client, clock=clock)
        self._pods = PodLifecycles(
            self._nodes,
            timings=settings.timings,
            clock=clock,
            schedule=self._schedule_pod,
            events=PodEvents(self._recorder_of),
            rng=rng,
            plan_of=plans_by(settings.stages, rng),
        )
        self._pressure = NodePressure(
            self._nodes,
            self._pods,
            settings.configuration,
            clock=clock,
            schedule=self._schedule_pressure,
            report=self._schedule_node,
            recorder_of=self._recorder_of,
        )
        self._node_watch: Reflector[Node] = Reflector(
            client,
            "/api/v1/nodes",
            decode=_decode_node,
            handler=self,
            clock=clock,
            rng=rng,
            on_malformed=_log_malformed,
        )
        self._pod_watch: Reflector[KubeletPod] = Reflector(
            client,
            "/api/v1/pods",
            decode=decode_pod,
            handler=PodHandler(self._pods, self._pressure),
            clock=clock,
            rng=rng,
            on_malformed=_log_malformed,
            params={"fieldSelector": "spec.nodeName!="},
        )
        for pool in settings.pools:
            for name in pool.names():
                self.add_node(pool.template, name)

    @property
    def containers(self) -> Containers:
        """The way to the containers of pods, for an API server in this process."""
        return self._pods

    def add_node(self, template: NodeTemplate, name: str) -> None:
        """Start a machine: its kubelet registers the node *name*, and runs the pods there.

        A Node of that name that exists is taken over, but not the pods that it had when this
        process was running already. Raises ValueError if there is such a machine.
        """
        if name in self._nodes:
            raise ValueError(f"node {name!r}: there is such a machine already")
        template = replace(self._configuration.applied_to(template), release=self._release)
        node = HollowNode(
            name,
            index=self._node_count,
            allocatable=template.allocatable(),
            features=self._features,
        )
        self._node_count += 1
        self._nodes[name] = node
        known = self._node_watch.store.get(name)
        if known is not None:
            node.observe(known)
        if known is None or NOT_READY in known.spec.taints:
            self._unready.add(name)
            self.ready.clear()
        self._node_reports.add(node, template)
        self._queue.add(Due("node", name))

    def remove_node(self, name: str) -> None:
        """Take a machine away, with all that runs on it: nothing is reported of it any more.

        Its Node and its pods stay in the API, for others to delete. Nothing happens if there is no
        such machine.
        """
        if self._nodes.pop(name, None) is None:
            return
        self._unready.discard(name)
        self._notice_ready()
        self._node_reports.remove(name)
        self._pods.forget_node(name)
        self._pressure.forget_node(name)
        for subject in ("node", "lease", "pressure"):
            self._queue.discard(Due(subject, name))
        self._notice_registered()

    async def run(self) -> None:
        self._notice_registered()
        self._notice_ready()
        async with asyncio.TaskGroup() as group:
            tasks = {
                "kubelets watch nodes": self._node_watch.run,
                "kubelets watch pods": self._watch_pods,
                "kubelets queue": self._feed,
                "kubelets events": self._events.run,
                **{f"kubelets worker {number}": self._work for number in range(WORKERS)},
            }
            for name, run in tasks.items():
                group.create_task(forever(name, run), name=name)

    def on_add(self, node: Node) -> None:
        """Take in a Node; with the two methods below, the handler of their watch."""
        hollow = self._nodes.get(node.name)
        if hollow is None:
            return
        if self._unready and NOT_READY not in node.spec.taints:
            self._unready.discard(node.name)
            self._notice_ready()
        returned = hollow.observe(node)
        self._pressure.node_changed(hollow)
        match returned:
            case Return.RESTARTED:
                boot_id = self._node_reports.boot_id(node.name)
                node_events.returned(node.name, self._recorder_of(node.name), boot_id=boot_id)
                self._come_back(hollow, restarted=True)
            case Return.RECONNECTED:
                self._come_back(hollow, restarted=False)
            case None if hollow.failure is None and self._node_reports.is_registered(node.name):
                if self._node_reports.is_wrong(node):
                    self._queue.add(Due("node", node.name))

    def on_update(self, _old: Node, new: Node) -> None:
        self.on_add(new)

    def on_delete(self, node: Node) -> None:
        """Do nothing: kubelets do not notice, and what they knew last stays true for them."""

    def _come_back(self, node: HollowNode, *, restarted: bool) -> None:
        """Have a node work again whose machine or network did not."""
        self._node_reports.returned(node.name)
        self._queue.add(Due("node", node.name))
        if self._leases is not None:
            self._queue.add(Due("lease", node.name))
        self._pods.node_returned(node, restarted=restarted)

    async def _watch_pods(self) -> None:
        await self._node_watch.synced.wait()
        await self._pod_watch.run()

    def _recorder_of(self, node: str) -> EventRecorder:
        return self._events.recorder("kubelet", host=node)

    def _schedule_node(self, name: str) -> None:
        self._queue.add(Due("node", name))

    def _schedule_pressure(self, name: str, delay: float) -> None:
        self._queue.add(Due("pressure", name), delay=delay)

    def _schedule_pod(self, key: str, delay: float) -> None:
        self._queue.add(Due("pod", key), delay=delay)

    async def _feed(self) -> None:
        """Hand what is due to the workers, once it is known how the nodes are."""
        await self._node_watch.synced.wait()
        while True:
            self._ready.put(await self._queue.take())

    async def _work(self) -> None:
        """Report one thing after the other."""
        while True:
            due = await self._ready.take()
            try:
                await self._report(due)
            except Exception:
                # One pod must not stop the nodes.
                log.exception("report failed", extra={"due": due})

    async def _report(self, due: Due) -> None:
        action = self._step(due)
        if action is None:
            return
        try:
            answer = await perform(self._client, action)
        except ApiError as exc:
            log.debug("report refused", extra={"due": due, "error": str(exc)})
            self._finished(due, action, exc, b"")
        else:
            self._finished(due, action, None, answer)

    def _step(self, due: Due) -> Action | None:
        if due.subject == "pressure":
            self._pressure.step(due.name)
            self._note_images(self._nodes.get(due.name))
            return None
        node = None if due.subject == "pod" else self._nodes.get(due.name)
        if node is not None and node.failure is not None:
            if due.subject == "node" and not self._node_reports.is_registered(due.name):
                self._node_reports.skip(due.name)
                self._notice_registered()
            return None
        match due.subject:
            case "pod":
                action = self._pods.step(due.name)
                self._note_images(self._pods.node_of(due.name))
                return action
            case "node":
                return self._node_reports.step(due.name)
            case "lease":
                if self._leases is None or due.name not in self._nodes:
                    return None
                return self._renewal(self._leases, due)

    def _renewal(self, leases: Leases, due: Due) -> Action | None:
        known = self._node_watch.store.get(due.name)
        action = leases.step(due.name, "" if known is None else known.metadata.uid)
        if action is None:
            self._queue.add(due, delay=leases.interval)
        return action

    def _finished(self, due: Due, action: Action, error: ApiError | None, answer: bytes) -> None:
        delay: float | None = None
        slack = 0.0
        match due.subject:
            case "pod":
                self._pods.finished(due.name, action, error, answer)
            case "node":
                was_registered = self._node_reports.is_registered(due.name)
                delay = self._node_reports.finished(due.name, error)
                if error is None and not was_registered:
                    self._start(due.name)
            case "lease" if self._leases is not None:
                delay, slack = self._leases.finished(due.name, error), self._leases.slack
        if delay is not None and (due.subject == "pod" or due.name in self._nodes):
            self._queue.add(due, delay=delay, slack=slack)

    def _note_images(self, node: HollowNode | None) -> None:
        """Have it reported which images have come to a node, or gone."""
        if node is not None and len(node.images) != len(node.reported_images):
            delay = self._configuration.node_status_update_seconds
            self._queue.add(Due("node", node.name), delay=delay)

    def _start(self, name: str) -> None:
        """Note that the API server knows a node."""
        if len(self._nodes) <= node_events.LARGEST_FLEET:
            node_events.registered(name, self._recorder_of(name))
        if self._leases is not None:
            self._queue.add(Due("lease", name), delay=self._leases.first_delay())
        self._notice_registered()

    def _notice_registered(self) -> None:
        if self._node_reports.all_registered:
            self.registered.set()

    def _notice_ready(self) -> None:
        if not self._unready:
            self.ready.set()


_decode_node = msgspec.json.Decoder(Node).decode


def _log_malformed(key: str, _raw: bytes, error: Exception) -> None:
    log.warning("object cannot be read", extra={"object": key, "error": str(error)})


# From one task that finds work to several that do it.


T = TypeVar("T")


class HandOver(Generic[T]):
    """A queue that wakes one taker at a time.

    Where work rarely waits for anything, that taker does all of it, and the others sleep on. An
    :class:`asyncio.Queue` wakes a taker for each item.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._woken: asyncio.Future[None] | None = None
        """The taker that was woken, and has not looked yet."""

    def put(self, items: Iterable[T]) -> None:
        """Have *items* taken, in this order."""
        self._items.extend(items)
        self._wake_one()

    async def take(self) -> T:
        """Return the next item, once there is one."""
        while not self._items:
            await self._sleep()
        item = self._items.popleft()
        self._wake_one()
        return item

    async def _sleep(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter is self._woken:
                self._woken = None
                self._wake_one()
            else:
                self._idle.remove(waiter)
            raise
        self._woken = None

    def _wake_one(self) -> None:
        if not self._items or self._woken is not None:
            return
        for waiter in self._idle:
            if not waiter.done():  # else it is being cancelled
                self._idle.remove(waiter)
                self._woken = waiter
                waiter.set_result(None)
                return
