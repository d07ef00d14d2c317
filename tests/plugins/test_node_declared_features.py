"""NodeDeclaredFeatures: filter and hints."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP
from berth_plugins.node_declared_features import (
    NOT_DECLARED,
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    VOLUME_BIND_MOUNT_OPTIONS,
    NodeDeclaredFeatures,
    after_node_change,
    after_pod_update,
    required_features,
)
from tests.builders import node, pod
from tests.harness import Harness
from tests.plugins.evaluating import rejected, table, verdicts

BOTH = (RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK)


def with_spec(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "uid": "p"}, "spec": spec}, Pod)


def restarting(action: str) -> list[dict[str, Any]]:
    return [{"name": "c"}, {"name": "d", "restartPolicyRules": [{"action": action}]}]


RESTARTS_ALL = with_spec(containers=restarting("RestartAllContainers"))
NEEDS_BOTH = with_spec(
    containers=restarting("RestartAllContainers"), hostNetwork=True, hostUsers=False
)


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), set(), id="an ordinary pod"),
        pytest.param(RESTARTS_ALL, {RESTART_ALL_CONTAINERS}, id="a container restarts all"),
        pytest.param(
            with_spec(initContainers=restarting("RestartAllContainers")),
            {RESTART_ALL_CONTAINERS},
            id="an init container restarts all",
        ),
        pytest.param(with_spec(containers=restarting("Restart")), set(), id="another action"),
        pytest.param(
            with_spec(hostNetwork=True, hostUsers=False),
            {USER_NAMESPACES_HOST_NETWORK},
            id="own users on the host's network",
        ),
        pytest.param(with_spec(hostNetwork=True), set(), id="the host's users by default"),
        pytest.param(with_spec(hostNetwork=True, hostUsers=True), set(), id="the host's users"),
        pytest.param(with_spec(hostUsers=False), set(), id="own users and network"),
        pytest.param(NEEDS_BOTH, set(BOTH), id="both"),
        pytest.param(
            with_spec(
                initContainers=[
                    {"name": "i", "volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}
                ]
            ),
            {VOLUME_BIND_MOUNT_OPTIONS},
            id="options of a bind mount",
        ),
        pytest.param(
            with_spec(
                ephemeralContainers=[
                    {"name": "e", "volumeMounts": [{"name": "v", "bindMountOptions": ["nodev"]}]}
                ]
            ),
            {VOLUME_BIND_MOUNT_OPTIONS},
            id="options of a bind mount, in a container that was added",
        ),
        pytest.param(
            with_spec(containers=[{"name": "c", "volumeMounts": [{"name": "v"}]}]),
            set(),
            id="a mount without options",
        ),
    ],
)
def test_required_features(a_pod: Pod, want: set[str]) -> None:
    assert required_features(a_pod) == want
    answer = NodeDeclaredFeatures().pre_filter(CycleState(), PodInfo(a_pod), table(node()))
    assert answer is (None if want else SKIP)


def test_options_of_a_bind_mount_need_no_feature_in_1_36() -> None:
    mount = {"name": "v", "bindMountOptions": ["noexec"]}
    a_pod = with_spec(containers=[{"name": "c", "volumeMounts": [mount]}])
    nodes = table(node())
    plugin = NodeDeclaredFeatures(None, Handle(nodes, features=Features.of(release="1.36")))
    assert plugin.pre_filter(CycleState(), PodInfo(a_pod), nodes) is SKIP


@pytest.mark.parametrize("where", ["containers", "ephemeralContainers"])
@pytest.mark.parametrize(
    "millis",
    [
        pytest.param([100] * 6, id="after replicas without"),
        pytest.param(range(100, 106), id="after others without"),
    ],
)
async def test_options_of_a_bind_mount_among_pods_without(
    millis: Sequence[int], where: str
) -> None:
    def requesting(name: str, milli_cpu: int, **containers: Any) -> Pod:
        requests = {"requests": {"cpu": f"{milli_cpu}m"}}
        own = {"name": "c", "resources": requests, **containers.pop("containers", {})}
        added = [{"name": "e", **fields} for fields in containers.values()]
        spec = {"containers": [own], "ephemeralContainers": added}
        meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
        return msgspec.convert({"metadata": meta, "spec": spec}, Pod)

    harness = Harness()
    harness.put(node("n1"), node("n2"))
    for number, milli_cpu in enumerate(millis):
        harness.put(requesting(f"p{number}", milli_cpu))
        await harness.until_idle()
    mounts = {"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}
    harness.put(requesting("q", 100, **{where: mounts}))
    await harness.until_idle()
    assert harness.placements().keys() == {f"p{number}" for number in range(6)}

    harness.put(node("n3", features=[VOLUME_BIND_MOUNT_OPTIONS]))
    await harness.pass_time(2)
    assert harness.placements()["q"] == "n3"


def test_filter_wants_every_feature() -> None:
    nodes = table(
        node("none"),
        node("one", features=[RESTART_ALL_CONTAINERS]),
        node("other", features=["Unheard", USER_NAMESPACES_HOST_NETWORK]),
        node("all", features=[*BOTH, "Unheard"]),
    )
    plugin = NodeDeclaredFeatures()
    assert rejected(plugin, RESTARTS_ALL, nodes) == {"none", "other"}
    assert verdicts(plugin, NEEDS_BOTH, nodes) == {
        "none": NOT_DECLARED,
        "one": NOT_DECLARED,
        "other": NOT_DECLARED,
        "all": None,
    }
    part = nodes.take([nodes.row_of["one"], nodes.row_of["all"]])
    assert rejected(plugin, NEEDS_BOTH, part) == {"one"}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, node(), QueueingHint.QUEUE, id="a new node"),
        pytest.param(node(), node(features=["A"]), QueueingHint.QUEUE, id="a feature more"),
        pytest.param(node(features=["A"]), node(), QueueingHint.QUEUE, id="a feature less"),
        pytest.param(node(features=["A"]), node(features=["A"]), QueueingHint.SKIP, id="the same"),
    ],
)
def test_after_node_change(old: Node | None, new: Node, want: QueueingHint) -> None:
    assert after_node_change(RESTARTS_ALL, old, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(NEEDS_BOTH, RESTARTS_ALL, QueueingHint.QUEUE, id="it needs less"),
        pytest.param(RESTARTS_ALL, RESTARTS_ALL, QueueingHint.SKIP, id="it needs the same"),
        pytest.param(pod(uid="q"), pod(uid="q"), QueueingHint.SKIP, id="another pod"),
        pytest.param(
            NEEDS_BOTH, pod(uid="q"), QueueingHint.SKIP, id="another pod whatever it needs"
        ),
    ],
)
def test_after_pod_update(old: Pod, new: Pod, want: QueueingHint) -> None:
    assert after_pod_update(RESTARTS_ALL, old, new) is want


def test_events() -> None:
    registered = [r.event for r in NodeDeclaredFeatures().events_to_register()]
    declared = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
    assert registered == [
        ClusterEvent(EventResource.NODE, declared),
        ClusterEvent(EventResource.POD, ActionType.UPDATE),
    ]
