"""DynamicResources with what it looks up, and its answers by node name."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.config.feature_gates import enabled_features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.args import DynamicResourcesArgs
from berth_plugins.dynamic_resources.plugin import DynamicResources
from berth_plugins.dynamic_resources.state import KEY, DevicesOfPod
from tests.builders import node
from tests.device_builders import device, device_class, resource_slice
from tests.harness import PluginCluster
from tests.plugins.evaluating import table

SLICES = (
    resource_slice("s1", device("a"), device("b"), node="n1"),
    resource_slice("s2", device("a"), node="n2"),
)
"""Two devices on n1, one on n2."""

NO = Status.unresolvable("cannot allocate all claims")
ELSEWHERE = Status.unresolvable("resourceclaim not available on the node")

Objects = Sequence[ResourceClaim | ResourceSlice | DeviceClass]


class World:
    """Nodes n1, n2 and n3, the class gpu, and what a test adds."""

    def __init__(
        self,
        *objects: ResourceClaim | ResourceSlice | DeviceClass,
        clock: FakeClock | None = None,
        gates: Mapping[str, bool] = {},
        **args: Any,
    ) -> None:
        self.nodes: NodeTable = table(node("n1"), node("n2"), node("n3"))
        self.clock = clock or FakeClock()
        self.cluster = PluginCluster(self.clock, nodes=self.nodes)
        features = enabled_features(gates)
        self.cluster.handle = msgspec.structs.replace(self.cluster.handle, features=features)
        self.state = CycleState(self.nodes.exists.copy())
        listers = self.cluster.listers
        for obj in (device_class(), *objects):
            if isinstance(obj, ResourceClaim):
                self.cluster.resource_claims.put(obj)
            elif isinstance(obj, ResourceSlice):
                listers.resource_slices.on_add(obj)
            else:
                listers.device_classes.on_add(obj)
        self.plugin = DynamicResources(DynamicResourcesArgs(**args), self.cluster.handle)

    def pre_filter(self, a_pod: Pod) -> Status | None:
        return self.plugin.pre_filter(self.state, PodInfo(a_pod), self.nodes)

    def filter(self, a_pod: Pod) -> dict[str, Status | None]:
        assert self.pre_filter(a_pod) is None
        verdict = self.plugin.filter(self.state, PodInfo(a_pod), self.nodes)
        return {name: verdict.status_of(row) for name, row in self.nodes.row_of.items()}

    def post_filter(self, a_pod: Pod) -> Status | None:
        unused: Any = None
        return self.plugin.post_filter(
            self.state, PodInfo(a_pod), self.nodes, Diagnosis(3), unused
        ).status

    @property
    def found(self) -> dict[str, list[str]]:
        devices: DevicesOfPod = self.state.read(KEY)
        return {
            name: [pick.found.id.device for of in find.picks for pick in of.picks]
            for name in self.nodes.row_of
            if (find := devices.found.get(name)) is not None
        }
