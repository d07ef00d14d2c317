"""The cluster for other people's tests: what one gets, how it fails, and that nothing is left."""

import asyncio
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import yaml

from berth.cluster import Cluster, ClusterError, running_cluster

if TYPE_CHECKING:
    from kubernetes.client import CoreV1Api

pytestmark = pytest.mark.wall

T = TypeVar("T")

LOOK_SECONDS = 0.02
LIMIT_SECONDS = 60.0

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dict"}}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def ask(cluster: Cluster, question: Callable[["CoreV1Api"], T]) -> T:
    """Return the answer of the official client, which is closed afterwards."""
    from kubernetes import client as kubernetes  # takes half a second
    from kubernetes import config

    with config.new_client_from_config(str(cluster.kubeconfig)) as client:  # type: ignore[no-untyped-call]
        answer = question(kubernetes.CoreV1Api(client))
        client.rest_client.pool_manager.clear()
        return answer


def nodes_of(cluster: Cluster) -> list[Any]:
    """Return the nodes; their type has every field optional."""
    return ask(cluster, lambda api: api.list_node()).items


def config_maps(cluster: Cluster) -> list[str]:
    return names(ask(cluster, lambda api: api.list_namespaced_config_map("default")))


def web(cluster: Cluster) -> Any:
    return ask(cluster, lambda api: api.read_namespaced_pod("web", "default"))


def names(found: Any) -> list[str]:
    return [item.metadata.name for item in found.items]


