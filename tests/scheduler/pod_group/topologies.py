"""Generated racks, and groups of unlike pods that may fit into one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, member

GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
LOOK_BACK = "PodGroupLookBack"
GPU = "example.com/gpu"

Size = tuple[int, int]
"""CPUs and GPUs."""


@dataclass(frozen=True)
class Topology:
    """Free room by rack and node, and what the pods of a group take."""

    racks: tuple[tuple[Size, ...], ...]
    pods: tuple[Size, ...]
    min_count: int

    def objects(self) -> Iterator[Node | Pod]:
        """Yield nodes that have just that room beside pods of two CPUs."""
        for number, rack in enumerate(self.racks):
            for place, (cpu, gpu) in enumerate(rack):
                name = f"r{number}-{place}"
                labels = {"rack": f"r{number}"}
                gpus = {GPU: str(gpu)}
                yield node(name, cpu=str(cpu + 2), labels=labels, allocatable=gpus)
                yield pod(f"old-{name}", cpu="2", node=name)

    def members(self) -> Iterator[Pod]:
        for number, (cpu, gpu) in enumerate(self.pods):
            requests = {GPU: str(gpu)} if gpu else {}
            yield member(f"m{number:03}", cpu=str(cpu), requests=requests)

    def has_place(self) -> bool:
        """Whether enough pods fit into one rack, by trying all ways; for a few pods."""
        return any(
            _fit(tuple(sorted(chosen, reverse=True)), rack)
            for rack in self.racks
            for chosen in combinations(self.pods, self.min_count)
        )


def _fit(pods: Sequence[Size], rack: Sequence[Size]) -> bool:
    if not pods:
        return True
    (cpu, gpu), left = pods[0], pods[1:]
    return any(
        cpu <= free_cpu
        and gpu <= free_gpu
        and _fit(left, (*rack[:i], (free_cpu - cpu, free_gpu - gpu), *rack[i + 1 :]))
        for i, (free_cpu, free_gpu) in enumerate(rack)
    )


def small(rng: Random) -> Topology:
    """Return a few nodes in two or three racks, and two to six pods of two or three sizes."""
    racks = tuple(
        tuple((rng.randint(1, 8), rng.choice([0, 0, 1, 2])) for _ in range(rng.randint(2, 4)))
        for _ in range(rng.randint(2, 3))
    )
    sizes = [(rng.randint(1, 6), rng.choice([0, 0, 1])) for _ in range(rng.randint(2, 3))]
    pods = tuple(rng.choice(sizes) for _ in range(rng.randint(2, 6)))
    return Topology(racks, pods, rng.randint(max(len(pods) - 1, 1), len(pods)))


def planted(rng: Random, *, racks: int, nodes: int, pods: int, slack: float) -> Topology:
    """Return a group that fits into one rack, on nodes that have *slack* more room than it takes.

    The other racks have as much room in all, cut up at random.
    """
    sizes = [(rng.randint(1, 3), 0), (rng.randint(2, 5), 1), (rng.randint(4, 8), 0)]
    wanted = tuple(rng.choice(sizes) for _ in range(pods))
    made = []
    for number in range(racks):
        free = [[0, 0] for _ in range(nodes)]
        for cpu, gpu in wanted:
            there = rng.choice(free)
            there[0] += cpu
            (there if number == 0 else rng.choice(free))[1] += gpu
        spare = slack if number == 0 else 0.0
        made.append(tuple((round(cpu * (1 + spare)), gpu) for cpu, gpu in free))
    rng.shuffle(made)
    return Topology(tuple(made), wanted, pods)


async def placed(topology: Topology, *gates: str) -> dict[str, str]:
    """Return the node of each pod of the group, once the scheduler has tried it."""
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": dict.fromkeys((*GATES, *gates), True),
        }
    )
    harness.put(*topology.objects())
    harness.put(group(min_count=topology.min_count, topology="rack"), *topology.members())
    await harness.until_idle()
    return {name: on for name, on in harness.placements().items() if name.startswith("m")}
