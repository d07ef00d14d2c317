"""Which errors of VolumeBinding are counted, and as what (spec §8)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from berth.kube.objects.meta import LabelSelectorRequirement
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.outcomes import DeviceWait, VolumeStage
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.volume_binding.plugin import VolumeBinding
from tests.builders import node, pod, selector
from tests.harness import PluginCluster
from tests.plugins.evaluating import table
from tests.volume_builders import StorageObject, add, claim, listers, storage_class, volume

LOCAL = storage_class("local")
DYNAMIC = storage_class("dyn", provisioner="csi.example.com")
NONSENSE = selector(expressions=[LabelSelectorRequirement("x", "In")])

Happening = Callable[[PluginCluster], None]


@dataclass
class Told:
    """What a plugin has told."""

    stages: list[VolumeStage] = field(default_factory=list)

    def volume_stage_failed(self, stage: VolumeStage) -> None:
        self.stages.append(stage)

    def evaluated_preemption(self, result: str, *, seconds: float) -> None: ...

    def waited_for_devices(
        self, profile: str, driver: str, status: DeviceWait, *, seconds: float
    ) -> None:
        raise AssertionError("no devices here")


def nothing(_cluster: PluginCluster) -> None:
    """Happens in between."""


def claim_changes(cluster: PluginCluster) -> None:
    add(cluster.listers, claim("c", storage_class="dyn", version="99"))


def volume_goes(cluster: PluginCluster) -> None:
    cluster.listers.persistent_volumes.on_delete(volume())


def writes_fail(cluster: PluginCluster) -> None:
    cluster.update_error = OSError("no route")


def pod_goes(cluster: PluginCluster) -> None:
    cluster.pods.clear()


def claim_is_bound(cluster: PluginCluster) -> None:
    bound = claim("c", bound_to="pv", version="99")
    add(cluster.listers, bound)
    add(cluster.listers, volume(claim=bound, version="99"))


async def stages_told(
    *objects: StorageObject, after_filter: Happening, after_writing: Happening
) -> list[VolumeStage]:
    """Have a pod with the claim c tried, as far as it gets, on the only node."""
    told = Told()
    nodes = table(node("n1"))
    cluster = PluginCluster(FakeClock(), listers(*objects), nodes=nodes, outcomes=told)
    a_pod = pod(claims=["c"])
    cluster.pods[a_pod.key] = a_pod
    plugin, state, info = (
        VolumeBinding(None, cluster.handle),
        CycleState(nodes.exists),
        PodInfo(a_pod),
    )
    assert plugin.pre_filter(state, info, nodes) is None
    if plugin.filter(state, info, nodes):
        return told.stages
    after_filter(cluster)
    if plugin.reserve(state, info, "n1") is not None:
        return told.stages
    binding = asyncio.create_task(plugin.pre_bind(state, info, "n1"), name="pre_bind")
    for _ in range(5):
        await asyncio.sleep(0)
    after_writing(cluster)
    cluster.clock.advance(1)
    await binding
    return told.stages


@pytest.mark.parametrize(
    ("objects", "after_filter", "after_writing", "want"),
    [
        pytest.param(
            [LOCAL, claim("c", selector=NONSENSE)],
            nothing,
            nothing,
            ["predicate"],
            id="the claim cannot be evaluated",
        ),
        pytest.param([LOCAL, claim("c")], nothing, nothing, [], id="no volume is there"),
        pytest.param(
            [DYNAMIC, claim("c", storage_class="dyn")],
            claim_changes,
            nothing,
            ["assume"],
            id="the claim changes while nodes are evaluated",
        ),
        pytest.param(
            [LOCAL, claim("c"), volume()],
            volume_goes,
            nothing,
            [],
            id="another node has to be found",
        ),
        pytest.param(
            [LOCAL, claim("c"), volume()], writes_fail, nothing, ["bind"], id="writing fails"
        ),
        pytest.param(
            [LOCAL, claim("c"), volume()], nothing, pod_goes, ["bind"], id="waiting fails"
        ),
        pytest.param([LOCAL, claim("c"), volume()], nothing, claim_is_bound, [], id="all is well"),
    ],
)
async def test_stages_that_failed(
    objects: list[StorageObject],
    after_filter: Happening,
    after_writing: Happening,
    want: list[VolumeStage],
) -> None:
    told = await stages_told(*objects, after_filter=after_filter, after_writing=after_writing)
    assert told == want
