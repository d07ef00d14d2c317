"""Traces become nodes and pods; what is wrong with a file is said with line and column."""

from pathlib import Path

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.lab.chance import GoChance, PythonChance
from berth.tools.lab.errors import LabError
from berth.tools.lab.load import TraceWorkload
from berth.tools.lab.trace import Trace
from berth.tools.lab.workload import Part
from tests.builders import node_affinity, requirement, term

GPU = "example.com/gpu-milli"
MODEL = "example.com/gpu-model"
NODES = """sn,cpu_milli,memory_mib,gpu,model
b,64000,262144,2,T4
a,96000,393216,8,G2
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
two,8000,1024,2,1000,G2|T4
half,4000,2048,1,500,
none,1000,512,0,0,G2
"""
EXAMPLES = Path("examples/lab")


def trace(folder: Path, *, nodes: str = NODES, pods: str = PODS) -> Trace:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    return Trace(folder / "nodes.csv", folder / "pods.csv", resource=GPU, model_label=MODEL)


def requests(pod: Pod) -> tuple[int, int, int]:
    found = PodInfo(pod).template.requested
    return found.milli_cpu, found.memory, found.scalars.get(GPU, 0)


def test_nodes_and_pods_are_sorted_and_have_what_the_files_say(tmp_path: Path) -> None:
    read = trace(tmp_path)

    assert [node.name for node in read.nodes] == ["a", "b"]
    assert read.nodes[0].status.allocatable[GPU] == "8000"
    assert read.nodes[1].labels[MODEL] == "T4"
    assert {pod.metadata.name: requests(pod) for pod in read.pods} == {
        "half": (4000, 2048 << 20, 500),
        "none": (1000, 512 << 20, 0),
        "two": (8000, 1024 << 20, 2000),
    }


def test_models_are_asked_for_by_pods_with_gpus_only(tmp_path: Path) -> None:
    affinities = {pod.metadata.name: pod.spec.affinity for pod in trace(tmp_path).pods}

    assert affinities["none"] is None
    assert affinities["half"] is None
    assert affinities["two"] == node_affinity(required=[term(requirement(MODEL, "In", "G2", "T4"))])


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param(
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nx,many,1,0,0\n",
            "line 2: cpu_milli: 'many': must be a whole number",
            id="a word for a number",
        ),
        pytest.param(
            "name,cpu_milli,memory_mib,num_gpu\nx,1,1,0\n",
            "line 2: gpu_milli: '': must be a whole number",
            id="a column that is missing",
        ),
        pytest.param(
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nx,1,1,0,0\n,1,1,0,0\n",
            "line 3: name: required",
            id="a pod without a name",
        ),
        pytest.param(
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nx,1,1,2,500\n",
            "line 2: gpu_milli: 500: pods with several GPUs take whole ones",
            id="parts of several GPUs",
        ),
    ],
)
def test_a_malformed_line_is_named(pods: str, want: str, tmp_path: Path) -> None:
    with pytest.raises(LabError) as caught:
        trace(tmp_path, pods=pods)

    assert str(caught.value) == f"{tmp_path / 'pods.csv'}, {want}"


def names(workload: TraceWorkload, *, seed: int = 1) -> list[str]:
    return [arrival.pod.metadata.name for arrival in workload.arrivals(PythonChance(seed))]


def demand(workload: TraceWorkload, *, seed: int) -> int:
    return sum(requests(arrival.pod)[2] for arrival in workload.arrivals(PythonChance(seed)))


def test_pods_come_by_name_unless_shuffled(tmp_path: Path) -> None:
    read = trace(tmp_path)

    assert names(TraceWorkload(read, tune=None, shuffle=False)) == ["half", "none", "two"]
    shuffled = TraceWorkload(read, tune=None, shuffle=True)
    assert {tuple(names(shuffled, seed=seed)) for seed in range(20)} > {("half", "none", "two")}


@pytest.mark.parametrize("seed", range(5))
def test_pods_are_added_up_to_a_share_of_the_capacity(seed: int, tmp_path: Path) -> None:
    """Pods with several GPUs may go beyond: their request for one GPU is what counts."""
    tuned = TraceWorkload(trace(tmp_path), tune=1.2, shuffle=True)
    arrived = names(tuned, seed=seed)

    assert 12_000 - 1000 <= demand(tuned, seed=seed) <= 12_000 + 1000
    assert sorted(arrived[:3]) == ["half", "none", "two"]
    assert len(set(arrived)) == len(arrived)


@pytest.mark.parametrize("seed", range(5))
def test_pods_are_left_out_down_to_a_share_of_the_capacity(seed: int, tmp_path: Path) -> None:
    tuned = TraceWorkload(trace(tmp_path), tune=0.2, shuffle=True)

    assert demand(tuned, seed=seed) <= 2000
    assert set(names(tuned, seed=seed)) < {"half", "none", "two"}


def test_the_published_run_of_seed_42_begins_as_it_did() -> None:
    read = Trace(
        EXAMPLES / "openb_node_list_gpu_node.csv",
        EXAMPLES / "openb_pod_list_default.csv.gz",
        resource=GPU,
        model_label=MODEL,
    )
    chance = GoChance(42)
    arrived = TraceWorkload(read, tune=1.3, shuffle=True).arrivals(chance)
    chance.begin_nodes()

    assert len(arrived) == 10_866
    assert [each.pod.metadata.name for each in arrived[:3]] == [
        "openb-pod-0255",
        "openb-pod-1685",
        "openb-pod-6784",
    ]
    assert arrived[8152].pod.metadata.name.startswith("openb-pod-3888-")
    assert sum(requests(each.pod)[2] for each in arrived) == 8_075_080
    assert chance.permutation(len(read.nodes))[:5] == [601, 815, 450, 13, 731]


def test_parts_of_a_trace_share_its_pods(tmp_path: Path) -> None:
    read = trace(tmp_path)
    parts = [
        TraceWorkload(read, tune=None, shuffle=False, part=Part(number, 2)) for number in range(2)
    ]

    assert [names(part) for part in parts] == [["half", "two"], ["none"]]
    assert all(part.nodes == read.nodes for part in parts)
