"""Signals, limits of storage, admission under pressure, and who dies when memory is gone."""

from typing import Any

import msgspec
import pytest

from berth.cluster.kubelet.eviction import admission, local_storage, out_of_memory
from berth.cluster.kubelet.eviction.messages import eviction_message
from berth.cluster.kubelet.eviction.observations import observe
from berth.cluster.kubelet.eviction.signals import Signal
from berth.cluster.kubelet.eviction.stats import PodStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems
from berth.cluster.kubelet.usage import Usage
from berth.kube.objects.pod import Pod
from tests.cluster.kubelet.eviction.machines import GI, MI, hard, node_stats, pod_stats

PODS = (
    pod_stats("a", memory=2 * GI, disk=10 * GI, inodes=100, pids=10, volumes={"v": 5 * GI}),
    pod_stats("b", memory=GI, disk=GI, inodes=50, pids=5),
)


@pytest.mark.parametrize(
    ("filesystems", "nodefs", "imagefs", "containerfs"),
    [
        pytest.param(
            Filesystems.SHARED, ("78Gi", "820"), ("78Gi", "820"), ("78Gi", "820"), id="one"
        ),
        pytest.param(
            Filesystems.IMAGEFS, ("93Gi", "980"), ("35Gi", "840"), ("35Gi", "840"), id="imagefs"
        ),
        pytest.param(
            Filesystems.SPLIT, ("81Gi", "820"), ("47Gi", "1k"), ("81Gi", "820"), id="split"
        ),
    ],
)
def test_signals(
    filesystems: Filesystems,
    nodefs: tuple[str, str],
    imagefs: tuple[str, str],
    containerfs: tuple[str, str],
) -> None:
    stats = node_stats(
        *PODS,
        system=Usage(0, GI, 2 * GI, 20, 100),
        dead=Usage(ephemeral_storage=GI, inodes=10),
        images=3 * GI,
        allocatable=8 * GI,
        filesystems=filesystems,
        imagefs_capacity=50 * GI,
    )

    found = {signal: str(each) for signal, each in observe(stats).items()}

    assert found == {
        Signal.MEMORY_AVAILABLE: "6Gi",
        Signal.ALLOCATABLE_MEMORY_AVAILABLE: "5Gi",
        Signal.NODEFS_AVAILABLE: nodefs[0],
        Signal.NODEFS_INODES_FREE: nodefs[1],
        Signal.IMAGEFS_AVAILABLE: imagefs[0],
        Signal.IMAGEFS_INODES_FREE: imagefs[1],
        Signal.CONTAINERFS_AVAILABLE: containerfs[0],
        Signal.CONTAINERFS_INODES_FREE: containerfs[1],
        Signal.PID_AVAILABLE: "885",
    }


def test_a_node_without_memory_or_disk_has_no_signals_of_them() -> None:
    assert set(observe(node_stats(memory=0, disk=0))) == {Signal.PID_AVAILABLE}


def test_more_than_everything_is_nothing_left() -> None:
    signals = observe(node_stats(pod_stats(memory=11 * GI, pids=1010)))

    assert str(signals[Signal.MEMORY_AVAILABLE]) == "0"
    assert str(signals[Signal.PID_AVAILABLE]) == "-10"


def test_the_message_names_what_exceeds_its_request() -> None:
    body: dict[str, Any] = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {"name": "over", "resources": {"requests": {"memory": "100Mi"}}},
                {"name": "within", "resources": {"requests": {"memory": "1Gi"}}},
                {"name": "ended"},
            ],
            "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}],
            "resources": {"requests": {"memory": "2Gi"}},
        },
    }
    used = {name: Usage(memory=200 * MI) for name in ("over", "within", "sidecar")}
    stats = PodStats(msgspec.convert(body, Pod), used)
    observations = observe(node_stats(stats, memory=GI))

    message = eviction_message("memory", stats, hard(memory_available="512Mi"), observations)

    assert message.text == (
        "The node was low on resource: memory. Threshold quantity: 512Mi, available: 424Mi. "
        "Pod p was using 600Mi, request is 2Gi, has larger consumption of memory. "
        "Container over was using 200Mi, request is 100Mi, has larger consumption of memory. "
        "Container sidecar was using 200Mi, request is 0, has larger consumption of memory. "
    )
    assert message.annotations["offending_containers"] == "over,sidecar"
    assert message.annotations["offending_pod_usage"] == "600Mi"


@pytest.mark.parametrize(
    ("resource", "stats", "thresholds", "want"),
    [
        pytest.param(
            "ephemeral-storage",
            pod_stats(disk=95 * GI, request="1Gi", resource="ephemeral-storage"),
            hard(nodefs_available="10%"),
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10737418400, "
            "available: 5Gi. Container c was using 95Gi, request is 1Gi, "
            "has larger consumption of ephemeral-storage. ",
            id="disk",
        ),
        pytest.param(
            "inodes",
            pod_stats(inodes=960),
            hard(nodefs_inodesFree="5%"),
            "The node was low on resource: inodes. Threshold quantity: 50, available: 40. ",
            id="inodes",
        ),
        pytest.param(
            "pids",
            pod_stats(pids=960),
            hard(pid_available="100"),
            "The node was low on resource: pids. Threshold quantity: 100, available: 40. ",
            id="processes",
        ),
    ],
)
def test_messages_about_other_resources(
    resource: str, stats: PodStats, thresholds: Any, want: str
) -> None:
    assert eviction_message(resource, stats, thresholds, observe(node_stats(stats))).text == want