async def until(is_so: Callable[[], bool]) -> None:
    """Ask until it is; the client is a blocking one, in this thread."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            if is_so():
                return
            await asyncio.sleep(LOOK_SECONDS)


def is_gone(folder: Any) -> bool:
    return not Path(folder.name).exists()


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "berth cluster"]


def test_a_cluster_in_a_with_block_answers_and_leaves_nothing() -> None:
    with Cluster() as cluster:
        said = yaml.safe_load(cluster.kubeconfig.read_text())
        assert said["clusters"][0]["cluster"]["server"] == cluster.address
        assert names(ask(cluster, lambda api: api.list_node())) == []
        assert names(ask(cluster, lambda api: api.list_namespace())) == [
            "default", "kube-node-lease", "kube-public", "kube-system",
        ]  # fmt: skip
    assert not cluster.kubeconfig.parent.exists()
    assert threads() == []


async def test_a_cluster_in_an_async_block_answers_blocking_clients() -> None:
    async with Cluster(nodes=2) as cluster:
        nodes = nodes_of(cluster)
        ready = {c.status for node in nodes for c in node.status.conditions if c.type == "Ready"}
    assert (len(nodes), ready) == (2, {"True"})
    assert not cluster.kubeconfig.parent.exists()
    assert threads() == []


async def test_a_start_that_is_cancelled_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []
    make, is_cancelled = tempfile.TemporaryDirectory, threading.Event()
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        starting.cancel()
        is_cancelled.set()

    def cancelling(**given: Any) -> Any:
        folders.append(make(**given))
        loop.call_soon_threadsafe(cancel)
        is_cancelled.wait()
        return folders[-1]

    monkeypatch.setattr(running_cluster, "TemporaryDirectory", cancelling)
    starting = asyncio.ensure_future(Cluster().__aenter__())
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert is_gone(folders[0])
    assert threads() == []


def test_an_exception_in_the_block_comes_out_and_nothing_is_left() -> None:
    cluster = Cluster(nodes=1)
    with pytest.raises(ZeroDivisionError), cluster:
        raise ZeroDivisionError
    assert not cluster.kubeconfig.parent.exists()
    assert threads() == []


def test_two_clusters_at_once_know_nothing_of_each_other() -> None:
    with Cluster(load=CONFIG_MAP) as one, Cluster() as other:
        assert one.address != other.address
        assert "dict" in config_maps(one)
        assert "dict" not in config_maps(other)


def test_manifests_are_loaded_however_they_are_given(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        text = yaml.safe_dump({**CONFIG_MAP, "metadata": {"name": folder}})
        (tmp_path / folder / "map.yaml").write_text(text)
    text = yaml.safe_dump({**CONFIG_MAP, "metadata": {"name": "text"}})
    given: list[str | Path | dict[str, Any]] = [
        tmp_path / "a" / "map.yaml",
        str(tmp_path / "b"),
        text,
        CONFIG_MAP,
    ]
    with Cluster(load=given) as cluster:
        found = config_maps(cluster)
    assert {"a", "b", "text", "dict"} <= set(found)


def test_nodes_are_as_their_manifests_say() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu", "annotations": {"berth.dev/count": "2"}},
        "status": {"allocatable": {"example.com/gpu": "8"}},
    }
    with Cluster(nodes=[node]) as cluster:
        nodes = nodes_of(cluster)
    assert [each.status.allocatable["example.com/gpu"] for each in nodes] == ["8", "8"]
    assert [each.metadata.name for each in nodes] == ["gpu-0", "gpu-1"]


async def test_only_with_a_scheduler_pods_get_a_node() -> None:
    async with Cluster(nodes=1, load=POD, scheduler=True) as cluster:
        await until(lambda: web(cluster).status.phase == "Running")
    async with Cluster(nodes=1, load=POD) as cluster:
        assert web(cluster).spec.node_name is None


async def test_a_scheduler_that_has_failed_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def noted(*args: Any, **given: Any) -> Any:
        ended.append(start(*args, **given))
        return ended[-1]

    monkeypatch.setattr(running_cluster, "SCHEDULER_FLAGS", ("--no-such-flag",))
    monkeypatch.setattr(subprocess, "Popen", noted)
    with pytest.raises(ClusterError, match=r"ended with status 2\n[^$]*--no-such-flag"):
        async with Cluster(scheduler=True):
            await until(lambda: ended[0].poll() is not None)

    async def fail() -> None:
        async with Cluster(scheduler=True):
            await until(lambda: ended[1].poll() is not None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        await fail()
    assert raised.value.__notes__[0].startswith("the scheduler ended with status 2")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"nodes": -1}, ["nodes: -1: must not be negative"], id="fewer than no nodes"),
        pytest.param({"nodes": [POD]}, ["nodes[0]: kind: 'Pod'"], id="a node that is none"),
        pytest.param(
            {"nodes": [{**POD, "kind": "Node", "status": {"allocatable": 4}}]},
            ["nodes[0]: ", "$.status.allocatable"],
            id="a field of a node",
        ),
        pytest.param(
            {"nodes": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "Bad_Name"}}]},
            ["nodes: Node", "metadata.name", '"Bad_Name-0"'],
            id="a node that the API refuses",
        ),
        pytest.param(
            {"nodes": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}] * 2},
            ["nodes: metadata.name: 'n-0': two nodes have this name"],
            id="two nodes of a name",
        ),
        pytest.param({"load": {"kind": "Pod"}}, ["load[0]: apiVersion: needed, got None"], id="no"),
        pytest.param({"load": "a: [\n"}, ["load[0]: not YAML"], id="no YAML"),
        pytest.param({"load": "/no/such"}, ["/no/such: No such file"], id="no file"),
        pytest.param(
            {"load": {**POD, "spec": {**POD["spec"], "restartPolicy": "Sometimes"}}},
            ["load[0]: Pod 'web'", "spec.restartPolicy", '"Sometimes"'],
            id="a value that the API refuses",
        ),
    ],
)
def test_what_is_wrong_is_told_by_field_and_value(given: Any, words: list[str]) -> None:
    with pytest.raises(ClusterError) as raised, Cluster(**given):
        pass
    assert [word for word in words if word not in str(raised.value)] == []
    assert threads() == []


def test_the_package_is_light_until_a_cluster_is_asked_for() -> None:
    program = "import sys, berth.cluster.pytest_plugin; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name for name in ran.stdout.split() if name.startswith("berth.")}
    assert loaded == {"berth.cluster", "berth.cluster.pytest_plugin"}


def test_the_release_of_kubernetes() -> None:
    with Cluster(nodes=1, kubernetes_version="1.36") as cluster:
        [node] = nodes_of(cluster)
    assert node.status.node_info.kubelet_version == "v1.36.2-berth"
    with pytest.raises(ValueError, match=r"kubernetes_version: '1.35': must be 1.36 or 1.37"):
        Cluster(kubernetes_version="1.35")
