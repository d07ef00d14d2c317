"""One scheduling cycle: the pod, the profile that decides, and the nodes to decide about."""

from functools import cached_property

import msgspec

from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods, NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.statuses import filter_failed
from berth.scheduler.queue.nominator import Nominator


class Cycle(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What the steps of one scheduling cycle share.

    Table and nominations are the cluster's own: they must not change until the outcome has been
    acted on.
    """

    profile: Profile
    pod: PodInfo
    nodes: NodeTable
    nominated_pods: NominatedPods
    state: CycleState = msgspec.field(default_factory=CycleState)
    placement: Placement = EVERYWHERE
    """The nodes in question. PreFilter plugins see them all, as in kube-scheduler (spec G10.3)."""

    @cached_property
    def filters(self) -> FiltersWithNominatedPods:
        """The filters of the profile, which count nominated pods (spec §2.5)."""
        return FiltersWithNominatedPods(self.profile, self.nominated_pods)

    @property
    def out_of_time(self) -> Status | None:
        """Why the attempt has failed if a filter ran out of its time; of several, the first."""
        for status in self.state.out_of_time:
            return filter_failed(status.plugin, status.message)
        return None

    @classmethod
    def begin(
        cls,
        profile: Profile,
        pod: PodInfo,
        *,
        cache: Cache,
        nominator: Nominator,
        placement: Placement = EVERYWHERE,
    ) -> "Cycle":
        """Begin a cycle on the nodes as they are now."""
        cache.refresh_order()
        return cls(profile, pod, cache.table, nominator.nominations, placement=placement)

    @property
    def num_nodes(self) -> int:
        return self.placement.size(self.nodes)
