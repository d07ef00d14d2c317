"""Places pods on a cluster that might be: has the scheduler try whoever waits there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from berth.insight.explain.groups.explainer import PodGroupExplainer
from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.whatif.answer import Victim
from berth.insight.whatif.course import Course, CutShortError
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, group_of
from berth.runtime.tasks import at_once
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.core.view import view_of
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.sub_queues import SubQueue
from berth.scheduler.schedule_pod import smallest_name


@dataclass(slots=True)
class Placed:
    """What became of the pods."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Node by key of the pod."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Why the others have none: the text of the FailedScheduling event, or what gates them."""
    victims: list[Victim] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Who was not tried, because the time was over."""
    evicted: dict[str, Pod] = field(default_factory=dict)
    """The victims as they were, by key."""
    groups: dict[GroupKey, PodGroupExplanation] = field(default_factory=dict)
    """Why pod groups are where they are, or wait; empty unless that was asked for."""


class Placing:
    """A scheduler on one cluster; places pods on it, and can take them back."""

    def __init__(
        self, cluster: SimulatedCluster, *, seed: int | None, course: Course | None = None
    ) -> None:
        self.cluster = cluster
        self.course = course or Course()
        self._seed = seed or 0

    @classmethod
    def on_empty_cluster(
        cls,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        *,
        seed: int | None,
        preempts: bool,
        now: float,
        listers: type[Listers],
        course: Course | None = None,
        shares_answers: bool = True,
    ) -> "Placing":
        """Make the scheduler of *config* and a cluster for it; ConfigError when that cannot be.

        Of several best nodes one is drawn by *seed*; without, it is the one of the smallest name.
        *now* is when the simulation begins, in seconds since 1970. Pods are tried while
        *course* goes on. *shares_answers* as in :class:`SimulationOptions`.
        """
        course = course or Course()
        select = smallest_name if seed is None else None
        options = SimulationOptions(
            preempts=preempts,
            select=select,
            start=now,
            shares_answers=shares_answers,
            goes_on=course.goes_on,
        )
        cluster = SimulatedCluster(config, registry, options, listers=listers)
        return cls(cluster, seed=seed, course=course)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self.cluster.profiles

    async def place_anew(self, pods: Iterable[PodInfo]) -> Placed:
        """Have *pods* wait in this order as if they had just been created, and place them."""
        asked = list(pods)
        for pod in asked:
            self.cluster.wait_anew(pod.pod)
        return await self.place(asked)

    async def place(self, pods: Iterable[PodInfo], *, explains: bool = False) -> Placed:
        """Let the scheduler work, and return what became of *pods*, which wait.

        If it *explains*, also what became of their groups. Afterwards nobody waits any more; who
        has no node leaves no trace but a nomination. Raises CutShortError if the time is over; but
        in the first stages, those are told who were not tried.
        """
        cluster = self.cluster
        cluster.rng.seed(self._seed)
        before, evicted = len(cluster.bound), len(cluster.victims)
        await cluster.run_until_quiet()
        placed = Placed()
        for bound in cluster.bound[before:]:
            placed.nodes[bound.pod.key] = bound.pod.node_name
        for victim in cluster.victims[evicted:]:
            if placed.nodes.pop(victim.pod.key, None) is not None:
                placed.refusals[victim.pod.key] = f"evicted for {victim.preemptor.key}"
            placed.evicted[victim.pod.key] = victim.pod.pod
            placed.victims.append(
                Victim(
                    pod=victim.pod.key,
                    node=victim.node,
                    priority=victim.pod.priority,
                    preemptor=victim.preemptor.key,
                )
            )
        asked = list(pods)
        if explains:
            placed.groups = dict(self._groups_of(asked))
        for pod in asked:
            if pod.key in placed.nodes or pod.key in placed.refusals:
                continue
            refusal = self._refusal(pod.key)
            if refusal is None and self.course.is_cut:
                placed.undecided.append(pod.key)
            else:
                placed.refusals[pod.key] = refusal or "not tried"
        cluster.put_aside_waiting()
        if self.course.is_cut and self.course.stage not in ("placing", "comparing"):
            raise CutShortError
        return placed

    def _groups_of(self, pods: Iterable[PodInfo]) -> Iterator[tuple[GroupKey, PodGroupExplanation]]:
        explainer = PodGroupExplainer(view_of(self.cluster.core))
        known = (self.cluster.pods.get(pod.key) for pod in pods)
        for key in dict.fromkeys(group_of(pod) for pod in known if pod is not None):
            if key is None:
                continue
            explanation = at_once(explainer.explaining(key, limit=0))
            if explanation is not None:
                yield key, explanation

    def take_back(self) -> None:
        """Undo all that was placed; not what was evicted."""
        self.cluster.undo_binds()

    def keep(self) -> None:
        """Let all be that was placed; what is placed from now on can be taken back."""
        self.cluster.bound.clear()

    def _refusal(self, key: str) -> str | None:
        """Return why a pod has no node; None if it was not tried."""
        queue = self.cluster.core.queue.sub_queues
        if queue.place_of(key) is SubQueue.GATED:
            queued = queue.get(key)
            assert queued is not None, key
            gates = self.profiles[queued.pod.spec.scheduler_name].pre_enqueue
            answers = (gate.pre_enqueue(queued.pod_info) for gate in gates)
            status = next(filter(None, answers), None)
            return f"not tried: {status.message if status else queued.gating_plugin}"
        condition = self.cluster.api.conditions.get(key)
        return condition.message if condition else None


def created(pod: PodInfo) -> float:
    """Return when *pod* was created, in seconds since 1970; infinity if that is not known."""
    written = pod.pod.metadata.creation_timestamp
    if not written:
        return float("inf")
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return float("inf")
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
