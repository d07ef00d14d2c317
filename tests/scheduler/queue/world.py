"""A queue with a clock that stands still, a gate to open and close, and an API server's pods."""

from collections.abc import Collection, Sequence

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.runtime.release import RELEASE
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.events import ClusterEvent, ClusterEventWithHint, QueueingHintFn
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.queue.backoff import DEFAULT_BACKOFF, Backoff
from berth.scheduler.queue.failure_cache import CachedFailure
from berth.scheduler.queue.hints import Registration
from berth.scheduler.queue.scheduling_queue import QueueBehaviour, SchedulingQueue

PROFILE = "default-scheduler"
START = 1000.0


def priority_sort(queued: QueuedPodInfo) -> tuple[int, float]:
    return (-queued.pod_info.priority, queued.timestamp)


def listens(plugin: str, event: ClusterEvent, hint: QueueingHintFn | None = None) -> Registration:
    return plugin, ClusterEventWithHint(event, hint)


class Gate(PreEnqueuePlugin):
    """Refuses the pods whose names it is given, and remembers whom it was asked about."""

    NAME = "Gate"

    def __init__(self) -> None:
        super().__init__()
        self.closed_for: set[str] = set()
        self.asked: list[str] = []

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.asked.append(pod.name)
        return Status.unresolvable("closed") if pod.name in self.closed_for else None


class OtherGate(Gate):
    NAME = "OtherGate"


class World:
    """The queue under test and all it depends on; one profile."""

    def __init__(
        self,
        *hints: Registration,
        gates: Sequence[PreEnqueuePlugin] = (),
        by_signature: bool = False,
        by_volumes: Collection[str] = (),
        backoff: Backoff = DEFAULT_BACKOFF,
        release: str = RELEASE,
    ) -> None:
        """*by_signature*: so the plugins decide; those *by_volumes* look at volumes, too."""
        self.clock = FakeClock(START)
        self.pods: dict[str, Pod] = {}
        self.hints_called: list[tuple[str, str, str]] = []
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=priority_sort,
            pre_enqueue={PROFILE: gates},
            hints={PROFILE: hints},
            pod_lookup=self.pods.get,
            observe_hint=lambda plugin, event, outcome, _: self.hints_called.append(
                (plugin, event, outcome)
            ),
            signature_profiles={PROFILE: by_volumes} if by_signature else {},
            backoff=backoff,
            behaviour=QueueBehaviour.of(Features.of(release=release)),
        )

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
            self.queue.add(pod)

    def update(self, new: Pod) -> None:
        old = self.pods[new.key]
        self.pods[new.key] = new
        self.queue.update(old, new)

    def pop(self) -> QueuedPodInfo:
        queued = self.queue.pop()
        assert queued is not None, "nothing to pop"
        return queued

    def pop_names(self) -> list[str]:
        """Pop and finish all that the queue gives out."""
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod.metadata.name)
            self.queue.done(queued.uid)
        return names

    def give_back(
        self,
        queued: QueuedPodInfo,
        *rejectors: str,
        pending: Sequence[str] = (),
        cached_failure: CachedFailure | None = None,
    ) -> bool:
        """Do what the failure handler does, with the pod as the API server has it."""
        queued.unschedulable_plugins = set(rejectors)
        queued.pending_plugins = set(pending)
        queued.pod_info = PodInfo(self.pods[queued.key])
        return self.queue.add_unschedulable_if_not_present(queued, cached_failure=cached_failure)

    def reject(
        self,
        pod: Pod,
        *rejectors: str,
        pending: Sequence[str] = (),
        cached_failure: CachedFailure | None = None,
    ) -> QueuedPodInfo:
        """Add *pod*, try it, and let the plugins reject it; no plugins: the attempt breaks."""
        self.add(pod)
        queued = self.pop()
        assert queued.key == pod.key, f"{queued.key} came first"
        self.give_back(queued, *rejectors, pending=pending, cached_failure=cached_failure)
        return queued

    def places(self) -> dict[str, str]:
        """Return the name of each waiting pod and where it is."""
        found = {}
        for key, pod in self.pods.items():
            where = self.queue.sub_queues.place_of(key)
            if where is not None:
                found[pod.metadata.name] = where.value
        return found
