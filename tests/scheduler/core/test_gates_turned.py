"""What differs when a feature gate of the scheduler is turned, for each gate a case."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import pytest

from berth.kube.client.errors import UnavailableError
from berth.kube.objects.pod import PodStatus, ResourceRequirements
from berth.scheduler.config.feature_gates import (
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
    NODE_DECLARED_FEATURES,
    NOMINATED_NODE_NAME_FOR_EXPECTATION,
    OPPORTUNISTIC_BATCHING,
    POD_LEVEL_RESOURCES,
    SCHEDULER_ASYNC_PREEMPTION,
    SCHEDULER_POP_FROM_BACKOFF_Q,
    TAINT_TOLERATION_COMPARISON_OPERATORS,
    enabled_features,
)
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PreBindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import pod_reader
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.profile.build import Registry
from berth_plugins.registry import IN_TREE
from tests.builders import HOSTNAME, node, pod, selector, spread, taint, toleration
from tests.harness import Harness
from tests.volume_builders import claim, csi_driver, csi_node, storage_capacity, storage_class

DEPENDENTS: Final = {
    NODE_DECLARED_FEATURES: (
        IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
        "RestartAllContainersOnContainerExits",
    ),
    POD_LEVEL_RESOURCES: (IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,),
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: ("MatchLabelKeysInPodTopologySpreadSelectorMerge",),
}
"""Gates that must be off as well."""


class Preparing(PreBindPlugin):
    """Has nothing to do, and notes whether it is asked to."""

    NAME = "Preparing"
    ALLOW_PARALLEL = True

    def __init__(self, *_: object) -> None:
        super().__init__()
        self.runs = 0

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.runs += 1
        return None


def scheduler(gate: str, *, on: bool) -> Harness:
    gates = {gate: on} | ({} if on else dict.fromkeys(DEPENDENTS.get(gate, ()), False))
    profile = {"plugins": {"preBind": {"enabled": [{"name": "Preparing"}]}}}
    config = {"apiVersion": API_VERSION, "kind": KIND, "featureGates": gates}
    if gate == NODE_DECLARED_FEATURES:
        config["emulatedVersion"] = "1.36"  # the last release in which it can be turned
    registry: Registry = {**IN_TREE, "Preparing": Preparing}
    return Harness(config={**config, "profiles": [profile]}, registry=registry)


async def backoff(harness: Harness) -> object:
    """A pod that just failed is tried again at once when a node comes, or after its backoff."""
    harness.put(node("small", cpu="1"), pod("p", cpu="2"))
    await harness.until_idle()
    harness.put(node("large", cpu="2"))
    await harness.core.schedule_next()
    where = harness.queue.sub_queues.place_of("default/p")
    await harness.pass_time(3)
    assert harness.placements() == {} if where is None else {"p": "large"}
    return where


async def preemption(harness: Harness) -> object:
    """Victims leave beside the attempt, or within it."""
    harness.put(node("n1", cpu="1"), pod("low", cpu="1", node="n1", priority=0))
    harness.put(pod("high", cpu="1", priority=9))
    await harness.core.schedule_next()
    return sorted(harness.placements())


async def expectation(harness: Harness) -> object:
    """A PreBind plugin with nothing to do is not run, or is."""
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()
    (plugin,) = [p for p in harness.core.live.profiles["default-scheduler"].pre_binds
                 if isinstance(p, Preparing)]  # fmt: skip
    assert harness.placements() == {"p": "n1"}
    return plugin.runs


async def placed(harness: Harness, *objects: Any) -> object:
    harness.put(*objects)
    await harness.until_idle()
    return harness.placements().get("p")


async def pod_level(harness: Harness) -> object:
    """Requests of a pod as a whole count, or those of its containers."""
    return await placed(harness, node("n1", cpu="2"), pod("p", cpu="1", pod_level={"cpu": "3"}))


async def resized(harness: Harness) -> object:
    """What a pod was given as a whole counts, or what it asks for."""
    given = ResourceRequirements(requests={"cpu": "4"})
    other = pod("o", node="n1", pod_level={"cpu": "1"}, status=PodStatus(resources=given))
    return await placed(harness, node("n1", cpu="4"), other, pod("p", cpu="2"))


async def label_keys(harness: Harness) -> object:
    """Pods of the same revision are spread, or of all revisions."""
    rule = spread(key=HOSTNAME, selector=selector({"app": "a"}), match_label_keys=["rev"])
    return await placed(
        harness,
        node("n1"),
        node("full", cpu="0"),
        pod("old", node="n1", labels={"app": "a", "rev": "1"}),
        pod("p", cpu="1", labels={"app": "a", "rev": "2"}, spread=[rule]),
    )


async def declared(harness: Harness) -> object:
    """A feature that the pod needs must be declared by its node, or not."""
    needing = pod("p")
    spec = msgspec.structs.replace(needing.spec, host_network=True, host_users=False)
    return await placed(harness, node("n1"), msgspec.structs.replace(needing, spec=spec))


async def batching(harness: Harness) -> object:
    """Attempts without a hint are counted, or not."""
    await placed(harness, node("n1"), pod("p"))
    labels = {"profile": "default-scheduler", "result": "no_hint"}
    return harness.registry.get_sample_value("scheduler_batch_attempts_total", labels)


async def comparisons(harness: Harness) -> object:
    """A toleration compares numbers, or tolerates nothing."""
    few = toleration("gpus", operator="Lt", value="8", effect="NoSchedule")
    return await placed(
        harness, node("n1", taints=[taint("gpus", "4")]), pod("p", tolerations=[few])
    )


def storage(*, n1: str, n2: str, required: bool = False) -> tuple[Any, ...]:
    return (
        node("n1"),
        node("n2"),
        csi_node("n1"),
        csi_node("n2", limits={"csi.example.com": 1}),
        csi_driver(required=required),
        storage_class("dyn", provisioner="csi.example.com"),
        storage_capacity("c1", nodes=selector({HOSTNAME: "n1"}), size=n1),
        storage_capacity("c2", nodes=selector({HOSTNAME: "n2"}), size=n2),
        claim(storage_class="dyn", size="10Gi"),
        pod("p", claims=["data"]),
    )


async def chosen(harness: Harness, *objects: Any) -> object:
    """Return where the pod is to be bound, and the storage scores."""
    harness.put(*objects)
    bindings = await harness.core.schedule_next()
    assert bindings
    return bindings[0].pod.node_name


async def storage_score(harness: Harness) -> object:
    """The node with more storage left is chosen, or any."""
    harness.scheduler.select = min  # of equal nodes the first
    return await chosen(harness, *storage(n1="50Gi", n2="100Gi"))


async def volume_limits(harness: Harness) -> object:
    """A node needs the driver of a volume, or not."""
    harness.scheduler.select = min
    return await chosen(harness, *storage(n1="100Gi", n2="100Gi", required=True))


@pytest.mark.parametrize(
    ("gate", "observe", "on", "off"),
    [
        pytest.param(SCHEDULER_POP_FROM_BACKOFF_Q, backoff, None, "backoff", id="backoff"),
        pytest.param(SCHEDULER_ASYNC_PREEMPTION, preemption, ["low"], [], id="evictions"),
        pytest.param(NOMINATED_NODE_NAME_FOR_EXPECTATION, expectation, 0, 1, id="pre-flight"),
        pytest.param(POD_LEVEL_RESOURCES, pod_level, None, "n1", id="requests of a pod"),
        pytest.param(
            IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING, resized, None, "n1", id="a resized pod"
        ),
        pytest.param(
            MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD, label_keys, "n1", None, id="label keys"
        ),
        pytest.param(NODE_DECLARED_FEATURES, declared, None, "n1", id="features of nodes"),
        pytest.param(OPPORTUNISTIC_BATCHING, batching, 1, None, id="hints"),
        pytest.param(
            TAINT_TOLERATION_COMPARISON_OPERATORS, comparisons, "n1", None, id="comparisons"
        ),
        pytest.param("StorageCapacityScoring", storage_score, "n2", "n1", id="free storage"),
        pytest.param("VolumeLimitScaling", volume_limits, "n2", "n1", id="drivers"),
    ],
)
async def test_a_gate_on_and_off(
    gate: str, observe: Callable[[Harness], Awaitable[object]], on: object, off: object
) -> None:
    assert await observe(scheduler(gate, on=True)) == on
    assert await observe(scheduler(gate, on=False)) == off


async def test_an_eviction_within_the_attempt_that_fails_is_told() -> None:
    harness = scheduler(SCHEDULER_ASYNC_PREEMPTION, on=False)
    harness.put(node("n1", cpu="1"), pod("low", cpu="1", node="n1", priority=0))
    harness.put(pod("high", cpu="1", priority=9))
    harness.cluster.evict_error = UnavailableError("connection refused", sent=False)
    await harness.until_idle()
    message = harness.cluster.conditions["default/high"].message
    assert message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: connection refused"
    )
    harness.cluster.evict_error = None
    await harness.pass_time(3)
    assert harness.placements() == {"low": "n1"}, "no event concerns it"
    harness.put(pod("low", cpu="100m", node="n1", priority=0, version="2"))
    await harness.pass_time(3)
    assert harness.placements() == {"high": "n1"}, "the change of its victim does"


async def test_victims_of_an_attempt_leave_and_the_pod_follows() -> None:
    harness = scheduler(SCHEDULER_ASYNC_PREEMPTION, on=False)
    harness.put(node("n1", cpu="1"), pod("low", cpu="1", node="n1", priority=0))
    harness.put(pod("high", cpu="1", priority=9))
    await harness.core.schedule_next()
    assert not harness.preemptions.is_preempting("high")
    await harness.pass_time(3)
    assert harness.placements() == {"high": "n1"}
    assert harness.registry.get_sample_value("scheduler_preemption_victims_count") == 1


def test_by_default_all_of_every_pod_counts() -> None:
    assert pod_reader(enabled_features({})) is None
