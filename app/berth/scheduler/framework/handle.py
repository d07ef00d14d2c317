"""The handle of a plugin: what it may ask of the scheduler it runs in."""

import random
from collections.abc import Callable, Set

import msgspec

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, FakeClock
from berth.scheduler.config.feature_gates import Features, enabled_features
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.outcomes import NOBODY, Outcomes
from berth.scheduler.framework.pod_groups import NO_GROUPS, PodGroups
from berth.scheduler.framework.writes import NO_WRITES, PluginWrites


def _no_pod(_key: str) -> Pod | None:
    return None


def _not_preempting(_uid: str) -> bool:
    return False


def _not_nominated(_uid: str) -> str:
    return ""


def _nobody_is_gated(_key: str) -> None:
    pass


def _nobody_waits(_uids: Set[str], _plugin: str) -> None:
    pass


class Handle(msgspec.Struct, frozen=True):
    """Given to every plugin when it is made; all plugins of a scheduler share one.

    The defaults are those of a test or a simulation: time stands still, random numbers are the
    same every time, and there is no API server to write to.
    """

    nodes: NodeTable
    """The live table. A Filter looks at the table it is given instead."""
    listers: Listers = msgspec.field(default_factory=Listers)
    """Namespaces, services and the like, as the watches last reported them."""
    clock: Clock = msgspec.field(default_factory=FakeClock)
    rng: random.Random = msgspec.field(default_factory=lambda: random.Random(0))
    pod: Callable[[str], Pod | None] = _no_pod
    """The pod ``namespace/name`` as the watch last reported it; None if there is none."""
    is_preempting: Callable[[str], bool] = _not_preempting
    """Whether victims are being evicted for the pod or PodGroup of this UID: it is too early to
    try it."""
    nominated_node: Callable[[str], str] = _not_nominated
    """The node that the pod of this UID is nominated to; "" for none.

    The status of the pod may not say so yet.
    """
    gate_may_open: Callable[[str], None] = _nobody_is_gated
    """Have PreEnqueue asked again about the pod ``namespace/name`` at the next event that may help
    it; after :class:`~berth.scheduler.framework.status.GatedUntilTold`."""
    pod_groups: PodGroups = NO_GROUPS
    """Which pods of a group there are, and which have nodes."""
    allow_waiting: Callable[[Set[str], str], None] = _nobody_waits
    """Let pods go that wait on Permit, by UID, as far as the plugin of a name is concerned."""
    outcomes: Outcomes = NOBODY
    """Where a plugin reports what is counted in metrics."""
    writes: PluginWrites = NO_WRITES
    """Writes to the API server."""
    features: Features = msgspec.field(default_factory=lambda: enabled_features({}))
    """The feature gates that are on, and what else the release does that is emulated; by default
    those of the latest."""