@pytest.mark.parametrize(
    ("stats", "want"),
    [
        pytest.param(pod_stats(disk=9 * GI), None, id="no limit"),
        pytest.param(
            pod_stats(disk=GI, limit="1Gi", resource="ephemeral-storage"), None, id="at its limit"
        ),
        pytest.param(
            pod_stats(disk=GI, volumes={"v": 1}, limit="1024Mi", resource="ephemeral-storage"),
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
            id="volumes count towards the limit of the pod",
        ),
        pytest.param(
            pod_stats(volumes={"v": 11}, size_limits={"v": "10"}),
            'Usage of EmptyDir volume "v" exceeds the limit "10". ',
            id="a volume above its size limit",
        ),
        pytest.param(
            pod_stats(volumes={"v": 11}, size_limits={"v": "0"}),
            None,
            id="a size limit of 0 is none",
        ),
    ],
)
def test_local_storage(stats: PodStats, want: str | None) -> None:
    assert local_storage.excess(stats, Filesystems.SHARED) == want


def two_containers() -> PodStats:
    containers = [
        {"name": name, "resources": {"limits": {"ephemeral-storage": "1Gi"}}} for name in "ab"
    ]
    body = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
    used = {"a": Usage(ephemeral_storage=GI + 1), "b": Usage()}
    return PodStats(msgspec.convert(body, Pod), used)


@pytest.mark.parametrize(
    ("filesystems", "want"),
    [
        pytest.param(
            Filesystems.SHARED,
            'Container a exceeded its local ephemeral storage limit "1Gi". ',
            id="within the limit of the pod, but not of the container",
        ),
        pytest.param(Filesystems.IMAGEFS, None, id="layers are elsewhere"),
    ],
)
def test_a_container_has_a_limit_of_its_own(filesystems: Filesystems, want: str | None) -> None:
    assert local_storage.excess(two_containers(), filesystems) == want


MEMORY = ("MemoryPressure",)
TOLERATES = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}


def to_admit(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)


@pytest.mark.parametrize(
    ("pod", "qos", "conditions", "is_taken"),
    [
        pytest.param(to_admit(), "BestEffort", (), True, id="no pressure"),
        pytest.param(to_admit(), "BestEffort", MEMORY, False, id="memory: best effort"),
        pytest.param(to_admit(), "Burstable", MEMORY, True, id="memory: something requested"),
        pytest.param(
            to_admit(tolerations=[TOLERATES]), "BestEffort", MEMORY, True, id="memory: tolerated"
        ),
        pytest.param(
            to_admit(tolerations=[{"operator": "Exists"}]),
            "BestEffort",
            MEMORY,
            True,
            id="memory: everything tolerated",
        ),
        pytest.param(
            to_admit(tolerations=[{**TOLERATES, "effect": "NoExecute"}]),
            "BestEffort",
            MEMORY,
            False,
            id="memory: another effect tolerated",
        ),
        pytest.param(to_admit(), "Guaranteed", ("DiskPressure",), False, id="disk: nobody"),
        pytest.param(
            to_admit(), "Burstable", ("DiskPressure", "MemoryPressure"), False, id="both: nobody"
        ),
        pytest.param(
            to_admit(priority=2_000_000_000), "BestEffort", ("PIDPressure",), True, id="critical"
        ),
    ],
)
def test_admission(pod: Pod, qos: str, conditions: tuple[str, ...], is_taken: bool) -> None:
    message = None if is_taken else f"The node had condition: [{' '.join(conditions)}]. "
    assert admission.admit(pod, conditions, qos_class=qos) == message


@pytest.mark.parametrize(
    ("stats", "want"),
    [
        pytest.param(pod_stats(request="1Gi", limit="1Gi"), -997, id="Guaranteed"),
        pytest.param(pod_stats(), 1000, id="BestEffort"),
        pytest.param(pod_stats(request="1Gi"), 900, id="Burstable: less by what it requests"),
        pytest.param(pod_stats(request="10Gi"), 3, id="Burstable: above Guaranteed"),
        pytest.param(pod_stats(request="1Mi"), 999, id="Burstable: below BestEffort"),
        pytest.param(pod_stats(priority=2_000_001_000), -997, id="critical"),
    ],
)
def test_oom_score_adj(stats: PodStats, want: int) -> None:
    [container] = stats.pod.spec.containers
    assert out_of_memory.oom_score_adj(stats, container, 10 * GI) == want


def test_the_kernel_kills_the_highest_score_when_memory_is_gone() -> None:
    guaranteed = pod_stats("guaranteed", memory=6 * GI, request="6Gi", limit="6Gi")
    small = pod_stats("small", memory=GI)
    large = pod_stats("large", memory=3 * GI + 1, request="2Gi")
    critical = pod_stats("critical", priority=2_000_000_000)

    found = out_of_memory.victim(node_stats(guaranteed, small, large, critical))
    calm = out_of_memory.victim(node_stats(guaranteed, small))

    assert calm is None
    # 100 + 1000 against 300 + 800
    assert found is not None
    assert (found.stats.pod.metadata.name, found.container) == ("small", "c")


def test_a_container_dies_at_its_own_limit() -> None:
    stats = pod_stats(memory=GI + 1, request="1Mi", limit="1Gi")
    within = pod_stats(memory=GI, request="1Mi", limit="1Gi")

    assert [over_limit.container for over_limit in out_of_memory.over_limits(stats)] == ["c"]
    assert list(out_of_memory.over_limits(within)) == []
