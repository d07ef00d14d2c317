"""Files of node groups: what they say, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.kube.manifests import ManifestError
from berth.runtime.duration import Duration
from berth.tools.autoscaler.node_groups import NodeGroup, NodeGroupError, NodeGroups, read
from berth.tools.autoscaler.options import AutoscalingOptions

TEMPLATE = {
    "metadata": {"labels": {"topology.kubernetes.io/zone": "a"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "example.com/gpu": "2"}},
}


def written(name: Any = "gpu", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "berth/v1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"maxSize": 3, "template": TEMPLATE, **spec},
    }


def flags(**args: Any) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in args.items()}
    return {"apiVersion": "berth/v1", "kind": "ClusterAutoscaler", "args": named}


def saved(folder: Path, *documents: Any) -> Path:
    path = folder / "groups.yaml"
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return path


def test_a_group_is_what_its_file_says(tmp_path: Path) -> None:
    spec = {"minSize": 1, "price": 0.5, "priority": 7, "provisionTime": "1m30s", "failureRate": 0.1}
    found = read([saved(tmp_path, written(**spec), flags(scan_interval="20s", expander="price"))])

    (group,) = found.groups
    assert (group.name, group.min_size, group.initial_size, group.max_size) == ("gpu", 1, 1, 3)
    assert (group.price, group.priority) == (0.5, 7)
    assert (group.provision_seconds, group.failure_rate) == (90.0, 0.1)
    node = group.node()
    assert node["metadata"]["labels"]["berth.dev/node-group"] == "gpu"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert node["spec"]["taints"][0]["key"] == "gpu"
    assert node["status"]["allocatable"]["example.com/gpu"] == "2"
    assert found.options == AutoscalingOptions(scan_interval=Duration.of(20.0), expander="price")


def test_defaults_are_those_of_cluster_autoscaler(tmp_path: Path) -> None:
    options = read([saved(tmp_path, written())]).options
    assert {
        "scan-interval": "10s",
        "expander": "least-waste",
        "max-node-provision-time": "15m0s",
        "scale-down-unneeded-time": "10m0s",
        "scale-down-delay-after-add": "10m0s",
        "scale-down-delay-after-failure": "3m0s",
        "scale-down-utilization-threshold": 0.5,
        "max-scale-down-parallelism": 10,
        "max-drain-parallelism": 1,
    }.items() <= options.model_dump(by_alias=True, mode="json").items()


def test_several_files_are_one(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(saved(tmp_path / name, written(name)))
    assert [group.name for group in read(paths).groups] == ["a", "b"]


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        pytest.param(
            [{"apiVersion": "v1", "kind": "Node"}],
            "a berth/v1 NodeGroup or ClusterAutoscaler is needed, got a v1 Node",
            id="another kind",
        ),
        pytest.param([written("A_b")], "metadata.name: 'A_b': must be", id="no name for nodes"),
        pytest.param([written(None)], "metadata.name: None: must be", id="no name"),
        pytest.param([written(), written()], "NodeGroup 'gpu': there are two", id="twice the same"),
        pytest.param([flags(), flags()], "ClusterAutoscaler: there are two", id="twice the flags"),
        pytest.param(
            [written(maxSize=0)],
            "NodeGroup 'gpu': spec.maxSize: 0: Input should be greater than or equal to 1",
            id="no room",
        ),
        pytest.param(
            [written(minSize=4)], "minSize: 4: must be at most maxSize, 3", id="out of order"
        ),
        pytest.param(
            [written(minSize=1, initialSize=0)],
            "initialSize: 0: must be between minSize and maxSize",
            id="begins too small",
        ),
        pytest.param(
            [written(failureRate=1.5)], "spec.failureRate: 1.5: Input should be", id="no share"
        ),
        pytest.param(
            [written(provisionTime="soon")],
            "spec.provisionTime: 'soon': time: invalid duration \"soon\"",
            id="no duration",
        ),
        pytest.param(
            [written(provisionTime="-1s")],
            "spec.provisionTime: '-1s': must not be negative",
            id="in the past",
        ),
        pytest.param(
            [written(colour="red")], "spec.colour: 'red': Extra inputs", id="unknown field"
        ),
        pytest.param([{**written(), "x": 1}], "NodeGroup 'gpu': x: unknown field", id="above spec"),
        pytest.param(
            [written(template={"status": {"allocatable": {"cpu": "many"}}})],
            "spec.template",
            id="no quantity",
        ),
        pytest.param(
            [written(template={"metadata": {"labels": {"a b": "c"}}})],
            "spec.template.metadata.labels: 'a b': 'c': no valid label",
            id="no label",
        ),
        pytest.param(
            [flags(expander="cheapest")],
            "ClusterAutoscaler: args.expander: 'cheapest': 'cheapest': must be one of least-nodes",
            id="unknown expander",
        ),
        pytest.param([flags(scan_interval="0s")], "must be greater than 0s", id="no pause"),
        pytest.param(
            [flags(scan_intervall="1s")], "args.scan-intervall: '1s': Extra", id="unknown flag"
        ),
        pytest.param(
            [written(), flags(expander="price")],
            "NodeGroup 'gpu': spec.price: needed: the expander 'price' compares prices",
            id="no price",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, documents: list[Any], problem: str) -> None:
    with pytest.raises((NodeGroupError, ManifestError)) as refused:
        read([saved(tmp_path, *documents)])
    assert problem in str(refused.value)


def test_what_kubelets_reserve_is_not_for_pods_of_new_nodes() -> None:
    reserving = KubeletConfiguration(system_reserved={"memory": "1Gi"}, eviction_hard={})
    [group] = NodeGroups([NodeGroup("g", 3)]).with_kubelets(reserving).groups
    assert group.node()["status"]["allocatable"]["memory"] == "15Gi"
    assert group.node()["status"]["capacity"]["memory"] == "16Gi"
