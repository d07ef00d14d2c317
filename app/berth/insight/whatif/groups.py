"""Pod groups in answers, which are placed as one unit."""

from collections import Counter
from collections.abc import Iterator

from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.groups.summary import reasons_in_words
from berth.insight.whatif.answer import PodGroupOutcome
from berth.insight.whatif.placing import Placed
from berth.insight.whatif.world import World
from berth.kube.objects.pod_group import GroupKey, group_of
from berth.scheduler.framework.pod_info import PodInfo

GATE_OFF = (
    "pods that name a pod group are placed one by one: the feature gate GenericWorkload is off"
)


def notes_on_groups(world: World) -> Iterator[str]:
    """Yield what there is to say about groups that are not scheduled as such."""
    if world.cluster.core.scheduler.groups is not None:
        return
    if any(pod.pod.spec.scheduling_group is not None for pod in world.waiting):
        yield GATE_OFF


def group_outcomes(world: World, placed: Placed) -> tuple[PodGroupOutcome, ...]:
    """Return what became of each group that *placed* explains, by name."""
    pods = world.cluster.pods
    counts = Counter(group_of(pods[key]) for key in placed.nodes if key in pods)
    outcomes = (
        _outcome(world, key, found, placed=counts[key]) for key, found in placed.groups.items()
    )
    return tuple(sorted(outcomes, key=lambda each: each.pod_group))


def _outcome(
    world: World, key: GroupKey, found: PodGroupExplanation, *, placed: int
) -> PodGroupOutcome:
    groups = world.cluster.core.scheduler.groups
    state = groups.pod_groups.get(key) if groups is not None else None
    scheduled = list(state.scheduled.values()) if state is not None else []
    is_complete = len(scheduled) == found.num_pods
    return PodGroupOutcome(
        pod_group=found.pod_group,
        min_count=found.min_count,
        placed=placed,
        starts=found.exists and len(scheduled) >= (found.min_count or 1),
        topology=_domain(world, found.topology_key, scheduled),
        obstacle="" if is_complete else found.obstacle,
        why="" if is_complete else reasons_in_words(found, now=None),
    )


def _domain(world: World, key: str, scheduled: list[PodInfo]) -> str:
    if not key or not scheduled:
        return ""
    return f"{key}={world.node(scheduled[0].node_name).labels.get(key, '')}"
